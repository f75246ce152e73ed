// Stays while a trace is not whole: what was lost, and whether its ranks' clocks agree.
#include "viewer/panes/widgets.h"

namespace trainprof {

void DrawQualityBar(PaneContext& context) {
  State& state = context.state;
  if (!state.HasLines() || state.lines().aligned()) return;
  TextIn(context.theme.warning, "The ranks' clocks do not agree.");
}

}  // namespace trainprof
