#include "viewer/panes/timeline_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "viewer/panes/widgets.h"

namespace trainprof {
namespace {

constexpr float kIndent = 12;  // points a level
constexpr float kIcon = 16;

bool IsUnfolded(const PaneContext& context, const TrackRow& row) {
  return row.form == RowForm::kLanes && row.lanes > kLanesUnlessUnfolded &&
         context.state.unfolded.contains(row.line);
}

float FoldTop(const TimelineFrame& frame, const ShownRow& shown) {
  return shown.top +
         static_cast<float>(kLanesUnlessUnfolded) * static_cast<float>(frame.lane_height);
}

// An arrow that points right where the line is collapsed, else down.
void DrawArrow(const Theme& theme, ImDrawList* draw, ImVec2 center, bool collapsed) {
  const float r = theme.Px(3.5f);
  if (collapsed) {
    draw->AddTriangleFilled({center.x - r * 0.6f, center.y - r}, {center.x + r * 0.8f, center.y},
                            {center.x - r * 0.6f, center.y + r}, theme.text_dim);
  } else {
    draw->AddTriangleFilled({center.x - r, center.y - r * 0.6f},
                            {center.x + r, center.y - r * 0.6f}, {center.x, center.y + r * 0.8f},
                            theme.text_dim);
  }
}

void DrawPin(const Theme& theme, ImDrawList* draw, ImVec2 center, bool is_pinned) {
  const float r = theme.Px(3.5f);
  const ImU32 color = is_pinned ? theme.text : theme.text_dim;
  const float width = std::max(1.f, theme.Px(1.5f));
  const ImVec2 head{center.x, center.y - theme.Px(2)};
  draw->AddLine(head, {center.x, center.y + theme.Px(6)}, color, width);
  if (is_pinned) {
    draw->AddCircleFilled(head, r, color);
  } else {
    draw->AddCircleFilled(head, r, theme.panel);
    draw->AddCircle(head, r, color, 0, width);
  }
}

// How much longer a collapsed rank's steps take than those of the rank in the middle.
std::string SkewText(const PaneContext& context, const Line& line) {
  const Document& document = *context.state.document;
  if (line.kind != LineKind::kRank || document.ranks() < 2) return {};
  const RankAnalysis* own = document.Analysis(line.rank);
  const RankAnalysis* median = document.Analysis(document.MedianRank());
  if (own == nullptr || median == nullptr || own->steps.steps.empty()) return {};
  if (line.rank == document.MedianRank()) {
    return fmt::format("{:.4g} ms", own->steps.MeanMilliseconds());
  }
  return fmt::format("{:+.2g} ms",
                     own->steps.MeanMilliseconds() - median->steps.MeanMilliseconds());
}

// A line with its rank, where the tree does not say it.
std::string FullName(PaneContext& context, const ShownRow& shown) {
  const std::string& own = TrackName(context, shown.row.line);
  const std::span<const Line> lines = context.state.lines().lines();
  uint32_t top = shown.row.line;
  while (lines[top].parent != kNoLine) top = lines[top].parent;
  if (!shown.is_pinned || top == shown.row.line) return own;
  return std::string(own) + ", " + TrackName(context, top);
}

void DrawName(PaneContext& context, ImDrawList* draw, const TimelineFrame& frame,
              const ShownRow& shown, bool hovered) {
  const Theme& theme = context.theme;
  const State& state = context.state;
  const Line& line = state.lines().lines()[shown.row.line];
  const float indent = shown.is_pinned ? 0 : theme.Px(kIndent) * static_cast<float>(line.level);
  const float left = frame.areas.names.left + theme.Px(4) + indent;
  const float middle = shown.top + static_cast<float>(frame.lane_height) / 2;
  if (shown.row.can_collapse) {
    DrawArrow(theme, draw, {left + theme.Px(5), middle}, shown.row.collapsed);
  }
  float right = frame.areas.names.right - theme.Px(6);
  const bool is_pinned = state.pinned.contains(shown.row.line);
  if (hovered || is_pinned) {
    DrawPin(theme, draw, {right - theme.Px(kIcon) / 2, middle}, is_pinned);
    right -= theme.Px(kIcon) + theme.Px(2);
  } else if (const std::string skew = SkewText(context, line); !skew.empty()) {
    const float width = ImGui::CalcTextSize(skew.c_str()).x;
    draw->AddText({right - width, middle - ImGui::GetFontSize() / 2}, theme.text_dim, skew.c_str());
    right -= width + theme.Px(6);
  }
  const float text_left = left + theme.Px(14);
  const std::string name = FullName(context, shown);
  std::string_view fits = FitText(name, right - text_left);
  std::string cut;
  if (fits.size() < name.size()) {
    cut = std::string(FitText(name, right - text_left - ImGui::CalcTextSize("...").x)) + "...";
    fits = cut;
  }
  draw->AddText({std::floor(text_left), std::floor(middle - ImGui::GetFontSize() / 2)},
                line.level == 0 || shown.is_pinned ? theme.text : theme.text_dim, fits.data(),
                fits.data() + fits.size());
}

}  // namespace

NamesHit HitNames(const PaneContext& context, const TimelineFrame& frame, ImVec2 at) {
  NamesHit hit;
  hit.row = frame.RowAt(at);
  if (hit.row == nullptr) return hit;
  const Theme& theme = context.theme;
  const float lane = static_cast<float>(frame.lane_height);
  const bool first_lane = at.y < hit.row->top + lane;
  hit.on_pin = first_lane && at.x >= frame.areas.names.right - theme.Px(kIcon + 8);
  const float fold = FoldTop(frame, *hit.row);
  hit.on_fold = IsUnfolded(context, hit.row->row) && at.y >= fold && at.y < fold + lane;
  return hit;
}

void DrawNames(PaneContext& context, ImDrawList* draw, const TimelineFrame& frame) {
  const Theme& theme = context.theme;
  for (const ShownRow& shown : frame.rows) {
    const Box& clip = frame.ClipOf(shown);
    draw->PushClipRect({frame.areas.names.left, clip.top}, {frame.areas.names.right, clip.bottom},
                       true);
    const bool hovered = context.state.hovered_line == shown.row.line;
    const KeyFocus& keys = context.state.keys;
    if (keys.shown && keys.pane == KeyPane::kTimeline && keys.line == shown.row.line) {
      draw->AddRect({frame.areas.names.left + theme.Px(1), shown.top},
                    {frame.areas.names.right - theme.Px(2), shown.bottom}, theme.text);
    }
    DrawName(context, draw, frame, shown, hovered);
    if (IsUnfolded(context, shown.row)) {
      draw->AddText({frame.areas.names.left + theme.Px(30), FoldTop(frame, shown)}, theme.text_dim,
                    "click: fewer levels");
    }
    draw->PopClipRect();
  }
  const float width = std::max(1.f, std::floor(theme.scale));
  const Box& names = frame.areas.names;
  draw->AddRectFilled({names.right - width, frame.areas.corner.top}, names.max(), theme.grid);
  if (frame.areas.pinned.height() > 0) {
    const float y = frame.areas.pinned.bottom - 2 * width;
    draw->AddRectFilled({names.left, y}, {frame.areas.time.right, y + 2 * width}, theme.text_dim);
  }
}

void DrawFilter(PaneContext& context, const Box& corner) {
  const Theme& theme = context.theme;
  const float margin = theme.Px(4);
  ImGui::SetCursorScreenPos(
      {corner.left + margin, corner.top + (corner.height() - ImGui::GetFrameHeight()) / 2});
  ImGui::SetNextItemWidth(std::max(1.f, corner.width() - 2 * margin));
  char text[256] = {};
  context.state.filter.copy(text, sizeof(text) - 1);
  if (ImGui::InputTextWithHint("##filter", "filter tracks", text, sizeof(text))) {
    context.state.filter = text;
  }
}

Box ThumbOf(const PaneContext& context, const TimelineAreas& areas) {
  Box thumb = areas.scrollbar;
  const auto all = static_cast<float>(context.cache.timeline.layout.tracks.height);
  if (all <= thumb.height()) return thumb;
  const float least = std::min(context.theme.Px(24), thumb.height());
  const float length = std::max(least, thumb.height() * thumb.height() / all);
  const double most = all - thumb.height();
  const double part = context.state.scroll * context.theme.scale / most;
  thumb.top += static_cast<float>(part) * (thumb.height() - length);
  thumb.bottom = thumb.top + length;
  return thumb;
}

void DrawScrollbar(const PaneContext& context, ImDrawList* draw, const TimelineFrame& frame) {
  const Theme& theme = context.theme;
  const Box thumb = ThumbOf(context, frame.areas);
  if (thumb.height() >= frame.areas.scrollbar.height()) return;
  const bool active = context.cache.timeline.drag.what == Drag::kScroll;
  draw->AddRectFilled({thumb.left + theme.Px(2), thumb.top},
                      {thumb.right - theme.Px(2), thumb.bottom},
                      active ? theme.text_dim : theme.grid, theme.Px(3));
}

}  // namespace trainprof
