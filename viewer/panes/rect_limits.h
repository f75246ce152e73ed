// How the 20,000 rectangles that a window may have (viewer/timeline/frame.h) are shared out. A
// glyph is a rectangle, and so is a stroke of a hatch. What is left is for the texts of the other
// panes.
#pragma once

#include <cstddef>

namespace trainprof {

// The timeline's own: rows, names, lanes. What is not taken by the rest is for the lanes.
inline constexpr size_t kMostTimelineRects = 14'000;
inline constexpr size_t kMostLaneRects = 10'000;
inline constexpr size_t kMostSeriesRects = 3'000;
inline constexpr size_t kMostLabels = 250;
inline constexpr size_t kMostLabelGlyphs = 3'000;
inline constexpr size_t kMostHitMarks = 500;   // on events that are shown by themselves
inline constexpr size_t kMostShortHits = 500;  // on columns
inline constexpr int kMostLaneStrokes = 1'000;
inline constexpr size_t kMostVeilParts = 200;  // in each of the pinned rows and the others
// Of the range's totals, arrows, bookmarks.
inline constexpr size_t kOtherTimelineRects = 500;
// Of other panes.
inline constexpr size_t kMostRibbonRects = 1'000;
inline constexpr int kMostRibbonStrokes = 1'000;
inline constexpr size_t kMostOverviewRects = 1'000;
inline constexpr int kMostOverviewStrokes = 400;
inline constexpr int kMostHitTicks = 400;
inline constexpr size_t kMostEvidenceMarks = 300;
inline constexpr int kMostSampleStrokes = 100;  // of legends

}  // namespace trainprof
