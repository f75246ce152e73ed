// What a blocking call costs: not its wait, but the time the device then stands idle until the host
// has fed it again.
#pragma once

#include <span>
#include <vector>

#include "analysis/account/account.h"

namespace trainprof {

// The idle_sync_drain time of the gaps that began while one of these calls waited, within `window`:
// of each call on the device where that is most. Calls may be of any threads, in any order; what
// overlaps is one wait. O(n log n + idle log n), n calls.
Duration DrainOf(std::vector<Interval> calls, std::span<const DeviceAccount> devices,
                 const IntervalSet& window);

}  // namespace trainprof
