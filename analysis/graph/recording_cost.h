// What recording itself took of a program's calls: that goes without trainprof, and a gain is what is measured then.
#pragma once

#include "analysis/graph/graph.h"
#include "trace/base/time.h"
#include "trace/tables/trace.h"

namespace trainprof {

struct RecordingCost {
  Duration call;   // of a call that is recorded
  Duration stack;  // of taking its stack, beside that

  bool Any() const { return call.ns != 0 || stack.ns != 0; }
};

// Nothing where it is not known: of what others recorded.
RecordingCost RecordingCostOf(const Trace& trace);

// Takes it out of a graph's costs. O(V + E), where it is not nothing.
void LeaveOut(const RecordingCost& cost, const Trace& trace, const Graph& graph, Costs& costs);

}  // namespace trainprof
