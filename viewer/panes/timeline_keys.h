// The keyboard on the timeline: from track to track, and into one.
#pragma once

#include "viewer/panes/timeline_frame.h"

namespace trainprof {

// After UpdateLayout.
void HandleRowKeys(PaneContext& context, const TimelineAreas& areas);

}  // namespace trainprof
