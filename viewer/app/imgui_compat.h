// Where releases of Dear ImGui differ: keys got names of their own in 1.87; before, a key's number
// is its window system's (GLFW's). Nothing else in the viewer asks for the release.
#pragma once

#include <imgui.h>

#include "viewer/state/shortcuts.h"

namespace trainprof {

// What ImGui's key functions take.
#if IMGUI_VERSION_NUM < 18700
using ImGuiKeyNumber = int;
#else
using ImGuiKeyNumber = ImGuiKey;
#endif

inline ImGuiKeyNumber ImGuiKeyOf(Key key) {
  const int letter = static_cast<int>(key) - static_cast<int>(Key::kA);
  if (key >= Key::kA && key <= Key::kZ) {
#if IMGUI_VERSION_NUM < 18700
    return 'A' + letter;
  }
  constexpr int kGlfwKeyF3 = 292;
  if (key == Key::kF3) return kGlfwKeyF3;
#else
    return static_cast<ImGuiKey>(ImGuiKey_A + letter);
  }
  if (key == Key::kF3) return ImGuiKey_F3;
#endif
  const ImGuiKey known = key == Key::kEscape      ? ImGuiKey_Escape
                         : key == Key::kBackspace ? ImGuiKey_Backspace
                                                  : ImGuiKey_Home;
#if IMGUI_VERSION_NUM < 18700
  return ImGui::GetKeyIndex(known);
#else
  return known;
#endif
}

}  // namespace trainprof
