// What a change would give, in ms a step.
#pragma once

#include "analysis/change.h"
#include "analysis/finding.h"
#include "analysis/model.h"

namespace trainprof {

// Of one change by itself: gains of several do not add up. `finding` is the one that it fixes, whose
// cost is known. O(calls + the change's rows).
Gain GainOf(const RankModel& model, const Finding& finding, const Change& change);

}  // namespace trainprof
