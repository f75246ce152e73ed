// All time, with the view as a window in it.
#include "viewer/panes/cache.h"
#include "viewer/panes/panes.h"

namespace trainprof {

void DrawOverview(PaneContext& context) {
  const State& state = context.state;
  if (!state.HasLines()) return;
  const ImVec2 size = ImGui::GetContentRegionAvail();
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const Scale scale = Scale::Of(state.lines().extent(), std::max(1, static_cast<int32_t>(size.x)));
  ImGui::GetWindowDrawList()->AddRect({origin.x + scale.PixelOf(state.view.begin), origin.y},
                                      {origin.x + scale.PixelOf(state.view.end), origin.y + size.y},
                                      context.theme.text);
}

}  // namespace trainprof
