// A bar a step.
#include "viewer/panes/cache.h"
#include "viewer/panes/panes.h"

namespace trainprof {

void DrawStepRibbon(PaneContext& context) {
  const State& state = context.state;
  if (!state.HasLines()) return;
  const RankAnalysis* analysis = state.document->Analysis(state.document->SlowestRank());
  if (analysis != nullptr) ImGui::Text("%zu steps", analysis->steps.count());
}

}  // namespace trainprof
