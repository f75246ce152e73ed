// Draws what the visible lanes show: events, columns of what is too fine, names in events.
#pragma once

#include "viewer/panes/timeline_frame.h"

namespace trainprof {

// Of the 20,000 rectangles that a window may have. The rest is for names, ribbon, overview, text.
inline constexpr size_t kMostLaneRects = 10'000;
inline constexpr size_t kMostLabels = 250;

// Sets the frame's scale to what is drawn. O(pixels log events).
void DrawLanes(PaneContext& context, ImDrawList* draw, TimelineFrame& frame);

}  // namespace trainprof
