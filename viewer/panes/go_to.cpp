// Where to go: a step or a time.
#include "viewer/panes/widgets.h"
#include "viewer/state/actions.h"

namespace trainprof {

void DrawGoTo(PaneContext& context) {
  State& state = context.state;
  if (!state.go_to_open) return;
  if (ImGui::Begin("Go to", &state.go_to_open)) Text("51, 1.5 s");
  ImGui::End();
}

}  // namespace trainprof
