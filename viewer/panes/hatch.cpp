#include "viewer/panes/hatch.h"

#include <algorithm>
#include <cmath>

namespace trainprof {
namespace {

// Strokes go right by `lean` times what they go down; they stand `spacing` points apart.
struct Pattern {
  float lean = 1;
  float spacing = 7;
  bool crossed = false;
};

Pattern PatternOf(Category cause) {
  switch (cause) {
    case Category::kInputWait:
      return {.lean = -1, .spacing = 7};
    case Category::kSync:
      return {.lean = 1, .spacing = 7};
    case Category::kAllocation:
      return {.lean = 0, .spacing = 6};
    case Category::kLaunch:
      return {.lean = -1, .spacing = 11, .crossed = true};
    case Category::kPython:
      return {.lean = -0.4f, .spacing = 5};
    case Category::kIo:
      return {.lean = 0.4f, .spacing = 5};
    case Category::kDependency:
      return {.lean = 0, .spacing = 12};
    case Category::kUnrecorded:
      return {.lean = 1, .spacing = 14, .crossed = true};
    default:
      return {.lean = 1, .spacing = 14};
  }
}

constexpr float kLeastWidth = 4;  // points; on less no pattern can be told
constexpr float kOpacity = 0.38f;

// The part of a stroke from (x, top) to (x + run, bottom) that lies within the box.
bool ClipStroke(const Box& box, float x, float run, ImVec2& from, ImVec2& to) {
  float begin = 0;
  float end = 1;
  if (run != 0) {
    const float a = (box.left - x) / run;
    const float b = (box.right - x) / run;
    begin = std::max(begin, std::min(a, b));
    end = std::min(end, std::max(a, b));
  } else if (x < box.left || x >= box.right) {
    return false;
  }
  if (begin >= end) return false;
  from = {x + run * begin, box.top + box.height() * begin};
  to = {x + run * end, box.top + box.height() * end};
  return true;
}

}  // namespace

void Hatcher::Draw(const Box& box, Category cause, ImU32 background) {
  if (box.width() < theme_.Px(kLeastWidth)) return;
  const Pattern pattern = PatternOf(cause);
  const ImU32 on = Theme::TextOn(background);
  const ImU32 color =
      (on & ~IM_COL32_A_MASK) | (static_cast<ImU32>(255 * kOpacity) << IM_COL32_A_SHIFT);
  const float spacing = theme_.Px(pattern.spacing);
  for (int pass = 0; pass < (pattern.crossed ? 2 : 1); ++pass) {
    const float run = (pass == 0 ? pattern.lean : -pattern.lean) * box.height();
    const float first = std::floor((box.left - std::max(run, 0.f)) / spacing) * spacing;
    for (float x = first; x < box.right - std::min(run, 0.f); x += spacing) {
      if (strokes_left_ <= 0) return;
      ImVec2 from;
      ImVec2 to;
      if (!ClipStroke(box, x, run, from, to)) continue;
      draw_->AddLine(from, to, color, std::max(1.f, std::floor(theme_.scale)));
      --strokes_left_;
    }
  }
}

}  // namespace trainprof
