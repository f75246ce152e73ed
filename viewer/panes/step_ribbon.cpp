// A bar a step, as high as it is long, stacked by what its time went to.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "viewer/navigation/ruler.h"
#include "viewer/panes/hatch.h"
#include "viewer/panes/timeline_frame.h"
#include "viewer/panes/widgets.h"
#include "viewer/state/actions.h"

namespace trainprof {
namespace {

constexpr float kLeastBar = 3;  // points; more steps than fit share a bar
constexpr float kMostBar = 46;
// Bars of more events are made on a thread.
constexpr size_t kEventsAtOnce = 20'000;

struct Ribbon {
  Box facts;  // at the left: how many steps, which colours
  Box bars;
  float bar_width = 0;
  std::vector<uint32_t> steps;  // by bar

  float LeftOf(size_t bar) const { return bars.left + static_cast<float>(bar) * bar_width; }
  size_t BarAt(float x) const {
    return static_cast<size_t>(std::max(0.f, (x - bars.left) / bar_width));
  }
};

// Until they are made, only how long each step is.
const StepBars& BarsOf(PaneContext& context) {
  State& state = context.state;
  TimelineCache& cache = context.cache.timeline;
  const uint32_t rank = state.document->SlowestRank();
  if (const RankAnalysis* analysis = state.document->Analysis(rank)) {
    const Trace& trace = state.document->TraceOf(rank);
    const StepBarsKey key{state.document, analysis, rank, state.lines().Shift(rank)};
    const bool at_once = trace.ranges.size() + trace.device_ops.size() <= kEventsAtOnce;
    const StepBars* const bars = cache.bars.Get(
        key, at_once,
        [document = state.document, lines = state.document->shared_lines(), rank, analysis] {
          return MakeStepBars(*lines, rank, analysis->steps, analysis);
        });
    if (bars != nullptr) return *bars;
  }
  cache.bare_bars = MakeStepBars(state.lines(), rank, state.document->StepsOf(rank), nullptr);
  return cache.bare_bars;
}

Ribbon MakeRibbon(const PaneContext& context, const StepBars& bars) {
  const Theme& theme = context.theme;
  const ImVec2 min = ImGui::GetCursorScreenPos();
  const ImVec2 size = ImGui::GetContentRegionAvail();
  const TimelineAreas areas = MakeAreas(context, min, {min.x + size.x, min.y + size.y});
  Ribbon ribbon;
  ribbon.facts = {min.x + theme.Px(6), min.y + theme.Px(3), areas.corner.right - theme.Px(8),
                  min.y + size.y};
  // Below the bars there is room for the mark of the view, above for that of the clipped ones.
  ribbon.bars = {areas.ruler.left, min.y + theme.Px(8), areas.ruler.right,
                 min.y + size.y - theme.Px(6)};
  const float fit = ribbon.bars.width() / theme.Px(kLeastBar);
  const auto shown = std::count_if(bars.parts.begin(), bars.parts.end(),
                                   [](const auto& part) { return part.total.ns > 0; });
  const size_t for_a_bar = static_cast<size_t>(std::max<std::ptrdiff_t>(shown, 1));
  const auto most = std::min(kMostRibbonRects / for_a_bar, static_cast<size_t>(std::max(1.f, fit)));
  ribbon.steps = WorstOfColumns(bars.spans, most);
  const auto count = static_cast<float>(std::max<size_t>(1, ribbon.steps.size()));
  ribbon.bar_width = std::min(ribbon.bars.width() / count, theme.Px(kMostBar));
  return ribbon;
}

void DrawBar(const PaneContext& context, ImDrawList* draw, const StepBars& bars,
             const Ribbon& ribbon, size_t bar, Hatcher& hatcher) {
  const Theme& theme = context.theme;
  const uint32_t step = ribbon.steps[bar];
  const Duration length = bars.spans[step].Length();
  const double px_per_ns = ribbon.bars.height() / static_cast<double>(bars.limit.ns);
  const float gap = ribbon.bar_width >= theme.Px(5) ? std::max(1.f, theme.Px(1)) : 0;
  Box box{ribbon.LeftOf(bar), 0, ribbon.LeftOf(bar + 1) - gap, 0};
  const auto y_of = [&](Duration from_below) {
    const auto up = static_cast<float>(static_cast<double>(from_below.ns) * px_per_ns);
    return std::max(ribbon.bars.bottom - up, ribbon.bars.top);
  };
  Duration below;
  for (size_t p = 0; p < bars.parts.size(); ++p) {
    const Duration time = bars.PartsOf(step)[p];
    if (time.ns == 0) continue;
    box.bottom = y_of(below);
    below += time;
    box.top = y_of(below);
    if (box.height() < 0.5f) continue;
    const ImU32 color = theme.Of(bars.parts[p].category);
    draw->AddRectFilled(box.min(), box.max(), color);
    if (bars.parts[p].idle) hatcher.Add(box, bars.parts[p].category, color);
  }
  if (below.ns == 0) {  // nothing is known of it but its length
    draw->AddRectFilled({box.left, y_of(length)}, {box.right, ribbon.bars.bottom}, theme.grid);
  }
  if (length <= bars.limit) return;
  const float middle = (box.left + box.right) / 2;
  const float size = std::max(theme.Px(2.5f), std::min(theme.Px(5), box.width() / 2));
  const float tip = ribbon.bars.top - theme.Px(7);
  draw->AddTriangleFilled({middle, tip}, {middle + size, tip + theme.Px(6)},
                          {middle - size, tip + theme.Px(6)}, theme.warning);
}

// A line under the bars of the steps that are in view.
void DrawViewMark(const PaneContext& context, ImDrawList* draw, const StepBars& bars,
                  const Ribbon& ribbon) {
  const Interval& view = context.state.view;
  const auto first = std::partition_point(bars.spans.begin(), bars.spans.end(),
                                          [&](const Interval& s) { return s.end <= view.begin; });
  const auto last = std::partition_point(first, bars.spans.end(),
                                         [&](const Interval& s) { return s.begin < view.end; });
  if (first == last) return;
  const auto per_bar =
      static_cast<double>(ribbon.steps.size()) / static_cast<double>(bars.spans.size());
  const auto x_of = [&](auto step) {
    return ribbon.bars.left +
           static_cast<float>(static_cast<double>(step - bars.spans.begin()) * per_bar) *
               ribbon.bar_width;
  };
  const float top = ribbon.bars.bottom + context.theme.Px(1);
  const float right = std::max(x_of(last), x_of(first) + context.theme.Px(3));
  draw->AddRectFilled({x_of(first), top}, {right, top + context.theme.Px(3)}, context.theme.text);
}

// The parts that took most, as many as there is room for.
void DrawFacts(const PaneContext& context, ImDrawList* draw, const StepBars& bars,
               const Ribbon& ribbon) {
  const Theme& theme = context.theme;
  const Box& box = ribbon.facts;
  const float line = ImGui::GetFontSize() + theme.Px(2);
  float y = box.top;
  const auto all = static_cast<int64_t>(bars.spans.size());
  const int64_t count = bars.parts.empty() ? all : bars.detailed;
  std::string head = fmt::format("mean of {} step{}", Grouped(count), count == 1 ? "" : "s");
  if (!bars.source.empty()) head = bars.source + ", " + head;
  const std::string_view fits = FitText(head, box.width());
  draw->AddText({box.left, y}, theme.text, fits.data(), fits.data() + fits.size());
  std::vector<StepBars::Part> parts = bars.parts;
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.total > b.total; });
  Hatcher hatcher(theme, kMostSampleStrokes);
  for (const StepBars::Part& part : parts) {
    y += line;
    if (part.total.ns == 0 || y + line > box.bottom) break;
    const float side = ImGui::GetFontSize() - theme.Px(3);
    const Box sample{box.left, y + theme.Px(2), box.left + side * 1.4f, y + theme.Px(2) + side};
    draw->AddRectFilled(sample.min(), sample.max(), theme.Of(part.category));
    if (part.idle) hatcher.Add(sample, part.category, theme.Of(part.category));
    const std::string time = ShortText(Duration{part.total.ns / std::max<int64_t>(count, 1)});
    const float time_left = box.right - ImGui::CalcTextSize(time.c_str()).x;
    const float left = sample.right + theme.Px(5);
    const std::string_view title = FitText(part.title, time_left - left - theme.Px(4));
    draw->AddText({left, y}, theme.text_dim, title.data(), title.data() + title.size());
    draw->AddText({time_left, y}, theme.text_dim, time.c_str());
  }
  hatcher.Draw(draw);
}

