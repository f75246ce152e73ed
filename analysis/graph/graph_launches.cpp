#include "analysis/graph/graph_launches.h"

#include <algorithm>

#include "trace/base/cancel.h"
#include "trace/recording/wire/facts.h"
#include "trace/tables/environment.h"

namespace trainprof {

bool MayLackNodes(const Trace& trace) {
  if (trace.source != SourceKind::kRecording) return true;
  const auto& items = trace.quality.items();
  return EnvironmentValue(trace.environment, fact::kCuptiGraphs) != "node" ||
         std::ranges::any_of(items, [](const QualityItem& item) {
           return item.severity == QualitySeverity::kDataLoss;
         });
}

GraphLaunches::GraphLaunches(const Trace& trace) {
  if (!MayLackNodes(trace)) return;
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
