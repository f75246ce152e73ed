// The keyboard: one table, which the window obeys (viewer/app/keyboard.h) and the help sheet
// prints.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "viewer/state/state.h"

namespace trainprof {

enum class Key : uint8_t {
  kNone,
  kA,
  kZ = 26,
  kEscape,
  kBackspace,
  kHome,
  kF3,
  kTab,
  kEnter,
  kLeft,
  kRight,
  kUp,
  kDown,
  kPageUp,
  kPageDown
};
inline constexpr size_t kKeys = static_cast<size_t>(Key::kPageDown) + 1;

// What the user does: a key, with or without Ctrl and Shift; or a character typed, since where the
// punctuation marks are differs between keyboards.
struct Trigger {
  Key key = Key::kNone;
  char character = 0;
  char last = 0;  // where it may be any from `character` to this one
  bool ctrl = false;
  bool shift = false;
};

enum class Pace : uint8_t {
  kOnce,      // a press
  kRepeated,  // a press, and again and again while it is held
  kHeld,      // each frame while it is held
};

struct Use {
  bool second = false;  // of the two triggers
  float seconds = 0;    // of this frame
  char character = 0;   // that was typed
};

struct Shortcut {
  std::string_view keys;  // as the help sheet writes them
  std::string_view what;
  Trigger triggers[2];  // the second may be none
  Pace pace{};
  void (*run)(State& state, Use use);
};

// A heading of the help sheet and what stands under it.
struct ShortcutGroup {
  std::string_view title;
  std::span<const Shortcut> shortcuts;
};

std::span<const ShortcutGroup> ShortcutGroups();

}  // namespace trainprof
