// Parts of the selection pane.
#pragma once

#include "viewer/panes/inspector.h"

namespace trainprof {

// How long the events of its name take, with this one marked.
void DrawHistogram(PaneContext& context, const EventRef& event);
// Length and totals of the selected range, line by line.
void DrawRange(PaneContext& context, const Interval& range);

}  // namespace trainprof
