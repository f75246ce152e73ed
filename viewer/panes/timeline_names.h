// The list of tracks at the left of the timeline, the filter above it, the scroll bar.
#pragma once

#include "viewer/panes/timeline_frame.h"

namespace trainprof {

// What a click on the list of tracks would do.
struct NamesHit {
  const ShownRow* row = nullptr;  // null: nothing
  bool on_pin = false;
  bool on_fold = false;  // "fewer levels" of an unfolded row
};

NamesHit HitNames(const PaneContext& context, const TimelineFrame& frame, ImVec2 at);
void DrawNames(PaneContext& context, ImDrawList* draw, const TimelineFrame& frame);
// The text field that filters tracks.
void DrawFilter(PaneContext& context, const Box& corner);
void DrawScrollbar(const PaneContext& context, ImDrawList* draw, const TimelineFrame& frame);
// The part of the scroll bar that stands for what is in sight.
Box ThumbOf(const PaneContext& context, const TimelineAreas& areas);

}  // namespace trainprof
