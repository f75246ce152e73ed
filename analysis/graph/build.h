// Makes the graph of a rank.
#pragma once

#include "analysis/graph/graph.h"
#include "analysis/steps/steps.h"

namespace trainprof {

// `steps`: whose begins and ends get nodes, and whose last operations are kept. `blocking_calls`:
// FindBlockingCalls(trace). O(n log n) in calls, operations and the stepping thread's
// ranges. What stays are 13 bytes a node, 9 an edge, and 4 a call and an operation.
Graph BuildGraph(const Trace& trace, const Steps& steps, const std::vector<bool>& blocking_calls);

}  // namespace trainprof
