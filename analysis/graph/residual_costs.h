// Costs without what nothing explains (Graph::residuals).
#pragma once

#include "analysis/graph/graph.h"

namespace trainprof {

// Takes the residuals out of the costs: those behind launches of graphs, whose nodes may be missing, or all others.
void DropResiduals(const Graph& graph, bool behind_graphs, Costs& costs);

// The recorded costs without them: how well the graph knows the run. Where nodes of graphs may be missing, they are
// what explains it.
Costs CostsWithoutResiduals(const Graph& graph);

}  // namespace trainprof
