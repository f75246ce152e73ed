#include "viewer/panes/inspector.h"

#include <fmt/format.h>

#include "analysis/job/job.h"
#include "viewer/navigation/ruler.h"

namespace trainprof {
namespace {

struct TabOf {
  const char* title;
  void (*draw)(PaneContext& context);
};

// In the order of Tab.
constexpr TabOf kTabList[kTabs] = {{"Kernels", DrawKernels}, {"Ops", DrawOps},
                                   {"Sites", DrawSites},     {"Ranks", DrawRanks},
                                   {"Memory", DrawMemory},   {"Quality", DrawQuality}};

// By the devices' time of the steps, or by the host's.
int64_t StepsWithin(const Steps& steps, const IntervalSet& window, bool of_devices) {
  int64_t count = 0;
  for (const Step& step : steps.steps) {
    const Interval& time = of_devices ? step.device : step.span;
    if (window.TotalWithin(time) == time.Length()) ++count;
  }
  return count;
}

Scope OfRange(const State& state, uint32_t rank, const Steps& steps, const Interval& range,
              bool of_devices) {
  const Duration shift = state.lines().Shift(rank);
  Scope scope{.rank = rank,
              .window = IntervalSet::Union({{range.begin - shift, range.end - shift}})};
  scope.steps = StepsWithin(steps, scope.window, of_devices);
  scope.what = fmt::format("in the selected range of {}", ShortText(range.Length()));
  return scope;
}

Scope OfSteps(uint32_t rank, const Trace& trace, const Steps& steps, bool of_devices) {
  Scope scope{.rank = rank,
              .window = of_devices ? steps.device_window : steps.window,
              .steps = static_cast<int64_t>(steps.count())};
  if (scope.steps == 0 || scope.window.Empty()) {
    const TraceTime end = trace.extent.end + Nanoseconds(1);  // events of no length at the end
    scope.window = IntervalSet::Union({{trace.extent.begin, end}});
    scope.steps = 0;
    scope.what = "over the whole trace: it has no steps";
    return scope;
  }
  const std::string length = ShortText(scope.window.Total());
  scope.what =
      fmt::format("over {} {} ({})", scope.steps, scope.steps == 1 ? "step" : "steps", length);
  if (steps.warmup_steps > 0) {
    scope.what += fmt::format(", {} of warm-up left out", steps.warmup_steps);
  }
  return scope;
}

}  // namespace

std::string RankName(const State& state, uint32_t rank) {
  std::string name = fmt::format("rank {}", NumberOfRank(state, rank));
  const JobAnalysis* const job = state.document->job();
  const bool slowest = rank == state.document->SlowestRank() && state.document->ranks() > 1 &&
                       !(job != nullptr && AreAlike(*job));
  if (slowest) name += " (slowest)";
  return name;
}

void RankChooser(PaneContext& context, const char* id) {
  State& state = context.state;
  const size_t ranks = state.document->ranks();
  if (ranks < 2) return;
  const uint32_t shown = ShownRank(state);
  ImGui::PushID(id);
  ImGui::SetNextItemWidth(context.theme.Px(140));
  if (ImGui::BeginCombo("##rank", RankName(state, shown).c_str())) {
    ImGuiListClipper clipper;
    clipper.Begin(static_cast<int>(ranks));
    while (clipper.Step()) {
      for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
        const auto rank = static_cast<uint32_t>(i);
        ImGui::PushID(i);
        if (ImGui::Selectable(RankName(state, rank).c_str(), rank == shown)) ShowRank(state, rank);
        ImGui::PopID();
      }
    }
    ImGui::EndCombo();
  }
  ImGui::PopID();
}

Scope ScopeOf(PaneContext& context, bool of_devices) {
  State& state = context.state;
  std::optional<Interval>& range = context.cache.inspector.range;
  if (!ImGui::IsMouseDown(ImGuiMouseButton_Left)) range = state.range;
  const uint32_t rank = ShownRank(state);
  const RankAnalysis* const analysis = state.document->Analysis(rank);
  const bool of_analysis = of_devices && analysis != nullptr;
  const Steps& steps = of_analysis ? analysis->device_steps : state.document->StepsOf(rank);
  if (range) return OfRange(state, rank, steps, *range, of_analysis);
  return OfSteps(rank, state.document->TraceOf(rank), steps, of_analysis);
}

void ScopeLine(const PaneContext& context, const Scope& scope, bool there) {
  std::string text = scope.what;
  if (context.state.document->ranks() > 1) text = RankName(context.state, scope.rank) + ", " + text;
  if (!there) text += ": computing ...";
  ImGui::PushStyleColor(ImGuiCol_Text, context.theme.text_dim);
  CutText(text);
  ImGui::PopStyleColor();
}

void DrawInspector(PaneContext& context) {
  State& state = context.state;
  if (!state.HasLines()) return;
  std::optional<int>& shown = context.cache.inspector.inputs.shown_tab;
  const int wanted = static_cast<int>(state.tab);
  if (!ImGui::BeginTabBar("inspector", ImGuiTabBarFlags_FittingPolicyScroll)) return;
  for (int tab = 0; tab < static_cast<int>(kTabs); ++tab) {
    // Told only when something else than a click on a tab has chosen one.
    const bool tell = shown != wanted && tab == wanted;
    const ImGuiTabItemFlags flags = tell ? ImGuiTabItemFlags_SetSelected : 0;
    const TabOf& item = kTabList[tab];
    if (!ImGui::BeginTabItem(item.title, nullptr, flags)) continue;
    if (shown == wanted) state.tab = static_cast<Tab>(tab);
    item.draw(context);
    ImGui::EndTabItem();
  }
  ImGui::EndTabBar();
  shown = static_cast<int>(state.tab);
}

}  // namespace trainprof
