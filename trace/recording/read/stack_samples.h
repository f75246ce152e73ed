// Fills Trace::samples with the stacks of the Python threads of a rank's processes.
#pragma once

#include "trace/build/trace_builder.h"
#include "trace/recording/read/host_ownership.h"

namespace trainprof::recording {

// The name of a sample of a thread that was in no Python function.
inline constexpr char kNotInPython[] = "(not in Python)";

// Adds the samples of the processes that `audience` owns; with `takes_rest` also what belongs to no
// process: facts, and the count of what is damaged. `base_monotonic_ns` is time 0 of the trace.
void AddStackSamples(const HostFile& file, HostOwnership& ownership, size_t audience,
                     bool takes_rest, int64_t base_monotonic_ns, TraceBuilder& builder);

}  // namespace trainprof::recording
