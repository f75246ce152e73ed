// What is known about the selected event.
#include "viewer/panes/widgets.h"
#include "viewer/state/actions.h"

namespace trainprof {

void DrawSelection(PaneContext& context) {
  State& state = context.state;
  if (!state.HasLines() || !state.selected) return Text("nothing selected");
  WrappedText(state.lines().NameOf(*state.selected));
}

}  // namespace trainprof
