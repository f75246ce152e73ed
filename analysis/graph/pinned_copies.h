// What pinned copies of a run tell of its link.
#pragma once

#include <cstdint>

#include "trace/tables/trace.h"

namespace trainprof {

// Bytes per microsecond of the trace's own large copies from pinned memory; 0 where there are none.
int64_t PinnedBytesPerMicrosecond(const Trace& trace);

}  // namespace trainprof
