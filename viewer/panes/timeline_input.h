// What the mouse does over the timeline.
#pragma once

#include "viewer/panes/timeline_frame.h"

namespace trainprof {

// Splitter, scroll bar and wheel: before the frame is made, as they change what is in sight.
void HandleScrolling(PaneContext& context, const TimelineAreas& areas);
// Dragging, clicks, hovering: of what the frame shows.
void HandlePointer(PaneContext& context, const TimelineFrame& frame);

// The event, column or gap under the mouse.
struct Target {
  const ShownRow* row = nullptr;
  const ShownLane* lane = nullptr;
  Hit hit;                      // of the lane; Empty() where there is no event
  std::optional<Interval> gap;  // between two events of the lane
};
Target TargetAt(PaneContext& context, const TimelineFrame& frame, ImVec2 at);
// Says what it is. Between ImGui::NewFrame and Render.
void DrawTooltip(PaneContext& context, const TimelineFrame& frame, const Target& target, ImVec2 at);

}  // namespace trainprof
