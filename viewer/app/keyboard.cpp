#include "viewer/app/keyboard.h"

#include <algorithm>

#include "viewer/app/imgui_compat.h"
#include "viewer/state/shortcuts.h"

namespace trainprof {
namespace {

// A frame that took longer, as one behind a long wait, does not jump.
constexpr float kLongestFrame = 0.1f;

// The character that was typed, of those that a trigger names; 0: none.
char TypedOf(const Trigger& trigger) {
  const ImGuiIO& io = ImGui::GetIO();
  if (trigger.character == 0 || io.WantTextInput) return 0;
  for (const ImWchar c : io.InputQueueCharacters) {
    if (c >= static_cast<ImWchar>(trigger.character) &&
        c <= static_cast<ImWchar>(std::max(trigger.character, trigger.last))) {
      return static_cast<char>(c);
    }
  }
  return 0;
}

bool Acts(const Trigger& trigger, Pace pace) {
  const ImGuiIO& io = ImGui::GetIO();
  if (trigger.character != 0) return TypedOf(trigger) != 0;
  if (trigger.key == Key::kNone || trigger.ctrl != io.KeyCtrl || io.KeyAlt || io.KeySuper) {
    return false;
  }
  const bool writes = !trigger.ctrl && trigger.key != Key::kF3;  // into a field that is edited
  if (io.WantTextInput && writes) return false;
  const ImGuiKeyNumber key = ImGuiKeyOf(trigger.key);
  // Whoever holds W and Shift still moves.
  if (pace == Pace::kHeld) return ImGui::IsKeyDown(key);
  return trigger.shift == io.KeyShift && ImGui::IsKeyPressed(key, pace == Pace::kRepeated);
}

}  // namespace

bool HandleKeys(State& state) {
  const float seconds = std::min(ImGui::GetIO().DeltaTime, kLongestFrame);
  bool held = false;
  for (const ShortcutGroup& group : ShortcutGroups()) {
    for (const Shortcut& shortcut : group.shortcuts) {
      for (const bool second : {false, true}) {
        const Trigger& trigger = shortcut.triggers[second ? 1 : 0];
        if (!Acts(trigger, shortcut.pace)) continue;
        if (shortcut.pace != Pace::kHeld) state.message.clear();  // of what was done before
        shortcut.run(state, {.second = second, .seconds = seconds, .character = TypedOf(trigger)});
        held = held || shortcut.pace == Pace::kHeld;
      }
    }
  }
  return held;
}

}  // namespace trainprof
