#include "viewer/panes/timeline_lanes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "viewer/panes/hatch.h"
#include "viewer/panes/rect_limits.h"
#include "viewer/panes/widgets.h"

namespace trainprof {
namespace {

// Indices of the packaged ImGui have 16 bits: one reservation stays below 65,536 vertices.
constexpr size_t kMostReserved = 16'000;

using Shades = std::array<std::array<ImU32, kShades + 1>, kCategories>;

Shades ShadesOf(const Theme& theme) {
  Shades shades{};
  for (size_t c = 0; c < kCategories; ++c) {
    for (uint8_t shade = 0; shade <= kShades; ++shade) {
      shades[c][shade] = theme.Shaded(static_cast<Category>(c), shade);
    }
  }
  return shades;
}

// Where a rectangle stands; a pixel wide at least, and apart from its right neighbour where there
// is room.
Box BoxOf(const TimelineFrame& frame, const Rect& rect) {
  constexpr float kApartFrom = 4;
  const ShownLane& lane = frame.lanes[rect.lane];
  const float left = frame.areas.time.left + rect.left;
  float right = std::max(frame.areas.time.left + rect.right, left + 1);
  if (rect.event != kNoEvent && right - left >= kApartFrom) right -= 1;
  const float height = (lane.bottom - 1 - lane.top) * static_cast<float>(rect.height) / kHeights;
  return {left, lane.top, right, lane.top + std::max(height, 1.f)};
}

// In a strip the idle time over it says how busy it was.
ImU32 ColorOf(const TimelineFrame& frame, const Rect& rect, const Shades& shades) {
  const bool strip = frame.lanes[rect.lane].look == LaneLook::kStripBusy;
  return shades[static_cast<size_t>(rect.category)][strip ? kShades : rect.shade];
}

void DrawRects(const TimelineFrame& frame, std::span<const Rect> rects, const Shades& shades,
               ImDrawList* draw) {
  while (!rects.empty()) {
    const std::span<const Rect> some = rects.first(std::min(rects.size(), kMostReserved));
    const auto count = static_cast<int>(some.size());
    draw->PrimReserve(count * 6, count * 4);
    for (const Rect& rect : some) {
      const Box box = BoxOf(frame, rect);
      draw->PrimRect(box.min(), box.max(), ColorOf(frame, rect, shades));
    }
    rects = rects.subspan(some.size());
  }
}

void AddHatches(const TimelineFrame& frame, std::span<const Rect> rects, const Shades& shades,
                Hatcher& hatcher) {
  for (const Rect& rect : rects) {
    if (!frame.lanes[rect.lane].IsHatched()) continue;
    hatcher.Add(BoxOf(frame, rect), rect.category, ColorOf(frame, rect, shades));
  }
}

// For the lanes, between what was drawn before them and what will be.
size_t RectsLeft(const State& state, const ImDrawList& draw) {
  constexpr size_t kLeast = 1000;
  size_t taken = static_cast<size_t>(draw.VtxBuffer.Size) / 4;
  taken += kMostLabelGlyphs + kMostLaneStrokes + kOtherTimelineRects;
  if (!state.search.hits.events.empty()) taken += kMostHitMarks + kMostShortHits;
  if (state.finding) taken += 2 * kMostVeilParts;
  const size_t left = kMostTimelineRects - std::min(kMostTimelineRects, taken);
  return std::clamp(left, kLeast, kMostLaneRects);
}

// The least width of an event that gets its name in it, so that there are at most kMostLabels.
float LeastLabelled(const Theme& theme, std::span<const Rect> rects) {
  constexpr float kLeast = 36;  // points: five letters
  float least = theme.Px(kLeast);
  while (true) {
    size_t count = 0;
    for (const Rect& rect : rects) {
      if (rect.event != kNoEvent && rect.right - rect.left >= least) ++count;
    }
    if (count <= kMostLabels) return least;
    least *= 1.5f;
  }
}

// The name of an event, as far as it fits.
struct BarLabel {
  const Rect* rect = nullptr;
  std::string name;
};

// Of the widest events, as many as the limits allow.
std::vector<BarLabel> LabelsOf(PaneContext& context, const TimelineFrame& frame,
                               std::span<const Rect> rects) {
  const Lines& lines = context.state.lines();
  LaneStore& store = context.state.document->store();
  const float least = LeastLabelled(context.theme, rects);
  const float margin = context.theme.Px(4);
  std::vector<BarLabel> labels;
  size_t glyphs = 0;
  for (const Rect& rect : rects) {
    if (rect.event == kNoEvent || rect.right - rect.left < least) continue;
    const ShownLane& lane = frame.lanes[rect.lane];
    const Lane& on = LaneOf(store, lane);
    const Table table = on.table(rect.event);
    if (table == Table::kBusy) continue;
    const EventRef event{lines.lines()[lane.line].rank, table, on.row(rect.event)};
    const std::string name = table == Table::kIdle ? std::string(IdleTitle(on.category(rect.event)))
                                                   : EventName(lines, event);
    const float width = BoxOf(frame, rect).width() - 2 * margin;
    labels.push_back({&rect, std::string(FitText(name, width))});
    glyphs += labels.back().name.size();
  }
  if (glyphs <= kMostLabelGlyphs) return labels;
  std::stable_sort(labels.begin(), labels.end(), [](const BarLabel& a, const BarLabel& b) {
    return a.rect->right - a.rect->left > b.rect->right - b.rect->left;
  });
  while (glyphs > kMostLabelGlyphs) {
    glyphs -= labels.back().name.size();
    labels.pop_back();
  }
  return labels;
}

// Those of some of the rectangles.
void DrawLabels(const PaneContext& context, const TimelineFrame& frame,
                std::span<const BarLabel> labels, std::span<const Rect> rects, ImDrawList* draw) {
  const float margin = context.theme.Px(4);
  for (const BarLabel& label : labels) {
    if (label.rect < rects.data() || label.rect >= rects.data() + rects.size()) continue;
    const Box box = BoxOf(frame, *label.rect);
    const char* const text = label.name.data();
    const char* const end = text + label.name.size();
    const ImU32 color = context.theme.Of(label.rect->category);
    const ImVec2 at{std::floor(box.left + margin),
                    std::floor(box.top + (box.height() - ImGui::GetFontSize()) / 2)};
    if (frame.lanes[label.rect->lane].IsHatched()) {  // words cannot be read on a hatch
      const float right = at.x + ImGui::CalcTextSize(text, end).x + margin / 2;
      draw->AddRectFilled({box.left + 1, box.top}, {right, box.bottom}, color);
    }
    draw->AddText(at, Theme::TextOn(color), text, end);
  }
}

// Events nested deeper than is shown.
void DrawFoldedRows(const PaneContext& context, const TimelineFrame& frame, ImDrawList* draw) {
  for (const ShownRow& shown : frame.rows) {
    if (shown.row.deeper == 0) continue;
    const float top = shown.bottom - static_cast<float>(frame.lane_height);
    const char* const levels = shown.row.deeper == 1 ? "level" : "levels";
    const std::string text = fmt::format("{} deeper {}: click to show", shown.row.deeper, levels);
    draw->AddText({frame.areas.time.left + context.theme.Px(4), top}, context.theme.text_dim,
                  text.c_str());
  }
}

// What a thread makes; it will be there in a moment.
void DrawUnready(const PaneContext& context, const TimelineFrame& frame, ImDrawList* draw) {
  for (const ShownRow& shown : frame.rows) {
    if (shown.ready) continue;
    draw->AddText({frame.areas.time.left + context.theme.Px(4), shown.top}, context.theme.text_dim,
                  "making ...");
  }
}

}  // namespace

void DrawLanes(PaneContext& context, ImDrawList* draw, TimelineFrame& frame) {
  TimelineCache& cache = context.cache.timeline;
  LaneStore& store = context.state.document->store();
  std::vector<FrameLane> lanes;
  lanes.reserve(frame.lanes.size());
  for (const ShownLane& lane : frame.lanes) {
    lanes.push_back({&LaneOf(store, lane), lane.IsHatched()});
  }
  BuildFrame(lanes, context.state.view, frame.scale.width_px, cache.frame,
             RectsLeft(context.state, *draw));
  frame.scale = cache.frame.scale;
  const Shades shades = ShadesOf(context.theme);
  const std::span<const Rect> all = cache.frame.rects;
  const std::vector<BarLabel> labels = LabelsOf(context, frame, all);
  const auto first_track = std::partition_point(
      all.begin(), all.end(), [&](const Rect& rect) { return rect.lane < frame.pinned_lanes; });
  const auto pinned = static_cast<size_t>(first_track - all.begin());
  Hatcher hatcher(context.theme, kMostLaneStrokes);
  AddHatches(frame, all.first(pinned), shades, hatcher);
  const size_t pinned_hatches = hatcher.size();
  AddHatches(frame, all.subspan(pinned), shades, hatcher);
  const auto draw_part = [&](const Box& rows, std::span<const Rect> rects, size_t first_hatch,
                             size_t last_hatch) {
    draw->PushClipRect({frame.areas.time.left, rows.top}, rows.max(), true);
    DrawRects(frame, rects, shades, draw);
    hatcher.Draw(draw, first_hatch, last_hatch);
    DrawLabels(context, frame, labels, rects, draw);
    draw->PopClipRect();
  };
  draw_part(frame.areas.pinned, all.first(pinned), 0, pinned_hatches);
  draw_part(frame.areas.tracks, all.subspan(pinned), pinned_hatches, hatcher.size());
  draw->PushClipRect(frame.areas.time.min(), frame.areas.time.max(), true);
  DrawFoldedRows(context, frame, draw);
  DrawUnready(context, frame, draw);
  draw->PopClipRect();
}

}  // namespace trainprof
