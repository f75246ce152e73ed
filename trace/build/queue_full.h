// Which calls waited for room in a device's queue: CUPTI reports the wait by itself, as overhead.
#pragma once

#include "trace/tables/trace.h"

namespace trainprof {

// Fills ApiTable::queue_full_ns of sorted tables: of each overhead row named kQueueFull the call that it
// lies within; on its own thread where it says which, else on the only thread that has one. O(n) without
// such rows, O(rows x threads x log calls) with them. Counts those that lie within no call.
void JoinQueueFull(Trace& trace);

}  // namespace trainprof
