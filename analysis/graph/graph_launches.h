// When CUDA graphs were launched: nodes of theirs may be missing in a trace that has others.
#pragma once

#include <vector>

#include "trace/tables/trace.h"

namespace trainprof {

// False of our own recordings of nodes: each launch of an H200's graph of 556 had them all, and what CUPTI drops or does
// not tell of is counted.
bool MayLackNodes(const Trace& trace);

// Of traces that may lack nodes.
class GraphLaunches {
 public:
  explicit GraphLaunches(const Trace& trace);  // O(calls)

  // Whether one began in [from, to]. O(log launches).
  bool AnyWithin(TraceTime from, TraceTime to) const;

 private:
  std::vector<TraceTime> begins_;  // ascending
};

}  // namespace trainprof
