// What else gets shorter when the host stops waiting: free to run ahead of the device, it fills the
// device's queue, and idle time that came of its pace goes too.
#pragma once

#include <vector>

#include "analysis/rule.h"

namespace trainprof {

// Whether nothing else holds the host back at each step: fewer blocking calls than steps are left
// in the window besides `fixed` (rows of trace.api, ascending). O(calls).
bool HostRunsAhead(const RankModel& model, const std::vector<Row>& fixed);

// Idle time for input, behind a sync and for lack of launches, of the device that has most of it:
// the most that a host that runs ahead can save. 0 without devices.
Duration HostPacedIdle(const RankModel& model);

}  // namespace trainprof
