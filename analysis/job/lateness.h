// Ranks beside each other: whether their times can be compared, who is late, and who waits for whom.
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

// How much longer than the rank that waits least each waits for others in a step, on average: it
// would not be faster by that much if it did less itself. Nothing unless each of at least two ranks
// recorded its waits (HostClass::kRankWait). `ranks` that are null are left out. O(ranks).
std::vector<std::optional<Duration>> SlackOf(std::span<const RankAnalysis* const> ranks);

// Takes that off what each finding of the rank promises, and says so: the step would wait so much longer.
void TakeSlackOff(Duration slack, RankAnalysis& rank);

// How late each is in a step, on average. Where all recorded their waits, and these differ by more
// than chance: by how much less it waits for others than the rank that waits longest. Else how much
// later than the first rank it begins a step, over the steps that all have, which are the same by
// their number; nothing then where clocks are not aligned, and where they have no step in common.
// Nothing for a single rank. `ranks` as in clock.shift; those that are null are left out.
// O(ranks * steps * log steps).
std::vector<std::optional<Duration>> LatenessOf(const JobClock& clock,
                                                std::span<const RankAnalysis* const> ranks);

}  // namespace trainprof
