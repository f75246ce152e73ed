// The timeline: ruler, tracks and their lanes.
#include "viewer/panes/cache.h"
#include "viewer/panes/panes.h"
#include "viewer/timeline/frame.h"

namespace trainprof {

void DrawTimeline(PaneContext& context) {
  State& state = context.state;
  if (!state.HasLines()) return;
  const Theme& theme = context.theme;
  const ImVec2 size = ImGui::GetContentRegionAvail();
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const float left = theme.Px(state.settings.names_width);
  state.view_width_px = std::max(1, static_cast<int32_t>(size.x - left));
  const float height = theme.Px(18);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  float y = origin.y;
  for (uint32_t line = 0; line < state.lines().lines().size() && y < origin.y + size.y; ++line) {
    draw->AddText({origin.x, y}, theme.text, state.lines().NameOf(line).substr(0, 100).c_str());
    for (const Lane& lane : state.document->store().LanesOf(line)) {
      const Lane* const lanes[] = {&lane};
      Frame frame;
      BuildFrame(lanes, state.view, state.view_width_px, frame);
      for (const Rect& rect : frame.rects) {
        draw->AddRectFilled({origin.x + left + rect.left, y},
                            {origin.x + left + rect.right, y + height - 1},
                            theme.Shaded(rect.category, rect.shade));
      }
      y += height;
    }
  }
}

}  // namespace trainprof
