// Idle time is hatched, each cause in a way of its own: colour is not the only cue.
#pragma once

#include <imgui.h>

#include "viewer/panes/timeline_frame.h"
#include "viewer/timeline/category.h"

namespace trainprof {

// At most so many strokes are drawn in a frame; what is beyond stays plain.
inline constexpr int kMostStrokes = 1500;

class Hatcher {
 public:
  Hatcher(const Theme& theme, ImDrawList* draw) : theme_(theme), draw_(draw) {}

  // Draws strokes on `box`, which has the colour `background`. Strokes of neighbouring boxes meet.
  void Draw(const Box& box, Category cause, ImU32 background);

 private:
  const Theme& theme_;
  ImDrawList* draw_;
  int strokes_ = 0;
};

}  // namespace trainprof
