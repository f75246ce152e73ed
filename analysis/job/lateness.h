// Ranks on one clock: whether their times can be compared, and who begins its steps late.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "analysis/job/analysis.h"

namespace trainprof {

// Ranks share one axis of time, which counts from `base_ns`.
struct JobClock {
  int64_t base_ns = 0;  // the earliest of all
  // False where ranks begin too far apart to be of one run: each starts at 0 then.
  bool aligned = true;
  std::vector<Duration> shift;  // by rank: a time on the axis is the rank's own plus this
};

// `base_ns`: of each rank (Trace::base_ns). O(ranks).
JobClock ClockOf(std::span<const int64_t> base_ns);

// How much later than the first rank each begins a step, on average over the steps that all have,
// which are the same by their number. Nothing where clocks are not aligned, for a single rank, and
// where they have no step in common. `ranks` as in clock.shift; those that are null are left out.
// O(ranks * steps * log steps).
std::vector<std::optional<Duration>> LatenessOf(const JobClock& clock,
                                                std::span<const RankAnalysis* const> ranks);

}  // namespace trainprof
