// What a thread of the host did at a moment, by brute force: the twin of ActivityTimeline (host/timeline.h).
#pragma once

#include <cstdint>

#include "analysis/host/timeline.h"

namespace trainprof {

// O(events).
HostMoment MomentOf(const Trace& trace, TrackId thread, int64_t moment);

}  // namespace trainprof
