// Draws what the visible lanes show: events, columns of what is too fine, names in events.
#pragma once

#include "viewer/panes/timeline_frame.h"

namespace trainprof {

// Sets the frame's scale to what is drawn, with what `draw` has left of kMostTimelineRects: the
// last of what takes many. O(pixels log events).
void DrawLanes(PaneContext& context, ImDrawList* draw, TimelineFrame& frame);

}  // namespace trainprof
