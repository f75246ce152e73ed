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
    case Category::kOtherDevice:
      return {.lean = -1, .spacing = 14};
    case Category::kHostFunction:
      return {.lean = 0.4f, .spacing = 9};
    case Category::kHostWork:
      return {.lean = -0.4f, .spacing = 9};
    case Category::kPreempted:
      return {.lean = 0, .spacing = 9};
    case Category::kOtherRanks:
      return {.lean = 1, .spacing = 10, .crossed = true};
    case Category::kUnrecorded:
      return {.lean = 1, .spacing = 14, .crossed = true};
    default:
      return {.lean = 1, .spacing = 14};
  }
}

constexpr float kLeastSide = 4;  // points; on less no pattern can be told
constexpr float kOpacity = 0.38f;
constexpr float kWiderStep = 1.25f;
// Strokes that are this many times as far apart as usual are no pattern any more.
constexpr float kMostWider = 1000;

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

// Calls visit(from, to) for each stroke of a box.
template <class Visitor>
void VisitStrokes(const Box& box, const Pattern& pattern, float spacing, Visitor visit) {
  for (int pass = 0; pass < (pattern.crossed ? 2 : 1); ++pass) {
    const float run = (pass == 0 ? pattern.lean : -pattern.lean) * box.height();
    const float first = std::floor((box.left - std::max(run, 0.f)) / spacing) * spacing;
    for (float x = first; x < box.right - std::min(run, 0.f); x += spacing) {
      ImVec2 from;
      ImVec2 to;
      if (ClipStroke(box, x, run, from, to)) visit(from, to);
    }
  }
}

}  // namespace

void Hatcher::Add(const Box& box, Category cause, ImU32 background) {
  const float least = theme_.Px(kLeastSide);
  if (box.width() < least || box.height() < least) return;
  const ImU32 on = Theme::TextOn(background);
  boxes_.push_back(
      {box, cause,
       (on & ~IM_COL32_A_MASK) | (static_cast<ImU32>(255 * kOpacity) << IM_COL32_A_SHIFT)});
}

// The least that keeps the strokes of all boxes within the limit.
float Hatcher::Wider() {
  for (wider_ = 1; wider_ < kMostWider; wider_ *= kWiderStep) {
    int strokes = 0;
    for (const Hatched& hatched : boxes_) {
      const Pattern pattern = PatternOf(hatched.cause);
      VisitStrokes(hatched.box, pattern, theme_.Px(pattern.spacing) * wider_,
                   [&](ImVec2, ImVec2) { ++strokes; });
      if (strokes > most_strokes_) break;
    }
    if (strokes <= most_strokes_) break;
  }
  return wider_;
}

void Hatcher::Draw(ImDrawList* draw, size_t first, size_t last) {
  const float wider = wider_ > 0 ? wider_ : Wider();
  if (wider >= kMostWider) return;
  const float width = std::max(1.f, std::floor(theme_.scale));
  for (size_t i = first; i < last; ++i) {
    const Hatched& hatched = boxes_[i];
    const Pattern pattern = PatternOf(hatched.cause);
    VisitStrokes(hatched.box, pattern, theme_.Px(pattern.spacing) * wider,
                 [&](ImVec2 from, ImVec2 to) { draw->AddLine(from, to, hatched.color, width); });
  }
}

}  // namespace trainprof
