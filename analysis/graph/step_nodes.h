// Where steps begin and end: on the host, and which operations end one on the device.
#pragma once

#include <vector>

#include "analysis/graph/streams.h"
#include "analysis/steps/steps.h"

namespace trainprof {

// Each once, ascending.
std::vector<TraceTime> MarksOf(const Steps& steps);

// By span of `steps`, of each stream the node of what was launched last within it. What runs beside the
// rest, a logging thread's copy say, ends no step: where the rest waits for it, an edge says so. `nodes`:
// by item of streams. O(items log steps).
std::vector<std::vector<NodeId>> LastOfSteps(const Trace& trace, const Steps& steps,
                                             const Streams& streams,
                                             const std::vector<NodeId>& nodes);

}  // namespace trainprof
