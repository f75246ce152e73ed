// The selected range: its length, what the track it was begun on did in it, why the GPU was idle.
#pragma once

#include "viewer/navigation/measure.h"
#include "viewer/panes/timeline_frame.h"

namespace trainprof {

struct RangeReport {
  struct Item {
    Category category{};
    Duration time;
  };
  struct Group {
    std::string title;
    size_t events = 0;
    std::vector<Item> items;  // longest first
    bool idle = false;
    bool counting = false;  // on a thread: a later frame has the rest
  };
  Duration length;
  std::vector<Group> groups;
};

// Of a line and, where its rank has a GPU, of the GPU's idle time by cause, as TotalsOf
// (viewer/navigation/measure.h) has them. Lines whose lanes are not made are left out.
// O(lines of the rank + lanes log n).
RangeReport ReportOf(State& state, const Interval& range, uint32_t line);

void DrawRange(PaneContext& context, ImDrawList* draw, const TimelineFrame& frame);

}  // namespace trainprof
