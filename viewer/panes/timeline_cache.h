// What the timeline, the ribbon and the overview keep between frames.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "viewer/panes/overview.h"
#include "viewer/panes/step_bars.h"
#include "viewer/panes/timeline_layout.h"
#include "viewer/timeline/background.h"
#include "viewer/timeline/frame.h"
#include "viewer/timeline/series.h"

namespace trainprof {

// What a pressed mouse button does over the timeline.
enum class Drag : uint8_t { kNone, kRange, kPan, kScroll, kNamesWidth };

struct DragState {
  Drag what = Drag::kNone;
  bool moved = false;      // far enough to be no click
  TraceTime from;          // kRange: snapped
  double scroll_from = 0;  // kScroll: points
};

struct OverviewDrag {
  OverviewGrip grip = OverviewGrip::kNone;
  double offset = 0;  // see DraggedTo
};

// A series as it was last drawn.
struct DrawnSeries {
  Series::Range extent;  // of all its values
  Interval view;
  int32_t columns_wanted = 0;
  std::vector<SeriesColumn> columns;
};

struct TimelineCache {
  std::optional<LayoutChoice> choice;  // that `layout` was made for
  TrackLayout layout;
  Frame frame;                                     // of all visible lanes
  std::unordered_map<uint32_t, std::string> name;  // by line, cut
  std::unordered_map<uint32_t, DrawnSeries> series;
  DragState drag;
  // The line that the selected range was begun on: what is in the range is told of it.
  std::optional<uint32_t> range_line;
  // Lanes or bars are still to be made: the next frame shows more.
  bool pending = false;

  Background<StepBarsKey, StepBars> bars;
  StepBars bare_bars;  // that stand there as long as the others are being made
  Frame overview;
  std::optional<std::vector<uint32_t>> overview_sources;  // lines
  bool overview_pending = false;
  OverviewDrag overview_drag;

  // The lines are others now. What a hand holds stays; the bars say themselves what they are of.
  void Clear() {
    TimelineCache fresh;
    fresh.drag = drag;
    fresh.range_line = range_line;
    fresh.overview_drag = overview_drag;
    fresh.bars = std::move(bars);
    *this = std::move(fresh);
  }
};

}  // namespace trainprof
