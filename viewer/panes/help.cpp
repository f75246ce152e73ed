// The `?` sheet.
#include "viewer/panes/widgets.h"

namespace trainprof {

void DrawHelp(PaneContext& context) {
  State& state = context.state;
  if (!state.help_open) return;
  if (ImGui::Begin("Keys and mouse", &state.help_open)) Text("wheel: zoom");
  ImGui::End();
}

}  // namespace trainprof
