// Finds the call that launched each device operation, by correlation id. Ids are unique within a
// host process only: files that merge several ranks repeat them. In our own recordings an
// operation's track belongs to the process that issued it.
#pragma once

#include "trace/tables/trace.h"

namespace trainprof {

// Fills DeviceOpTable::launch of sorted tables and counts what has no launch. O(n) where no id
// occurs in two host processes, O(n log n) otherwise.
void JoinLaunches(Trace& trace);

}  // namespace trainprof