void DrawBarTooltip(const PaneContext& context, const StepBars& bars, const Ribbon& ribbon,
                    size_t bar) {
  const uint32_t step = ribbon.steps[bar];
  const Duration length = bars.spans[step].Length();
  const size_t first = bars.spans.size() * bar / ribbon.steps.size();
  const size_t last = bars.spans.size() * (bar + 1) / ribbon.steps.size();
  ImGui::BeginTooltip();
  Text(
      fmt::format("step {}: {}", bars.numbers[step], ExactText(Duration{length.ns / 1000 * 1000})));
  const double off = 100 * (RankAnalysis::Part(length, bars.median) - 1);
  TextIn(context.theme.text_dim, fmt::format("{:+.1f} % against the median", off));
  if (last - first > 1) {
    TextIn(context.theme.text_dim, fmt::format("the longest of steps {} to {}", bars.numbers[first],
                                               bars.numbers[last - 1]));
  }
  if (length > bars.limit) TextIn(context.theme.warning, "longer than its bar");
  const std::span<const Duration> parts = bars.PartsOf(step);
  bool any = false;
  for (size_t p = parts.size(); p-- > 0;) {
    if (parts[p].ns == 0) continue;
    any = true;
    TextIn(context.theme.Of(bars.parts[p].category), "\xe2\x96\xa0");
    ImGui::SameLine();
    Text(fmt::format("{}  {}", ShortText(parts[p]), bars.parts[p].title));
  }
  if (!any && !bars.parts.empty()) {
    TextIn(context.theme.text_dim, "devices were not recorded during this step");
  }
  ImGui::EndTooltip();
}

