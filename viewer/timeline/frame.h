// The rectangles of one frame.
#pragma once

#include <span>
#include <vector>

#include "viewer/timeline/pieces.h"

namespace trainprof {

// Software rasterisers spend 0.5 us on a rectangle: a frame has to stay below this.
inline constexpr size_t kMostRects = 20'000;
// An 8K screen has 4,320 lines; so many lanes stay below kMostRects with four rectangles each.
inline constexpr size_t kMostLanes = 5'000;
// How busy a column was, in steps that the eye can tell apart: of a colour, and of a height.
inline constexpr uint8_t kShades = 4;
inline constexpr uint8_t kHeights = 16;

inline constexpr uint32_t kNoEvent = UINT32_MAX;

struct Rect {
  float left = 0;  // pixels from the view's left edge
  float right = 0;
  uint32_t lane = 0;          // index into the frame's lanes
  uint32_t event = kNoEvent;  // of that lane, or kNoEvent: folded
  Category category{};
  uint8_t shade = kShades;    // 1 .. kShades, full for an event
  uint8_t height = kHeights;  // 1 .. kHeights, the same
};

struct FrameLane {
  FrameLane(const Lane* its_lane, bool is_by_height = false)
      : lane(its_lane), by_height(is_by_height) {}

  const Lane* lane;
  // Tells the share of its columns by their height, in full colour. What is seldom there, as idle
  // time beside a busy GPU, would look as if it filled the lane in any shade that is still seen.
  bool by_height;
};

struct Frame {
  Scale scale;              // with the event_px that was used: hit tests take it too
  std::vector<Rect> rects;  // by lane, then from left to right
};

// Fills `frame`, whose memory is used again, with the visible lanes' rectangles; null lanes stay
// empty, lanes beyond kMostLanes are left out. event_px is 2 unless that makes more than most_rects
// rectangles: then it is doubled until it does not. view not empty, width_px > 0.
// O(lanes * pixels * log n). `most_rects` leaves room for what else the window draws.
void BuildFrame(std::span<const FrameLane> lanes, const Interval& view, int32_t width_px,
                Frame& frame, size_t most_rects = kMostRects);

}  // namespace trainprof
