// Where to go: a step or a time.
#include <algorithm>

#include "viewer/panes/cache.h"
#include "viewer/panes/widgets.h"
#include "viewer/state/actions.h"

namespace trainprof {

void DrawGoTo(PaneContext& context) {
  State& state = context.state;
  constexpr const char* kId = "Go to";
  if (state.go_to_open && !state.HasLines()) state.go_to_open = false;
  if (!state.go_to_open) return;
  const Theme& theme = context.theme;
  const ImVec2 display = ImGui::GetIO().DisplaySize;
  ImGui::SetNextWindowPos({display.x / 2, display.y * 0.25F}, ImGuiCond_Always, {0.5F, 0});
  ImGui::SetNextWindowSize({std::min(theme.Px(340), display.x * 0.9F), 0});
  constexpr ImGuiWindowFlags kFlags = ImGuiWindowFlags_NoResize | ImGuiWindowFlags_NoMove |
                                      ImGuiWindowFlags_NoCollapse |
                                      ImGuiWindowFlags_NoSavedSettings;
  const BorderScope border(theme);
  if (ImGui::Begin(kId, &state.go_to_open, kFlags)) {
    std::string& text = context.cache.inspector.inputs.go_to;
    if (ImGui::IsWindowAppearing()) {
      text.clear();
      ImGui::SetKeyboardFocusHere();
    }
    char buffer[128] = {};
    text.copy(buffer, sizeof buffer - 1);
    ImGui::SetNextItemWidth(-1);
    const bool entered =
        ImGui::InputTextWithHint("##where", "step 51, 1.5 s, 820 ms", buffer, sizeof buffer,
                                 ImGuiInputTextFlags_EnterReturnsTrue);
    text = buffer;
    const bool left = ImGui::IsItemDeactivated();  // Escape, or a click elsewhere
    TextIn(theme.text_dim, "A step's number, or a time from the job's start");
    if (entered && !text.empty()) {
      state.message.clear();
      GoTo(state, text);
      if (state.message.empty()) state.go_to_open = false;
      ImGui::SetKeyboardFocusHere(-1);
    } else if (left) {
      state.go_to_open = false;
    }
    if (!state.message.empty()) {
      ImGui::PushStyleColor(ImGuiCol_Text, theme.warning);
      WrappedText(state.message);
      ImGui::PopStyleColor();
    }
  }
  ImGui::End();
}

}  // namespace trainprof
