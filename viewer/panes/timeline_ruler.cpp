#include "viewer/panes/timeline_ruler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "viewer/panes/widgets.h"

namespace trainprof {
namespace {

constexpr float kTickSpacing = 110;  // points, at least
constexpr float kStepSpacing = 12;   // between borders that are still drawn

// Calls visit(index, begin, end) for the steps in view of the rank that the verdict speaks of,
// where they are far enough apart to be told. O(log n + steps in view).
template <class Visitor>
void VisitSteps(const PaneContext& context, const TimelineFrame& frame, Visitor visit) {
  const State& state = context.state;
  const uint32_t rank = state.document->SlowestRank();
  const RankAnalysis* analysis = state.document->Analysis(rank);
  if (analysis == nullptr || analysis->steps.steps.empty()) return;
  const std::vector<Step>& steps = analysis->steps.steps;
  const Duration shift = state.lines().Shift(rank);
  const TraceTime begin = state.view.begin - shift;
  const TraceTime end = state.view.end - shift;
  const auto first = std::partition_point(steps.begin(), steps.end(),
                                          [&](const Step& s) { return s.span.end <= begin; });
  const auto last =
      std::partition_point(first, steps.end(), [&](const Step& s) { return s.span.begin < end; });
  const float room = frame.areas.time.width() / context.theme.Px(kStepSpacing);
  if (static_cast<float>(last - first) > room) return;
  for (auto step = first; step != last; ++step) {
    visit(step->number, frame.XOf(step->span.begin + shift), frame.XOf(step->span.end + shift));
  }
}

float LineWidth(const Theme& theme) { return std::max(1.f, std::floor(theme.scale)); }

void DrawVertical(ImDrawList* draw, float x, const Box& box, ImU32 color, float width) {
  if (x < box.left || x >= box.right) return;
  x = std::floor(x);
  draw->AddRectFilled({x, box.top}, {x + width, box.bottom}, color);
}

// Text within [left, right], cut; nothing where there is no room for it.
void DrawWithin(ImDrawList* draw, float left, float right, float y, ImU32 color,
                const std::string& text) {
  if (ImGui::CalcTextSize(text.c_str()).x > right - left) return;
  draw->AddText({std::floor(left), std::floor(y)}, color, text.c_str());
}

}  // namespace

Ruler RulerOf(const PaneContext& context, const TimelineFrame& frame) {
  return MakeRuler(frame.scale, static_cast<int32_t>(context.theme.Px(kTickSpacing)), {0});
}

void DrawBackground(const PaneContext& context, ImDrawList* draw, const TimelineFrame& frame,
                    const Ruler& ruler) {
  const Theme& theme = context.theme;
  const TimelineAreas& areas = frame.areas;
  for (const ShownRow& shown : frame.rows) {
    const Box& clip = frame.ClipOf(shown);
    const bool is_rank = context.state.lines().lines()[shown.row.line].kind == LineKind::kRank;
    if (!is_rank && shown.row.line % 2 == 0) continue;
    const float top = std::max(shown.top, clip.top);
    const float bottom = std::min(shown.bottom, clip.bottom);
    draw->AddRectFilled({clip.left, top}, {clip.right, bottom},
                        is_rank ? theme.window : theme.stripe);
  }
  const ImU32 faint = (theme.grid & ~IM_COL32_A_MASK) | (110u << IM_COL32_A_SHIFT);
  for (const Tick& tick : ruler.ticks) {
    DrawVertical(draw, frame.XOf(tick.time), areas.time, faint, LineWidth(theme));
  }
  VisitSteps(context, frame, [&](int64_t, float left, float) {
    DrawVertical(draw, left, areas.time, theme.grid, 2 * LineWidth(theme));
  });
}

void DrawRuler(const PaneContext& context, ImDrawList* draw, const TimelineFrame& frame,
               const Ruler& ruler) {
  const Theme& theme = context.theme;
  const Box& box = frame.areas.ruler;
  const float line = box.height() / 2;
  const float text = (line - ImGui::GetFontSize()) / 2;
  const float gap = theme.Px(4);
  draw->PushClipRect(box.min(), box.max(), true);
  VisitSteps(context, frame, [&](int64_t number, float left, float right) {
    DrawVertical(draw, left, {box.left, box.top, box.right, box.top + line}, theme.text_dim,
                 LineWidth(theme));
    DrawWithin(draw, std::max(left, box.left) + gap, std::min(right, box.right) - gap,
               box.top + text, theme.text, fmt::format("step {}", number));
  });
  float free = box.left;
  if (ruler.anchored) {
    const std::string anchor = ruler.anchor_label;
    draw->AddText({box.left + gap, box.top + line + text}, theme.text, anchor.c_str());
    free = box.left + 3 * gap + ImGui::CalcTextSize(anchor.c_str()).x;
  }
  for (const Tick& tick : ruler.ticks) {
    const float x = frame.XOf(tick.time);
    DrawVertical(draw, x, {box.left, box.top + line, box.right, box.bottom}, theme.grid,
                 LineWidth(theme));
    if (x < free) continue;
    DrawWithin(draw, x + gap, box.right, box.top + line + text, theme.text_dim, tick.label);
  }
  draw->PopClipRect();
  draw->AddRectFilled({box.left, box.bottom - LineWidth(theme)}, box.max(), theme.grid);
}

void DrawBookmarks(const PaneContext& context, ImDrawList* draw, const TimelineFrame& frame) {
  const Theme& theme = context.theme;
  const Box& ruler = frame.areas.ruler;
  for (const Bookmark& bookmark : context.state.bookmarks) {
    const float x = frame.XOf(bookmark.at);
    if (x < ruler.left || x >= ruler.right) continue;
    DrawVertical(draw, x, frame.areas.time, theme.warning, LineWidth(theme));
    const float size = theme.Px(5);
    draw->AddTriangleFilled({x - size, ruler.bottom - 2 * size},
                            {x + size, ruler.bottom - 2 * size}, {x, ruler.bottom}, theme.warning);
  }
}

void DrawCursor(const PaneContext& context, ImDrawList* draw, const TimelineFrame& frame) {
  const State& state = context.state;
  const Theme& theme = context.theme;
  if (!state.hovered_time) return;
  const Box& box = frame.areas.ruler;
  const float x = frame.XOf(*state.hovered_time);
  DrawVertical(draw, x, {box.left, box.top, box.right, frame.areas.time.bottom}, theme.text_dim,
               LineWidth(theme));
  // As many digits as a pixel tells.
  int64_t unit = 1;
  const int64_t per_pixel = state.view.Length().ns / frame.scale.width_px;
  while (unit * 10 <= per_pixel) unit *= 10;
  const int64_t ns = state.hovered_time->ns;
  const std::string text = ExactText(Duration{ns / unit * unit});
  const ImVec2 size = ImGui::CalcTextSize(text.c_str());
  const float gap = theme.Px(4);
  const bool left_of_it = x + size.x + 3 * gap > box.right;
  const float left = left_of_it ? x - size.x - 2 * gap : x;
  const float top = box.top + box.height() / 2;
  draw->AddRectFilled({left, top}, {left + size.x + 2 * gap, box.bottom}, theme.text);
  draw->AddText({left + gap, top + (box.height() / 2 - size.y) / 2}, theme.panel, text.c_str());
}

}  // namespace trainprof
