// Where releases of Dear ImGui differ. Before 1.87 a key's number is its window system's (GLFW's),
// and a key that goes down and up between two frames is not seen. Only the fonts' texture asks
// for the release besides (viewer/theme/fonts.cpp).
#pragma once

#include <imgui.h>

#include "viewer/state/shortcuts.h"

namespace trainprof {

#if IMGUI_VERSION_NUM < 18700
using ImGuiKeyNumber = int;
namespace keys {
inline constexpr ImGuiKeyNumber kA = 'A', kEscape = 256, kEnter = 257, kTab = 258, kBackspace = 259,
                                kRight = 262, kLeft = 263, kDown = 264, kUp = 265, kPageUp = 266,
                                kPageDown = 267, kHome = 268, kF3 = 292;
}
#else
using ImGuiKeyNumber = ImGuiKey;
namespace keys {
inline constexpr ImGuiKeyNumber kA = ImGuiKey_A, kEscape = ImGuiKey_Escape,
                                kBackspace = ImGuiKey_Backspace, kHome = ImGuiKey_Home,
                                kF3 = ImGuiKey_F3, kTab = ImGuiKey_Tab, kEnter = ImGuiKey_Enter,
                                kLeft = ImGuiKey_LeftArrow, kRight = ImGuiKey_RightArrow,
                                kUp = ImGuiKey_UpArrow, kDown = ImGuiKey_DownArrow,
                                kPageUp = ImGuiKey_PageUp, kPageDown = ImGuiKey_PageDown;
}
#endif

// What ImGui's key functions take. `key` is not kNone.
inline ImGuiKeyNumber ImGuiKeyOf(Key key) {
  switch (key) {
    case Key::kEscape:
      return keys::kEscape;
    case Key::kBackspace:
      return keys::kBackspace;
    case Key::kHome:
      return keys::kHome;
    case Key::kF3:
      return keys::kF3;
    case Key::kTab:
      return keys::kTab;
    case Key::kEnter:
      return keys::kEnter;
    case Key::kLeft:
      return keys::kLeft;
    case Key::kRight:
      return keys::kRight;
    case Key::kUp:
      return keys::kUp;
    case Key::kDown:
      return keys::kDown;
    case Key::kPageUp:
      return keys::kPageUp;
    case Key::kPageDown:
      return keys::kPageDown;
    default:
      break;
  }
  const int letter = static_cast<int>(key) - static_cast<int>(Key::kA);
  return static_cast<ImGuiKeyNumber>(keys::kA + letter);
}

// Takes a key, by GLFW's number, for down or up where ImGui does not itself see short presses.
// False where nothing was to be done.
inline bool TakeKeyFor([[maybe_unused]] int glfw_key, [[maybe_unused]] bool down) {
#if IMGUI_VERSION_NUM < 18700
  constexpr int kLeftShift = 340, kLeftCtrl = 341, kRightShift = 344, kRightCtrl = 345;
  ImGuiIO& io = ImGui::GetIO();
  if (glfw_key < 0 || glfw_key >= IM_ARRAYSIZE(io.KeysDown)) return false;
  if (io.KeysDown[glfw_key] == down) return false;
  io.KeysDown[glfw_key] = down;
  io.KeyShift = io.KeysDown[kLeftShift] || io.KeysDown[kRightShift];
  io.KeyCtrl = io.KeysDown[kLeftCtrl] || io.KeysDown[kRightCtrl];
  return true;
#else
  return false;
#endif
}

}  // namespace trainprof
