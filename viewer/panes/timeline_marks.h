// What is drawn over the events: the selected one, arrows to what it launched or was launched by,
// the hits of the search, and the veil over all that is no evidence of the open finding.
#pragma once

#include "viewer/panes/timeline_frame.h"

namespace trainprof {

void DrawVeil(const PaneContext& context, ImDrawList* draw, const TimelineFrame& frame);
// A bar along the top of each event that is a hit, the one that was gone to with a higher one.
void DrawHits(PaneContext& context, ImDrawList* draw, const TimelineFrame& frame);
void DrawSelected(PaneContext& context, ImDrawList* draw, const TimelineFrame& frame);

}  // namespace trainprof
