// No file is open: how to open one, and how to record one.
#include "viewer/panes/widgets.h"
#include "viewer/state/actions.h"

namespace trainprof {

void DrawWelcome(PaneContext& context) {
  constexpr std::string_view kRecord = "trainprof run -- python train.py";
  Text("Drop a recording or a trace here");
  Text(kRecord);
  ImGui::SameLine();
  CopyButton(context, "record", kRecord);
}

}  // namespace trainprof
