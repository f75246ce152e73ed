// The sentence that comes first, and what it rests on.
#include "viewer/panes/widgets.h"

namespace trainprof {

void DrawVerdict(PaneContext& context) {
  State& state = context.state;
  if (!state.HasLines()) return;
  const RankAnalysis* const analysis = state.document->Analysis(state.document->SlowestRank());
  const FontScope font(context.theme.bold_title);
  CutText(analysis == nullptr ? "analysing ..." : analysis->path);
}

}  // namespace trainprof
