// What a blocking call costs: not its wait, but the time the device then stands idle until the host
// has fed it again.
#pragma once

#include <span>
#include <vector>

#include "analysis/account/account.h"

namespace trainprof {

// For each call, the idle_sync_drain time of the gaps that began while it waited, within `window`,
// of the device where that is most. `calls` are sorted by begin and do not overlap (calls of one
// thread). A gap is charged to one call only. O(idle log calls).
std::vector<Duration> DrainOf(std::span<const Interval> calls,
                              std::span<const DeviceAccount> devices, const IntervalSet& window);

}  // namespace trainprof
