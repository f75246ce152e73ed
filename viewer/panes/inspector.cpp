// One tabbed inspector: tables of what the whole trace, or the selected range, holds.
#include "viewer/panes/widgets.h"

namespace trainprof {

void DrawInspector(PaneContext& context) {
  if (!context.state.HasLines()) return;
  Text("tables");
}

}  // namespace trainprof
