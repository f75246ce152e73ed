// What to change, largest gain first.
#include "viewer/panes/widgets.h"
#include "viewer/state/actions.h"

namespace trainprof {

void DrawFindings(PaneContext& context) {
  State& state = context.state;
  if (!state.HasLines()) return;
  const uint32_t rank = state.document->SlowestRank();
  const RankAnalysis* const analysis = state.document->Analysis(rank);
  if (analysis == nullptr) return Text("analysing ...");
  for (uint32_t i = 0; i < analysis->findings.size(); ++i) {
    ImGui::PushID(static_cast<int>(i));
    if (TextButton("open", analysis->findings[i].title)) OpenFinding(state, {rank, i});
    ImGui::PopID();
  }
}

}  // namespace trainprof
