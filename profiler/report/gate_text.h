// What the gate says, for people.
#pragma once

#include <string>

#include "profiler/gate/gate.h"

namespace trainprof {

// What `trainprof check` prints: a line for each finding and budget, what was not checked, why it is inconclusive, and
// last PASS, FAIL or INCONCLUSIVE. `accepts_inconclusive`: --allow-inconclusive.
std::string GateText(const JobAnalysis& job, const GateResult& gate, bool accepts_inconclusive);

// Its last line, without a line's end: "FAIL: 1 finding of severity error".
std::string GateVerdict(const GateResult& gate, bool accepts_inconclusive = false);

// "train.py:88 Batcher.next (aten::item)"; "" where the place is not known.
std::string PlaceText(const Site& site);

}  // namespace trainprof
