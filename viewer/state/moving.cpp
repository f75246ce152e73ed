// Moving about in time.
#include <fmt/format.h>

#include <charconv>

#include "viewer/navigation/ruler.h"
#include "viewer/state/actions.h"

namespace trainprof {
namespace {

void SetView(State& state, const Interval& view) {
  state.view = view;
  state.view_chosen = true;
}

void Jump(State& state, const Interval& view) {
  state.history.Leave(state.view);
  SetView(state, view);
}

const Steps* StepsOf(const State& state, uint32_t rank) {
  const RankAnalysis* analysis = state.document->Analysis(rank);
  return analysis == nullptr ? nullptr : &analysis->steps;
}

std::string_view Trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

std::optional<int64_t> ParseNumber(std::string_view text) {
  int64_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || rest != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

void Zoom(State& state, TraceTime at, double factor) {
  if (!state.HasLines() || !(factor > 0)) return;
  SetView(state, ZoomAt(state.view, at, factor, state.lines().extent()));
}

void PanBy(State& state, double pixels) {
  if (!state.HasLines() || state.view_width_px <= 0) return;
  SetView(state, Pan(state.view, pixels, state.view_width_px, state.lines().extent()));
}

void Show(State& state, const Interval& what) {
  if (state.HasLines()) Jump(state, ViewOf(what, state.lines().extent()));
}

void ShowTimes(State& state, std::optional<TraceTime> from, std::optional<TraceTime> to) {
  if (!state.HasLines()) return;
  const Interval extent = state.lines().extent();
  const Interval wanted{from.value_or(extent.begin), to.value_or(extent.end)};
  const auto text = [](TraceTime t) { return ShortText(t - TraceTime{0}); };
  if (from && to && wanted.Empty()) {
    state.message = fmt::format("{} is not before {}", text(wanted.begin), text(wanted.end));
  } else if (wanted.Empty() ||
             (ClampView(wanted, extent) != wanted && Intersect(wanted, extent).Empty())) {
    const std::string where =
        !to     ? fmt::format("from {} on", text(wanted.begin))
        : !from ? fmt::format("before {}", text(wanted.end))
                : fmt::format("from {} to {}", text(wanted.begin), text(wanted.end));
    state.message = fmt::format("There is nothing {}: the job goes from {} to {}", where,
                                text(extent.begin), text(extent.end));
  } else {
    Jump(state, ClampView(wanted, extent));
  }
}

void ShowAll(State& state) {
  if (state.HasLines()) Jump(state, ClampView(state.lines().extent(), state.lines().extent()));
}

void Back(State& state) {
  if (const auto view = state.history.Back(state.view)) return SetView(state, *view);
  state.message = "No earlier view";
}

void Forward(State& state) {
  if (const auto view = state.history.Forward(state.view)) return SetView(state, *view);
  state.message = "No later view";
}

void ShowStep(State& state, int64_t number) {
  if (!state.HasLines()) return;
  const uint32_t rank = ShownRank(state);
  const Steps* steps = StepsOf(state, rank);
  if (steps == nullptr || steps->steps.empty()) {
    state.message = "The trace has no steps";
    return;
  }
  const std::optional<size_t> step = steps->Find(number);
  if (!step) {
    state.message = fmt::format("There is no step {}: the first is {}, the last {}", number,
                                steps->steps.front().number, steps->steps.back().number);
    return;
  }
  const Duration shift = state.lines().Shift(rank);
  const Interval span = steps->steps[*step].span;
  Show(state, {span.begin + shift, span.end + shift});
}

std::optional<int64_t> StepInView(const State& state) {
  if (!state.HasLines()) return std::nullopt;
  const uint32_t rank = ShownRank(state);
  const Steps* steps = StepsOf(state, rank);
  if (steps == nullptr) return std::nullopt;
  const TraceTime middle = state.view.begin + Duration{state.view.Length().ns / 2};
  const TraceTime at = middle - state.lines().Shift(rank);
  for (size_t i = 0; i < steps->count(); ++i) {
    const Interval& span = steps->steps[i].span;
    if (span.begin <= at && at < span.end) return steps->steps[i].number;
  }
  return std::nullopt;
}

void GoTo(State& state, std::string_view text) {
  if (!state.HasLines()) return;
  std::string_view wanted = Trimmed(text);
  constexpr std::string_view kStep = "step";
  if (wanted.substr(0, kStep.size()) == kStep) wanted = Trimmed(wanted.substr(kStep.size()));
  if (const auto number = ParseNumber(wanted)) return ShowStep(state, *number);
  const auto at = ParseTimeText(wanted);
  if (!at) {
    state.message =
        fmt::format("'{}' is neither a step (51) nor a time (1.5 s, 820 ms)", wanted.substr(0, 40));
    return;
  }
  const Duration half{state.view.Length().ns / 2};
  Jump(state, ClampView({*at - half, *at + half}, state.lines().extent()));
}

}  // namespace trainprof
