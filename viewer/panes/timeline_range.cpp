#include "viewer/panes/timeline_range.h"

#include <fmt/format.h>

#include <algorithm>

#include "viewer/navigation/ruler.h"
#include "viewer/panes/hatch.h"
#include "viewer/panes/widgets.h"

namespace trainprof {
namespace {

constexpr size_t kMostItems = 7;

std::optional<RangeReport::Group> GroupOf(State& state, const Interval& range, uint32_t line) {
  LaneStore& store = state.document->store();
  if (!store.Has(line)) return std::nullopt;
  const Lines& lines = state.lines();
  RangeReport::Group group;
  group.title = FirstOf(lines.NameOf(line), 60);
  group.idle = lines.lines()[line].kind == LineKind::kIdle;
  const std::optional<RangeTotals> totals = TotalsOf(store, line, range);
  group.counting = !totals;
  if (!totals) return group;
  group.events = totals->events;
  for (size_t c = 0; c < kCategories; ++c) {
    if (totals->time[c].ns > 0) group.items.push_back({static_cast<Category>(c), totals->time[c]});
  }
  std::stable_sort(group.items.begin(), group.items.end(),
                   [](const auto& a, const auto& b) { return a.time > b.time; });
  if (group.items.size() > kMostItems) group.items.resize(kMostItems);
  return group;
}

// Why the GPU of `line`'s rank was idle: that of the line's device, else the first.
uint32_t IdleLineFor(const Lines& lines, uint32_t line) {
  const std::span<const Line> all = lines.lines();
  uint32_t top = line;
  while (all[top].parent != kNoLine) top = all[top].parent;
  uint32_t first = kNoLine;
  for (uint32_t i = top + 1; i < all.size() && all[i].level > 0; ++i) {
    if (all[i].kind != LineKind::kIdle) continue;
    if (all[i].device == all[line].device) return i;
    if (first == kNoLine) first = i;
  }
  return first;
}

// The report as lines of text, each perhaps with a colour before it.
struct PanelLine {
  std::string left;
  std::string right;
  std::optional<Category> category;
  bool hatched = false;
};

std::vector<PanelLine> LinesOf(const RangeReport& report) {
  std::vector<PanelLine> lines;
  lines.push_back({ShortText(report.length), "Esc clears", std::nullopt, false});
  for (const RangeReport::Group& group : report.groups) {
    const auto count = static_cast<int64_t>(group.events);
    std::string events = Grouped(count) + (count == 1 ? " event" : " events");
    if (group.idle) events.clear();
    if (group.counting) events = "counting ...";
    lines.push_back({group.title, std::move(events), std::nullopt, false});
    for (const RangeReport::Item& item : group.items) {
      const double share = 100 * RankAnalysis::Part(item.time, report.length);
      lines.push_back({std::string(Title(item.category, group.idle)),
                       fmt::format("{}  {:.0f} %", ShortText(item.time), share), item.category,
                       group.idle});
    }
    if (group.items.empty() && !group.counting) {
      lines.push_back({"nothing", "", std::nullopt, false});
    }
  }
  return lines;
}

void DrawPanel(const PaneContext& context, ImDrawList* draw, const Box& time, float left,
               float right, const std::vector<PanelLine>& lines) {
  const Theme& theme = context.theme;
  const float gap = theme.Px(8);
  const float swatch = theme.Px(16);
  const float line_height = ImGui::GetFontSize() + theme.Px(3);
  float width = 0;
  for (const PanelLine& line : lines) {
    width = std::max(width, ImGui::CalcTextSize(line.left.c_str()).x + swatch + 2 * gap +
                                ImGui::CalcTextSize(line.right.c_str()).x);
  }
  width += 2 * gap;
  const float height = line_height * static_cast<float>(lines.size()) + 2 * gap;
  // At the right of the range, else at its left, else inside.
  float x = right + gap;
  if (x + width > time.right) x = left - gap - width;
  if (x < time.left) x = std::max(time.left, time.right - width - gap);
  const float y = time.top + gap;
  const Box box{x, y, x + width, y + height};
  draw->AddRectFilled(box.min(), box.max(), theme.panel, theme.Px(4));
  draw->AddRect(box.min(), box.max(), theme.selection, theme.Px(4));
  Hatcher hatcher(theme, kMostSampleStrokes);
  float at = y + gap;
  for (const PanelLine& line : lines) {
    float text_x = x + gap;
    if (line.category) {
      const Box sample{text_x, at + theme.Px(1), text_x + swatch, at + ImGui::GetFontSize()};
      draw->AddRectFilled(sample.min(), sample.max(), theme.Of(*line.category));
      if (line.hatched) hatcher.Add(sample, *line.category, theme.Of(*line.category));
      text_x += swatch + theme.Px(6);
    }
    draw->AddText({text_x, at}, line.category ? theme.text_dim : theme.text, line.left.c_str());
    const float right_x = box.right - gap - ImGui::CalcTextSize(line.right.c_str()).x;
    draw->AddText({right_x, at}, line.category ? theme.text : theme.text_dim, line.right.c_str());
    at += line_height;
  }
  hatcher.Draw(draw);
}

}  // namespace

RangeReport ReportOf(State& state, const Interval& range, uint32_t line) {
  RangeReport report;
  report.length = range.Length();
  const LineKind kind = state.lines().lines()[line].kind;
  const bool has_lanes = state.lines().lines()[line].lanes > 0;
  if (has_lanes && kind != LineKind::kIdle) {
    if (auto group = GroupOf(state, range, line)) report.groups.push_back(std::move(*group));
  }
  const uint32_t idle = kind == LineKind::kIdle ? line : IdleLineFor(state.lines(), line);
  if (idle != kNoLine) {
    if (auto group = GroupOf(state, range, idle)) report.groups.push_back(std::move(*group));
  }
  return report;
}

void DrawRange(PaneContext& context, ImDrawList* draw, const TimelineFrame& frame) {
  State& state = context.state;
  if (!state.range) return;
  const Theme& theme = context.theme;
  const Box& time = frame.areas.time;
  const float left = std::clamp(frame.XOf(state.range->begin), time.left, time.right);
  const float right = std::clamp(frame.XOf(state.range->end), time.left, time.right);
  if (right <= time.left || left >= time.right) return;
  const ImU32 tint = (theme.selection & ~IM_COL32_A_MASK) | (40u << IM_COL32_A_SHIFT);
  draw->AddRectFilled({left, time.top}, {right, time.bottom}, tint);
  const float line = std::max(1.f, theme.Px(1.5f));
  draw->AddRectFilled({left, time.top}, {left + line, time.bottom}, theme.selection);
  draw->AddRectFilled({right - line, time.top}, {right, time.bottom}, theme.selection);
  const uint32_t begun_on = context.cache.timeline.range_line.value_or(
      frame.rows.empty() ? kNoLine : frame.rows.front().row.line);
  if (begun_on >= state.lines().lines().size()) return;
  DrawPanel(context, draw, time, left, right, LinesOf(ReportOf(state, *state.range, begun_on)));
}

}  // namespace trainprof
