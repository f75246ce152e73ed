#include "analysis/graph/residual_costs.h"

namespace trainprof {

void DropResiduals(const Graph& graph, bool behind_graphs, Costs& costs) {
  for (const Residual& residual : graph.residuals) {
    if (residual.is_behind_graph != behind_graphs) continue;
    costs.SetLag(residual.edge, costs.Lag(residual.edge) - residual.ns);
  }
}

Costs CostsWithoutResiduals(const Graph& graph) {
  Costs costs;
  costs.Assign(graph.recorded);
  DropResiduals(graph, false, costs);
  return costs;
}

}  // namespace trainprof
