// Marks that say what a process or a device holds (trainprof run --memory), as values of a counter.
#pragma once

#include "trace/build/trace_builder.h"

namespace trainprof::recording {

// Adds the payload of a mark of kMemoryDomain, in bytes, as MiB under the mark's name; none where it
// has none. False: it is another mark.
bool AddMemoryValue(const Event& mark, TraceBuilder& builder);

}  // namespace trainprof::recording
