// Idle time is hatched, each cause in a way of its own: colour is not the only cue.
#pragma once

#include <imgui.h>

#include "viewer/panes/rect_limits.h"
#include "viewer/panes/timeline_frame.h"
#include "viewer/timeline/category.h"

namespace trainprof {

class Hatcher {
 public:
  // What is beyond so many strokes stays plain.
  Hatcher(const Theme& theme, ImDrawList* draw, int most_strokes)
      : theme_(theme), draw_(draw), strokes_left_(most_strokes) {}

  // Draws strokes on `box`, which has the colour `background`. Strokes of neighbouring boxes meet.
  void Draw(const Box& box, Category cause, ImU32 background);

 private:
  const Theme& theme_;
  ImDrawList* draw_;
  int strokes_left_;
};

}  // namespace trainprof
