#include "analysis/job/lateness.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/gain.h"

namespace trainprof {
namespace {

// Ranks of one job start within this time, as when they are merged; two runs in one folder do not.
constexpr Duration kMostSkew = Seconds(60 * 60);

// Of the step: below it, which rank waits is chance.
constexpr double kSlackWorthSaying = 0.01;

// The numbers of the steps that all ranks have, in order.
std::vector<int64_t> CommonSteps(std::span<const RankAnalysis* const> ranks) {
  std::vector<int64_t> common;
  for (const Step& step : ranks.front()->steps.steps) common.push_back(step.number);
  for (const RankAnalysis* rank : ranks) {
    std::erase_if(common, [&](int64_t number) { return !rank->steps.Find(number); });
  }
  return common;
}

// What each waits for others in a step; empty unless at least two ranks did, and all.
std::vector<std::optional<Duration>> WaitsOf(std::span<const RankAnalysis* const> ranks) {
  std::vector<std::optional<Duration>> waits(ranks.size());
  size_t there = 0;
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] == nullptr) continue;
    const Duration total = ranks[i]->HostTime(HostClass::kRankWait);
    if (total.ns == 0) return {};
    waits[i] = Duration{total.ns / ranks[i]->steps.divisor()};
    ++there;
  }
  if (there < 2) waits.clear();
  return waits;
}

bool IsWorthSaying(Duration slack, const RankAnalysis& rank) {
  return slack.ToMilliseconds() >= kSlackWorthSaying * rank.PerStepMs(rank.window);
}

}  // namespace

std::vector<std::optional<Duration>> SlackOf(std::span<const RankAnalysis* const> ranks) {
  std::vector<std::optional<Duration>> waits = WaitsOf(ranks);
  std::optional<Duration> least;
  for (const auto& wait : waits) {
    if (wait && (!least || *wait < *least)) least = wait;
  }
  for (auto& wait : waits) {
    if (wait) *wait = *wait - *least;
  }
  waits.resize(ranks.size());
  return waits;
}

void TakeSlackOff(Duration slack, RankAnalysis& rank) {
  if (!IsWorthSaying(slack, rank)) return;
  const double slack_ms = slack.ToMilliseconds();
  for (Finding& finding : rank.findings) {
    Gain& gain = finding.gain;
    LowerTo({gain.low_ms_per_step - slack_ms, gain.high_ms_per_step - slack_ms,
             gain.expected_ms_per_step - slack_ms},
            gain);
    finding.confidence_reasons.push_back(fmt::format(
        "this rank waits {:.1f} ms a step for a slower one: what it saves below that it would wait longer",
        slack_ms));
  }
  RateGainsAgain(rank);
}

JobClock ClockOf(std::span<const int64_t> base_ns) {
  JobClock clock;
  if (base_ns.empty()) return clock;
  const auto [earliest, latest] = std::minmax_element(base_ns.begin(), base_ns.end());
  clock.base_ns = *earliest;
  clock.aligned = static_cast<uint64_t>(*latest) - static_cast<uint64_t>(*earliest) <=
                  static_cast<uint64_t>(kMostSkew.ns);
  for (const int64_t base : base_ns) {
    clock.shift.push_back(Duration{clock.aligned ? base - clock.base_ns : 0});
  }
  return clock;
}

std::vector<std::optional<Duration>> LatenessOf(const JobClock& clock,
                                                std::span<const RankAnalysis* const> ranks) {
  std::vector<std::optional<Duration>> lateness = SlackOf(ranks);
  std::optional<Duration> most;
  for (const auto& slack : lateness) most = std::max(most, slack);
  const bool tells = most && std::all_of(ranks.begin(), ranks.end(), [&](const RankAnalysis* rank) {
                       return rank == nullptr || IsWorthSaying(*most, *rank);
                     });
  if (tells) {
    for (auto& slack : lateness) {
      if (slack) slack = *most - *slack;
    }
    return lateness;
  }
  lateness.assign(ranks.size(), std::nullopt);
  std::vector<size_t> places;
  std::vector<const RankAnalysis*> there;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks[rank] == nullptr) continue;
    places.push_back(rank);
    there.push_back(ranks[rank]);
  }
  if (!clock.aligned || there.size() < 2) return lateness;
  const std::vector<int64_t> common = CommonSteps(there);
  if (common.empty()) return lateness;
  std::vector<uint64_t> late(there.size(), 0);
  for (const int64_t number : common) {
    std::vector<int64_t> begin;
    for (size_t i = 0; i < there.size(); ++i) {
      const Steps& steps = there[i]->steps;
      begin.push_back((steps.steps[*steps.Find(number)].span.begin + clock.shift[places[i]]).ns);
    }
    const int64_t earliest = *std::min_element(begin.begin(), begin.end());
    // Divided first: the sum of many may pass 64 bits when clocks are off by hours.
    for (size_t i = 0; i < late.size(); ++i) {
      late[i] +=
          (static_cast<uint64_t>(begin[i]) - static_cast<uint64_t>(earliest)) / common.size();
    }
  }
  for (size_t i = 0; i < late.size(); ++i) {
    lateness[places[i]] = Duration{static_cast<int64_t>(late[i])};
  }
  return lateness;
}

}  // namespace trainprof