void HandleMouse(PaneContext& context, ImDrawList* draw, const StepBars& bars,
                 const Ribbon& ribbon) {
  const Box& box = ribbon.bars;
  if (box.width() < 1 || box.height() < 1) return;
  ImGui::SetCursorScreenPos({box.left, box.top - context.theme.Px(8)});
  ImGui::InvisibleButton("steps", {box.width(), box.height() + context.theme.Px(12)});
  if (!ImGui::IsItemHovered()) return;
  const size_t bar = ribbon.BarAt(ImGui::GetIO().MousePos.x);
  if (bar >= ribbon.steps.size()) return;
  draw->AddRect({ribbon.LeftOf(bar), box.top}, {ribbon.LeftOf(bar + 1), box.bottom},
                context.theme.text);
  DrawBarTooltip(context, bars, ribbon, bar);
  if (ImGui::IsItemClicked(0)) {
    ShowStep(context.state, bars.numbers[ribbon.steps[bar]]);
  }
}

}  // namespace

void DrawStepRibbon(PaneContext& context) {
  if (!context.state.HasLines()) return;
  const ImVec2 size = ImGui::GetContentRegionAvail();
  if (size.x < 1 || size.y < 1) return;
  const StepBars& bars = BarsOf(context);
  const Ribbon ribbon = MakeRibbon(context, bars);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  if (bars.spans.empty()) {
    draw->AddText({ribbon.facts.left, ribbon.facts.top}, context.theme.text_dim,
                  bars.analysed ? "no steps found in this trace" : "looking for steps ...");
    return;
  }
  Hatcher hatcher(context.theme, kMostRibbonStrokes);
  for (size_t bar = 0; bar < ribbon.steps.size(); ++bar) {
    DrawBar(context, draw, bars, ribbon, bar, hatcher);
  }
  hatcher.Draw(draw);
  DrawViewMark(context, draw, bars, ribbon);
  DrawFacts(context, draw, bars, ribbon);
  HandleMouse(context, draw, bars, ribbon);
}

}  // namespace trainprof
