// Menus, search, and what is open.
#include "viewer/panes/widgets.h"
#include "viewer/state/actions.h"

namespace trainprof {

void DrawMenuBar(PaneContext& context) {
  State& state = context.state;
  if (TextButton("help", "Help (?)")) state.help_open = true;
  ImGui::SameLine();
  if (state.document) CutText(state.document->path().string());
}

}  // namespace trainprof
