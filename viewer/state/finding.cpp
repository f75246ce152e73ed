// Findings and search hits: from what is said to where it shows.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "viewer/navigation/ruler.h"
#include "viewer/state/actions.h"

namespace trainprof {
namespace {

const Finding* FindingOf(const State& state) {
  if (!state.document || !state.finding) return nullptr;
  const RankAnalysis* analysis = state.document->Analysis(state.finding->rank);
  if (analysis == nullptr || state.finding->index >= analysis->findings.size()) return nullptr;
  return &analysis->findings[state.finding->index];
}

// Where findings of a rank show as a whole: where idle time is explained; without a device the
// thread that steps.
uint32_t LineOfFindings(const State& state, uint32_t rank) {
  const auto lines = state.lines().lines();
  const RankAnalysis* analysis = state.document->Analysis(rank);
  uint32_t best = kNoLine;
  for (uint32_t line = 0; line < lines.size(); ++line) {
    if (lines[line].rank != rank) continue;
    if (lines[line].kind == LineKind::kIdle) return line;
    const bool steps = lines[line].kind == LineKind::kThread && analysis != nullptr &&
                       lines[line].track == analysis->steps.thread;
    if (steps || best == kNoLine) best = line;
  }
  return best;
}

// The line that holds the evidence's own row.
uint32_t LineOfEvidence(const State& state, uint32_t rank, const Evidence& evidence) {
  const auto lines = state.lines().lines();
  if (evidence.table == Table::kIdle || evidence.table == Table::kBusy) {
    const LineKind kind = evidence.table == Table::kIdle ? LineKind::kIdle : LineKind::kGpu;
    for (uint32_t line = 0; line < lines.size(); ++line) {
      const Line& l = lines[line];
      if (l.rank == rank && l.kind == kind && l.device == evidence.device) return line;
    }
  } else if (evidence.row != kNoRow) {
    const uint32_t line = state.lines().LineOf({rank, evidence.table, evidence.row});
    if (line != kNoLine) return line;
  }
  return LineOfFindings(state, rank);
}

void ShowInstance(State& state) {
  const Finding* finding = FindingOf(state);
  if (finding == nullptr) return;
  const uint32_t rank = state.finding->rank;
  if (finding->evidence.empty()) {
    const uint32_t line = LineOfFindings(state, rank);
    if (line != kNoLine) Reveal(state, line);
    state.message = "This finding is about the whole run: there is no single place to show";
    return;
  }
  const Evidence& evidence = finding->evidence[state.evidence];
  const uint32_t line = LineOfEvidence(state, rank, evidence);
  if (line != kNoLine) Reveal(state, line);
  const Interval when = evidence.when;
  const Duration shift = state.lines().Shift(rank);
  Show(state, {when.begin + shift, when.end + shift});
}

}  // namespace

uint32_t ShownRank(const State& state) {
  const uint32_t chosen = state.rank.value_or(state.document->SlowestRank());
  const uint32_t rank = state.finding ? state.finding->rank : chosen;
  return rank < state.document->ranks() ? rank : 0;
}

void ShowRank(State& state, uint32_t rank) {
  state.rank = rank;
  if (state.finding && state.finding->rank != rank) state.finding.reset();
}

int64_t NumberOfRank(const State& state, uint32_t rank) {
  const Trace& trace = state.document->TraceOf(rank);
  return trace.rank_known ? trace.rank : int64_t{rank};
}

void ShowRankNumber(State& state, int64_t number) {
  if (!state.HasLines()) return;
  std::string there;
  for (uint32_t rank = 0; rank < state.document->ranks(); ++rank) {
    const int64_t its_number = NumberOfRank(state, rank);
    if (its_number == number) return ShowRank(state, rank);
    constexpr size_t kMostNamed = 60;
    if (there.size() > kMostNamed) continue;
    there += fmt::format("{}{}", there.empty() ? "" : ", ", its_number);
    if (there.size() > kMostNamed) there += ", ...";
  }
  state.message = fmt::format("There is no rank {}: there are {}", number, there);
}

void OpenFinding(State& state, const FindingRef& finding) {
  if (!state.HasLines() || finding.rank >= state.document->ranks()) return;
  const std::optional<FindingRef> before = state.finding;
  state.finding = finding;
  state.evidence = 0;
  if (FindingOf(state) == nullptr) {
    state.finding = before;
    return;
  }
  state.message.clear();
  ShowInstance(state);
}

void OpenFindingNumber(State& state, int64_t number) {
  if (!state.HasLines()) return;
  const uint32_t rank = ShownRank(state);
  const RankAnalysis* analysis = state.document->Analysis(rank);
  const size_t count = analysis == nullptr ? 0 : analysis->findings.size();
  if (number < 1 || static_cast<uint64_t>(number) > count) {
    state.message = count == 0
                        ? "There are no findings"
                        : fmt::format("There is no finding {}: the last is {}", number, count);
    return;
  }
  OpenFinding(state, {rank, static_cast<uint32_t>(number - 1)});
}

void TakeEvidenceInView(State& state) {
  const Finding* const finding = FindingOf(state);
  if (finding == nullptr) return;
  const Duration shift = state.lines().Shift(state.finding->rank);
  const auto distance = [&](const Interval& when) {
    const Duration twice = (when.begin - state.view.begin) + (when.end - state.view.end);
    return std::abs((twice + shift + shift).ns);
  };
  int64_t nearest = INT64_MAX;
  for (size_t i = 0; i < finding->evidence.size(); ++i) {
    const int64_t off = distance(finding->evidence[i].when);
    if (off >= nearest) continue;
    nearest = off;
    state.evidence = i;
  }
}

void ShowEvidence(State& state, int direction) {
  if (!state.HasLines()) return;
  const Finding* finding = FindingOf(state);
  if (finding == nullptr) {
    const RankAnalysis* const analysis = state.document->Analysis(ShownRank(state));
    const size_t findings = analysis == nullptr ? 0 : analysis->findings.size();
    const size_t last = std::max<size_t>(findings, 1);
    return OpenFindingNumber(state, direction > 0 ? 1 : static_cast<int64_t>(last));
  }
  const size_t count = finding->evidence.size();
  if (count > 0) state.evidence = (state.evidence + (direction > 0 ? 1 : count - 1)) % count;
  ShowInstance(state);
}

}  // namespace trainprof
