#include "analysis/residual_site.h"

#include <map>

namespace trainprof {

ResidualSite LargestResidual(const RankModel& model) {
  const Trace& trace = model.trace;
  const Graph& graph = *model.graph;
  std::map<std::string_view, ResidualSite> by_name;
  for (const Residual& residual : graph.residuals) {
    if (residual.is_behind_graph) continue;
    const uint32_t row = graph.row[residual.node];
    const bool is_op = graph.kind[residual.node] == NodeKind::kDeviceOp;
    const TraceTime end{graph.ends[residual.node]};
    if (!model.InDeviceWindow({end - Nanoseconds(1), end})) continue;
    ResidualSite& site =
        by_name[is_op ? trace.Text(trace.device_ops.name[row]) : "a function of the host"];
    ++site.count;
    site.total += Duration{residual.ns};
  }
  ResidualSite largest;
  for (auto& [name, site] : by_name) {
    if (site.total <= largest.total) continue;
    largest = site;
    largest.name = name;
  }
  return largest;
}

}  // namespace trainprof
