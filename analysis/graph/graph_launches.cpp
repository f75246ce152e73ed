#include "analysis/graph/graph_launches.h"

#include <algorithm>

#include "trace/base/cancel.h"

namespace trainprof {

GraphLaunches::GraphLaunches(const Trace& trace) {
  for (uint32_t call = 0; call < trace.api.size(); ++call) {
    CancelPoint(call);
    if (trace.api.kind[call] == ApiKind::kGraphLaunch) begins_.push_back(trace.api.begin[call]);
  }
  std::sort(begins_.begin(), begins_.end());
}

bool GraphLaunches::AnyWithin(TraceTime from, TraceTime to) const {
  const auto first = std::lower_bound(begins_.begin(), begins_.end(), from);
  return first != begins_.end() && *first <= to;
}

}  // namespace trainprof
