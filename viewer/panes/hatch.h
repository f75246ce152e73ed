// Idle time is hatched, each cause in a way of its own: colour is not the only cue.
#pragma once

#include <imgui.h>

#include <vector>

#include "analysis/tables/category.h"
#include "viewer/panes/rect_limits.h"
#include "viewer/panes/timeline_frame.h"

namespace trainprof {

// First takes all boxes, then draws them: where that would be more than `most_strokes`, the strokes
// of all stand further apart, so that the hatches end nowhere.
class Hatcher {
 public:
  Hatcher(const Theme& theme, int most_strokes) : theme_(theme), most_strokes_(most_strokes) {}

  // `box` has the colour `background`. Strokes of neighbouring boxes meet.
  void Add(const Box& box, Category cause, ImU32 background);
  size_t size() const { return boxes_.size(); }
  // The boxes [first, last) in the order in which they were added, or all. None may be added any
  // more.
  void Draw(ImDrawList* draw, size_t first, size_t last);
  void Draw(ImDrawList* draw) { Draw(draw, 0, size()); }

 private:
  struct Hatched {
    Box box;
    Category cause{};
    ImU32 color = 0;
  };

  float Wider();

  const Theme& theme_;
  const int most_strokes_;
  std::vector<Hatched> boxes_;
  float wider_ = 0;  // how many times as far apart as usual; 0: not known yet
};

}  // namespace trainprof
