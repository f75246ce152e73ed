// What a view shows of a lane: each event of at least `event_px` pixels by itself, exactly once,
// and between them columns that say how busy the lane was and with what.
//
// Columns lie on a grid of time that does not move with the view (a power of two of nanoseconds,
// at least `event_px` pixels and less than twice that), so that panning does not make them flicker.
// Where an event that is shown by itself or the view's edge cuts a column, it is of what remains.
#pragma once

#include <algorithm>
#include <cstdint>

#include "viewer/timeline/lane.h"

namespace trainprof {

// Views lie within this much of time 0, 36 years, so that no sum of times overflows.
inline constexpr int64_t kMostViewNs = int64_t{1} << 60;

// A view of time that is `width_px` wide. Offsets are subtracted in int64 before they become
// pixels.
struct Scale {
  Interval view;
  int32_t width_px = 0;
  int32_t event_px = 2;
  Duration event_length{};  // the least length of an event that is shown by itself
  int shift = 0;            // the grid of columns: 1 << shift ns

  // view not empty, width_px and event_px > 0.
  static Scale Of(const Interval& view, int32_t width_px, int32_t event_px = 2);
  float PixelOf(TraceTime t) const;      // from the view's left edge
  TraceTime TimeAt(double pixel) const;  // rounded down; not clamped to the view
};

inline constexpr size_t kFolded = SIZE_MAX;

struct Piece {
  Interval time;           // within the view
  size_t event = kFolded;  // of the lane, or kFolded: a column
  Column column;
};

namespace pieces_internal {

// The stretch of the grid that `t` lies in.
inline Interval CellOf(TraceTime t, int shift) {
  const auto begin = static_cast<uint64_t>(t.ns >> shift) << shift;
  return {{static_cast<int64_t>(begin)}, {static_cast<int64_t>(begin + (uint64_t{1} << shift))}};
}

// Columns from the events [first, lane.size()) that begin within `stretch` or reach into it.
template <class Visitor>
void VisitFromEvents(const Lane& lane, size_t first, const Interval& stretch, int shift,
                     Visitor& visit) {
  TraceTime at = stretch.begin;
  size_t i = first;
  while (at < stretch.end && i < lane.size()) {
    const Interval event = lane.interval(i);
    if (event.begin >= stretch.end) return;
    const Interval cell = Intersect(CellOf(std::max(at, event.begin), shift), stretch);
    const size_t last = lane.FirstBeginningAt(cell.end, i);
    visit(Piece{cell, kFolded, lane.ColumnOf(cell, i, last)});
    i = lane.interval(last - 1).end > cell.end ? last - 1 : last;
    at = cell.end;
  }
}

// The same from the pyramid, apart from the cut columns at both ends.
template <class Visitor>
void VisitFolded(const Lane& lane, size_t first, const Interval& stretch, int shift,
                 Visitor& visit) {
  const TraceTime left = CellOf(stretch.begin, shift).begin;
  const TraceTime inner_begin = left == stretch.begin ? left : CellOf(stretch.begin, shift).end;
  const TraceTime inner_end = CellOf(stretch.end, shift).begin;
  if (!lane.pyramid().Has(shift) || inner_begin >= inner_end) {
    return VisitFromEvents(lane, first, stretch, shift, visit);
  }
  if (stretch.begin < inner_begin) {
    VisitFromEvents(lane, first, {stretch.begin, inner_begin}, shift, visit);
  }
  lane.pyramid().VisitBins(
      shift, inner_begin.ns >> shift, inner_end.ns >> shift, [&](int64_t bin, Column column) {
        const auto begin = static_cast<int64_t>(static_cast<uint64_t>(bin) << shift);
        visit(Piece{{{begin}, {begin + (int64_t{1} << shift)}}, kFolded, column});
      });
  if (inner_end < stretch.end) {
    VisitFromEvents(lane, lane.FirstEndingAfter(inner_end, first), {inner_end, stretch.end}, shift,
                    visit);
  }
}

}  // namespace pieces_internal

// Calls visit(const Piece&) in time order. Pieces do not overlap; where there is none, there is no
// event. O(pixels log n), whatever the lane holds.
template <class Visitor>
void VisitPieces(const Lane& lane, const Scale& scale, Visitor visit) {
  TraceTime at = scale.view.begin;
  size_t i = lane.FirstEndingAfter(at);
  while (i < lane.size() && lane.interval(i).begin < scale.view.end) {
    const size_t next = lane.NextLasting(scale.event_length, i);
    const bool in_view = next < lane.size() && lane.interval(next).begin < scale.view.end;
    const TraceTime stop = in_view ? lane.interval(next).begin : scale.view.end;
    if (i < next && at < stop) {
      pieces_internal::VisitFolded(lane, i, {at, stop}, scale.shift, visit);
    }
    if (!in_view) return;
    const Interval shown = Intersect(lane.interval(next), scale.view);
    visit(Piece{shown, next, {255, lane.category(next)}});
    at = shown.end;
    i = next + 1;
  }
}

// What stands under a pixel.
struct Hit {
  size_t first = 0;  // the lane's events [first, last): one, or those that were folded
  size_t last = 0;
  Interval time;  // that the piece covers
  bool folded = false;

  bool Empty() const { return first == last; }
};

// Of the same pieces as are drawn with this scale.
Hit HitTest(const Lane& lane, const Scale& scale, double pixel);

}  // namespace trainprof
