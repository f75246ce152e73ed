// Who waits for whom: what ranks of a job lose in their collectives, and to which rank.
//
// The law. All ranks leave a collective at one time, so who came last was in it for the shortest time: that is the
// exchange itself, and what another was in it longer, it waited. Only lengths are compared, each by one clock. The
// wait belongs to the last rank; but where that one had waited itself, in another communicator since this one's last
// collective, so much of it belongs to the rank that it waited for: the root of a chain. What is not
// longer than ends of one collective differ (ClockOffset::spread) is no wait.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/job/clocks.h"
#include "analysis/job/digest.h"
#include "analysis/job/meetings.h"

namespace trainprof {

// Of one rank, over its counted steps; without steps over all.
struct RankWaits {
  int64_t collectives = 0;  // that were found in other ranks too
  int64_t alone = 0;        // that were not, in the whole trace
  Duration wait;            // for other ranks
  Duration exposed_wait;    // at least that much of it while the rank did nothing else
  Duration exchange;        // what it was in those collectives besides
  // Whose doing most of the wait was, an index, and how much of it.
  std::optional<uint32_t> awaited;
  Duration awaited_wait;
  // By how much the last collectives would have begun earlier had the rank been as early as the
  // second-latest: what fixing this rank alone gives at most. A lateness that several communicators
  // show is counted once.
  Duration lead;
  Duration caused;         // the longest wait in each collective that is its doing, likewise
  int64_t late_steps = 0;  // in which it caused most, and enough to be worth saying
  // What it brought into its first counted step: how much later than the middle rank it came to that step's first
  // collective, less what it took longer from the step's begin. 0 where it came earlier.
  Duration brought;

  bool operator==(const RankWaits&) const = default;
};

struct JobWaits {
  std::vector<RankWaits> ranks;  // as the digests; empty where no collective was matched
  std::vector<std::optional<ClockOffset>> clocks;  // the same
  std::vector<std::string> doubts;                 // Meetings::doubts
  int64_t collectives = 0;
  int64_t steps = 0;       // in which ranks met
  int64_t late_steps = 0;  // in which others waited, worth saying
  // No rank's trace is missing, and all of their collectives were found again.
  bool is_whole = false;
  // The ranks that others wait for, indices: the first caused most. More than one where they come late
  // together, each of them as late as the first. Empty where waits are not worth saying.
  std::vector<uint32_t> late;
  // Others come late in most steps: `late` is only the one that does so most often.
  bool changes = false;

  bool Any() const { return !ranks.empty(); }
  bool operator==(const JobWaits&) const = default;
};

// Of the step: below it, who waits is chance.
inline constexpr double kWaitWorthSaying = 0.01;

// `digests` in the order of their ranks. O(n log n) in all collectives of all ranks.
JobWaits WaitsOf(std::span<const RankDigest> digests);

// How much longer than the rank that waits least each waits in a step: so much it could be slower, and
// the job as fast. By rank; nothing where that is not known. O(ranks).
std::vector<std::optional<Duration>> SlackOf(const JobWaits& waits,
                                             std::span<const RankAnalysis> ranks);

// How much later than the rank that waits most each comes, in a step, on average. O(ranks).
std::vector<std::optional<Duration>> LatenessOf(const JobWaits& waits,
                                                std::span<const RankAnalysis> ranks);

}  // namespace trainprof
