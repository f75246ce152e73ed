// The view as a window in all time: what a drag of it does is pure arithmetic.
#pragma once

#include <cstdint>

#include "viewer/timeline/pieces.h"

namespace trainprof {

enum class OverviewGrip : uint8_t { kNone, kWindow, kLeftEdge, kRightEdge };

// What the mouse takes hold of at `pixel`: an edge within `reach` pixels of one, where the window
// is wide enough for it to be told from the inside; outside of the window it takes the window,
// which then comes to it.
OverviewGrip GripAt(const Scale& scale, const Interval& view, float pixel, float reach);

// The view after the grip was moved to `pixel`. `offset` is where in the window it was taken, as a
// share of its length. Not clamped.
Interval DraggedTo(const Scale& scale, const Interval& view, OverviewGrip grip, double offset,
                   float pixel);

}  // namespace trainprof
