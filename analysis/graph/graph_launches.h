// When CUDA graphs were launched: nodes of theirs may be missing in a trace that has others.
#pragma once

#include <vector>

#include "trace/tables/trace.h"

namespace trainprof {

class GraphLaunches {
 public:
  explicit GraphLaunches(const Trace& trace);  // O(calls)

  // Whether one began in [from, to]. O(log launches).
  bool AnyWithin(TraceTime from, TraceTime to) const;

 private:
  std::vector<TraceTime> begins_;  // ascending
};

}  // namespace trainprof
