// Makes the graph of a rank.
#pragma once

#include "analysis/graph/graph.h"
#include "analysis/steps/steps.h"

namespace trainprof {

// `steps`: whose begins and ends get nodes, and whose last operations are kept. `blocking_calls`:
// FindBlockingCalls(trace). O(n log n) in calls, operations and the stepping thread's ranges; some 40
// bytes an event while it is made, 25 behind.
Graph BuildGraph(const Trace& trace, const Steps& steps, const std::vector<bool>& blocking_calls);

}  // namespace trainprof
