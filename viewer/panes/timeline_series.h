// Counters and memory: lowest and highest value of each column of pixels.
#pragma once

#include "viewer/panes/timeline_frame.h"

namespace trainprof {

void DrawSeriesRows(PaneContext& context, ImDrawList* draw, const TimelineFrame& frame);
// How high each row reaches, in words: over the veil.
void DrawSeriesScales(PaneContext& context, ImDrawList* draw, const TimelineFrame& frame);
// The value under the mouse, as text: "1.5 GiB", "12 .. 40"; empty before the first one.
std::string SeriesTextAt(PaneContext& context, const TimelineFrame& frame, uint32_t line, float x);

}  // namespace trainprof
