// Opening a job, and taking over what its loader hands on.
#include <algorithm>

#include "viewer/state/actions.h"

namespace trainprof {
namespace {

constexpr size_t kMostRecent = 10;
constexpr size_t kStepsAtFirst = 5;
// Of a job with more ranks only the worst and the one in the middle are open.
constexpr size_t kMostRanksOpen = 2;

Interval Shifted(const Interval& interval, Duration by) {
  return {interval.begin + by, interval.end + by};
}

// The axis counts from the earliest rank's begin: an earlier one moves all that was chosen.
void FollowAxis(State& state) {
  const Duration by{state.axis_base_ns - state.lines().base_ns()};
  state.axis_base_ns = state.lines().base_ns();
  if (by.ns == 0 || !state.lines().aligned()) return;
  state.view = Shifted(state.view, by);
  if (state.range) state.range = Shifted(*state.range, by);
  for (Bookmark& bookmark : state.bookmarks) bookmark.at = bookmark.at + by;
}

// The first steps that count, else everything.
Interval FirstView(const State& state) {
  const uint32_t rank = state.document->SlowestRank();
  const RankAnalysis* analysis = state.document->Analysis(rank);
  if (analysis == nullptr) return state.lines().extent();
  const std::vector<Step>& steps = analysis->device_steps.steps;
  if (steps.empty()) return state.lines().extent();
  const Step& last = steps[std::min(steps.size(), kStepsAtFirst) - 1];
  return Shifted({steps.front().span.begin, last.span.end}, state.lines().Shift(rank));
}

void CollapseOtherRanks(State& state) {
  if (state.document->ranks() <= kMostRanksOpen) return;
  const uint32_t slowest = state.document->SlowestRank();
  const uint32_t median = state.document->MedianRank();
  const auto lines = state.lines().lines();
  for (uint32_t line = 0; line < lines.size(); ++line) {
    const bool other = lines[line].rank != slowest && lines[line].rank != median;
    if (lines[line].kind == LineKind::kRank && other) state.collapsed.insert(line);
  }
}

}  // namespace

void Close(State& state) {
  State fresh;
  fresh.settings = std::move(state.settings);
  fresh.view_width_px = state.view_width_px;
  fresh.demo = std::move(state.demo);
  fresh.closing = std::move(state.closing);
  if (state.document) {
    state.document->Cancel();
    fresh.closing.push_back(std::move(state.document));
  }
  state = std::move(fresh);
}

void Open(State& state, const std::filesystem::path& path) {
  Close(state);
  state.document = std::make_shared<Document>(path);
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  std::vector<std::filesystem::path>& recent = state.settings.recent;
  std::erase(recent, absolute);
  recent.insert(recent.begin(), absolute);
  if (recent.size() > kMostRecent) recent.resize(kMostRecent);
}

bool UpdateDocument(State& state) {
  std::erase_if(state.closing, [](const auto& document) { return document->Stopped(); });
  UpdateSearch(state);
  if (!state.document || !state.document->Update()) return false;
  if (!state.HasLines()) return true;
  FollowAxis(state);
  const LoadProgress progress = state.document->progress();
  if (progress.done && !state.ranks_opened) {
    state.ranks_opened = true;
    CollapseOtherRanks(state);
  }
  state.view = state.view_chosen ? ClampView(state.view, state.lines().extent())
                                 : ViewOf(FirstView(state), state.lines().extent());
  // Hits of ranks that came later are missing.
  state.search.due = !state.search.query.Empty();
  UpdateSearch(state);
  return true;
}

}  // namespace trainprof
