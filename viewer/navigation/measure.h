// Measuring: what lies in a selected range of time, and ranges that begin and end where events do.
#pragma once

#include <optional>
#include <span>

#include "viewer/timeline/lane_store.h"

namespace trainprof {

// Time and number of the events within a range; exact.
struct RangeTotals {
  CategoryTotals time{};
  size_t events = 0;  // that touch the range

  Duration Total() const;
};

// Events are cut at the range's ends. O(log n).
RangeTotals TotalsOf(const Lane& lane, const Interval& range);

// The totals of a line, wherever they are shown: the number of its events at all depths; of its
// time each moment once, for the innermost event, so that the sum is never more than the range. For
// a frame: nothing while lanes are being made; the line's own lanes are not asked for. O(lanes log
// n).
std::optional<RangeTotals> TotalsOf(LaneStore& store, uint32_t line, const Interval& range);

// The begin or end of an event that is nearest to `t`, at most `tolerance` away: the earlier of
// two. O(lanes log n).
std::optional<TraceTime> SnapToEdge(std::span<const Lane> lanes, TraceTime t, Duration tolerance);

// The gap between two events of a lane that `t` lies in; nothing inside of an event, before the
// first and after the last one. O(log n).
std::optional<Interval> GapAt(const Lane& lane, TraceTime t);

}  // namespace trainprof
