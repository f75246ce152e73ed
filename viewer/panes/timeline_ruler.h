// The ruler with the steps' numbers, grid lines, bookmarks, and the line under the mouse.
#pragma once

#include "viewer/navigation/ruler.h"
#include "viewer/panes/timeline_frame.h"

namespace trainprof {

Ruler RulerOf(const PaneContext& context, const TimelineFrame& frame);
// Behind the events: stripes of rows, grid, borders of steps.
void DrawBackground(const PaneContext& context, ImDrawList* draw, const TimelineFrame& frame,
                    const Ruler& ruler);
void DrawRuler(const PaneContext& context, ImDrawList* draw, const TimelineFrame& frame,
               const Ruler& ruler);
// In front of them.
void DrawBookmarks(const PaneContext& context, ImDrawList* draw, const TimelineFrame& frame);
void DrawCursor(const PaneContext& context, ImDrawList* draw, const TimelineFrame& frame);

}  // namespace trainprof
