// All time, with the view as a window in it.
#include "viewer/panes/overview.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "viewer/navigation/ruler.h"
#include "viewer/panes/hatch.h"
#include "viewer/panes/timeline_frame.h"
#include "viewer/panes/widgets.h"
#include "viewer/state/actions.h"
#include "viewer/timeline/frame.h"

namespace trainprof {
namespace {

constexpr float kEdgeReach = 5;         // points
constexpr float kHitTickHeight = 0.3f;  // of the pane's

// The lines that say when the rank that the verdict speaks of worked, and why not: its first GPU
// and its idle causes; without one the thread that steps.
std::vector<uint32_t> SourcesOf(const State& state) {
  const uint32_t rank = state.document->SlowestRank();
  const std::span<const Line> lines = state.lines().lines();
  uint32_t gpu = kNoLine;
  for (uint32_t i = 0; i < lines.size(); ++i) {
    if (lines[i].rank != rank) continue;
    if (lines[i].kind == LineKind::kGpu && gpu == kNoLine) gpu = i;
    if (lines[i].kind == LineKind::kIdle && gpu != kNoLine) return {gpu, i};
  }
  if (gpu != kNoLine) return {gpu};
  const uint32_t thread = MainThreadOf(state.lines(), rank);
  if (thread != kNoLine) return {thread};
  return {};
}

void DrawBusy(PaneContext& context, ImDrawList* draw, const Box& box, const Scale& scale) {
  TimelineCache& cache = context.cache.timeline;
  LaneStore& store = context.state.document->store();
  if (!cache.overview_sources) cache.overview_sources = SourcesOf(context.state);
  std::vector<FrameLane> lanes;
  for (uint32_t line : *cache.overview_sources) {
    const bool there = store.Ask(line, Form::kStrip);
    if (!there) cache.overview_pending = true;
    // As in the strip of a collapsed rank: idle time over busy time, as high as its share.
    lanes.push_back({there ? &store.LaneOf(line, Form::kStrip) : nullptr, !lanes.empty()});
  }
  BuildFrame(lanes, scale.view, scale.width_px, cache.overview, kMostOverviewRects);
  Hatcher hatcher(context.theme, kMostOverviewStrokes);
  for (const Rect& rect : cache.overview.rects) {
    const bool alone = lanes.size() == 1;
    const float left = box.left + rect.left;
    const Box at{left, box.top, std::max(left + 1, box.left + rect.right),
                 box.top + box.height() * static_cast<float>(rect.height) / kHeights};
    const ImU32 color = context.theme.Shaded(rect.category, alone ? rect.shade : kShades);
    draw->AddRectFilled(at.min(), at.max(), color);
    if (lanes[rect.lane].by_height) hatcher.Add(at, rect.category, color);
  }
  hatcher.Draw(draw);
}

// Where there are bookmarks and evidence of the open finding.
void DrawMarks(const PaneContext& context, ImDrawList* draw, const Box& box, const Scale& scale) {
  const State& state = context.state;
  const float width = std::max(1.f, context.theme.Px(1.5f));
  const auto mark = [&](TraceTime t, ImU32 color, float top) {
    const float x = std::floor(box.left + scale.PixelOf(t));
    draw->AddRectFilled({x, top}, {x + width, box.bottom}, color);
  };
  for (const Bookmark& bookmark : state.bookmarks)
    mark(bookmark.at, context.theme.warning, box.top);
  if (!state.finding) return;
  const RankAnalysis* analysis = state.document->Analysis(state.finding->rank);
  if (analysis == nullptr || state.finding->index >= analysis->findings.size()) return;
  const Duration shift = state.lines().Shift(state.finding->rank);
  const float half = (box.top + box.bottom) / 2;
  std::set<int32_t> marked;  // a mark a pixel
  for (const Evidence& evidence : analysis->findings[state.finding->index].evidence) {
    const TraceTime at = evidence.when.begin + shift;
    if (marked.size() >= kMostEvidenceMarks) break;  // the worst come first
    if (!marked.insert(static_cast<int32_t>(scale.PixelOf(at) / width)).second) continue;
    mark(at, context.theme.text, half);
  }
}

// Where there are hits: ticks at the top, of the one that was gone to a line through all.
void DrawHits(const PaneContext& context, ImDrawList* draw, const Box& box,
              const Interval& extent) {
  const SearchState& search = context.state.search;
  if (search.hits.events.empty()) return;
  const Lines& lines = context.state.lines();
  const auto columns = std::min(kMostHitTicks, static_cast<int32_t>(box.width() / 2));
  const Scale scale = Scale::Of(extent, std::max(1, columns));
  const float width = box.width() / static_cast<float>(scale.width_px);
  const float bottom = box.top + box.height() * kHitTickHeight;
  for (const int32_t pixel : HitPixels(lines, search.hits, scale)) {
    const float left = box.left + static_cast<float>(pixel) * width;
    draw->AddRectFilled({left, box.top}, {left + width, bottom}, context.theme.text);
  }
  if (!search.current) return;
  const TraceTime at = lines.TimeOf(search.hits.events[*search.current]).begin;
  const float x = box.left + scale.PixelOf(at) * width;
  draw->AddRectFilled({x, box.top}, {x + std::max(2.f, context.theme.Px(2)), box.bottom},
                      context.theme.text);
}

void DrawWindow(const PaneContext& context, ImDrawList* draw, const Box& box, const Scale& scale) {
  const Theme& theme = context.theme;
  const float left =
      std::clamp(box.left + scale.PixelOf(context.state.view.begin), box.left, box.right);
  float right = std::clamp(box.left + scale.PixelOf(context.state.view.end), box.left, box.right);
  right = std::max(right, left + theme.Px(3));
  const ImU32 veil = (theme.panel & ~IM_COL32_A_MASK) | (150u << IM_COL32_A_SHIFT);
  draw->AddRectFilled(box.min(), {left, box.bottom}, veil);
  draw->AddRectFilled({right, box.top}, box.max(), veil);
  const float width = std::max(1.f, theme.Px(1.5f));
  draw->AddRect({left, box.top}, {right, box.bottom}, theme.text, 0, 0, width);
  if (right - left < theme.Px(16)) return;
  const float middle = (box.top + box.bottom) / 2;
  for (const float x : {left, right}) {  // handles
    draw->AddRectFilled({x - theme.Px(2), middle - theme.Px(6)},
                        {x + theme.Px(2), middle + theme.Px(6)}, theme.text);
  }
}

void HandleDrag(PaneContext& context, const Box& box, const Scale& scale) {
  if (box.width() < 1 || box.height() < 1) return;
  State& state = context.state;
  OverviewDrag& drag = context.cache.timeline.overview_drag;
  ImGui::SetCursorScreenPos(box.min());
  ImGui::InvisibleButton("all time", {box.width(), box.height()});
  const float pixel = ImGui::GetIO().MousePos.x - box.left;
  const OverviewGrip grip = GripAt(scale, state.view, pixel, context.theme.Px(kEdgeReach));
  const OverviewGrip shown = ImGui::IsItemActive() ? drag.grip : grip;
  if (ImGui::IsItemHovered() || ImGui::IsItemActive()) {
    const bool edge = shown == OverviewGrip::kLeftEdge || shown == OverviewGrip::kRightEdge;
    ImGui::SetMouseCursor(edge ? ImGuiMouseCursor_ResizeEW : ImGuiMouseCursor_Hand);
  }
  if (ImGui::IsItemActivated()) {
    state.history.Leave(state.view);
    drag.grip = grip;
    const double at = static_cast<double>((scale.TimeAt(pixel) - state.view.begin).ns);
    const double offset = at / static_cast<double>(state.view.Length().ns);
    drag.offset = offset >= 0 && offset <= 1 ? offset : 0.5;
  }
  if (ImGui::IsItemActive()) {
    const Interval view = DraggedTo(scale, state.view, drag.grip, drag.offset, pixel);
    state.view = ClampView(view, state.lines().extent());
    state.view_chosen = true;
  }
}

}  // namespace

OverviewGrip GripAt(const Scale& scale, const Interval& view, float pixel, float reach) {
  const float left = scale.PixelOf(view.begin);
  const float right = scale.PixelOf(view.end);
  const bool has_inside = right - left > 3 * reach;
  if (has_inside && std::abs(pixel - left) <= reach) return OverviewGrip::kLeftEdge;
  if (has_inside && std::abs(pixel - right) <= reach) return OverviewGrip::kRightEdge;
  return OverviewGrip::kWindow;
}

Interval DraggedTo(const Scale& scale, const Interval& view, OverviewGrip grip, double offset,
                   float pixel) {
  const TraceTime at = scale.TimeAt(pixel);
  switch (grip) {
    case OverviewGrip::kLeftEdge:
      return {std::min(at, view.end - kLeastView), view.end};
    case OverviewGrip::kRightEdge:
      return {view.begin, std::max(at, view.begin + kLeastView)};
    case OverviewGrip::kWindow: {
      const auto before = static_cast<int64_t>(offset * static_cast<double>(view.Length().ns));
      const TraceTime begin = at - Duration{before};
      return {begin, begin + view.Length()};
    }
    case OverviewGrip::kNone:
      break;
  }
  return view;
}

void DrawOverview(PaneContext& context) {
  if (!context.state.HasLines()) return;
  const ImVec2 size = ImGui::GetContentRegionAvail();
  if (size.x < 1 || size.y < 1) return;
  const Theme& theme = context.theme;
  const ImVec2 min = ImGui::GetCursorScreenPos();
  const TimelineAreas areas = MakeAreas(context, min, {min.x + size.x, min.y + size.y});
  const Box box{areas.ruler.left, min.y + theme.Px(3), areas.ruler.right,
                min.y + size.y - theme.Px(3)};
  const Interval extent = context.state.lines().extent();
  const Scale scale = Scale::Of(extent, std::max(1, static_cast<int32_t>(box.width())));
  ImDrawList* draw = ImGui::GetWindowDrawList();
  context.cache.timeline.overview_pending = false;
  draw->AddRectFilled(box.min(), box.max(), theme.stripe);
  DrawBusy(context, draw, box, scale);
  DrawMarks(context, draw, box, scale);
  DrawHits(context, draw, box, extent);
  DrawWindow(context, draw, box, scale);
  const std::string text = "all: " + ShortText(extent.Length());
  const std::string_view fits = FitText(text, areas.corner.width() - theme.Px(10));
  draw->AddText({min.x + theme.Px(6), (box.top + box.bottom - ImGui::GetFontSize()) / 2},
                theme.text_dim, fits.data(), fits.data() + fits.size());
  HandleDrag(context, box, scale);
}

}  // namespace trainprof
