// Measuring: what lies in a selected range of time, and ranges that begin and end where events do.
#pragma once

#include <optional>
#include <span>

#include "viewer/timeline/lane.h"

namespace trainprof {

// Time and number of the events of some lanes within a range; exact.
struct RangeTotals {
  CategoryTotals time{};
  size_t events = 0;  // that touch the range

  Duration Total() const;
};

// Events are cut at the range's ends. Of a line with nesting all depths count, each by itself.
// O(lanes log n).
RangeTotals TotalsOf(std::span<const Lane> lanes, const Interval& range);

// The begin or end of an event that is nearest to `t`, at most `tolerance` away: the earlier of
// two. O(lanes log n).
std::optional<TraceTime> SnapToEdge(std::span<const Lane> lanes, TraceTime t, Duration tolerance);

// The gap between two events of a lane that `t` lies in; nothing inside of an event, before the
// first and after the last one. O(log n).
std::optional<Interval> GapAt(const Lane& lane, TraceTime t);

}  // namespace trainprof
