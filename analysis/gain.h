// What a change would give, in ms a step: the graph replayed with it (analysis/graph).
//
// Where [low, high] comes from:
//  1. What no trace tells of how the world answers (Assumption): all answers, and between the least and
//     the most of them lies the gain.
//  2. Steps differ: the standard error of the mean of what single steps gain, of blocks of neighbours; of what every
//     n-th step gains, how many of these the recording happens to hold. What one or two steps gain beyond all others
//     is not expected of a change of what is in most.
//  3. The graph does not explain all of the run: its identity error.
//  4. Runs differ, which one run does not show: half of what its two halves differ by, at least a
//     hundredth of the step; where programs compete for the host's processors, what steps differ by before the change
//     and after it.
//  5. Recording took its part of the calls, which goes by itself: gains are without what it took, as measured or
//     assumed, and it may have been less or more (RecordingCost).
//  6. No step takes less than nothing, nor less than a resource that it still needs.
// GainSources tells how much each of the first five gives.
#pragma once

#include <span>

#include "analysis/finding.h"
#include "analysis/graph/change.h"
#include "analysis/model.h"

namespace trainprof {

// Of one change by itself: gains of several do not add up. `finding` is the one that it fixes. Where the
// identity error is above kMostIdentityError no gain is claimed. A few replays.
Gain GainOf(const RankModel& model, const Finding& finding, const Change& change);

// The share of gains, measured before and after the change, that shall lie within them.
inline constexpr double kCoverageTarget = 0.9;

inline constexpr double kMostIdentityError = 0.05;
inline bool IsTrusted(const RankModel& model) {
  return model.step_replay->identity_error() <= kMostIdentityError;
}
// Whether what a change gives is replayed: some have no row in the graph.
inline bool IsReplay(const Change& change) {
  return change.edit != Edit::kFillIdle && !change.in_other_steps &&
         (!change.rows.empty() || !change.calls.empty() || !change.spans.empty() ||
          !change.ops.empty());
}

// What all of these changes give together, as expected. One or a few replays.
double JointGain(const RankModel& model, std::span<const Change* const> changes);

// What a rank saves by itself may give its job less: bounds `gain` by that. How it is spread over the
// steps is then not known.
void LowerTo(const Gain& most, Gain& gain);

// Whether it may well be that neither of two gains of one recording is more than the other. What runs differ by they
// share.
bool MayBeEqual(const Gain& a, const Gain& b);

}  // namespace trainprof
