// Finds what each synchronisation row is about: the call that made it, the call that recorded the
// event waited for, and the stream that it was recorded on.
#pragma once

#include "trace/tables/trace.h"

namespace trainprof {

// Fills what is computed of SyncTable, of sorted tables whose launches have been joined. An id that
// several host processes use is resolved by the process that drives the row's device; where that is not
// one alone, nothing is joined. O(n log n) in the rows of syncs and calls, no time where there are no syncs.
void JoinSyncs(Trace& trace);

}  // namespace trainprof
