// What a blocking call costs: not its wait, but the time the device then stands idle until the host
// has fed it again.
#pragma once

#include <span>
#include <vector>

#include "analysis/account/account.h"

namespace trainprof {

// The idle_sync_drain time behind these calls (rows of api, any threads, in any order), within `window`: of
// each call on the device where that is most. O(n + drains).
Duration DrainOf(const Graph& graph, std::span<const Row> calls,
                 std::span<const DeviceAccount> devices, const IntervalSet& window);

}  // namespace trainprof
