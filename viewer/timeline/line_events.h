// The events of a line in the order in which they nest, and the lane that each belongs to.
#pragma once

#include <algorithm>
#include <vector>

#include "trace/base/cancel.h"
#include "viewer/timeline/lines.h"

namespace trainprof {

// Places events, sorted by (begin, longer first), below those that have not ended yet. O(1) each,
// amortised.
class DepthPlacer {
 public:
  // The depth of the event, or kDeepestLane when there are that many above it.
  uint32_t Place(const Interval& event) {
    while (!open_.empty() && open_.back() <= event.begin) open_.pop_back();
    const auto depth = static_cast<uint32_t>(open_.size());
    if (depth >= kDeepestLane) return kDeepestLane;
    open_.push_back(event.end);
    deepest_ = std::max(deepest_, depth + 1);
    return depth;
  }
  uint32_t lanes() const { return deepest_; }

 private:
  std::vector<TraceTime> open_;  // ends, by depth
  uint32_t deepest_ = 0;
};

namespace line_events_internal {

struct Cursor {
  const EventColumns* table;
  Table kind;
  uint32_t row;
  uint32_t end;
};

// Whether a's next row comes before b's.
inline bool ComesBefore(const Cursor& a, const Cursor& b) {
  const TraceTime begin_a = a.table->begin[a.row];
  const TraceTime begin_b = b.table->begin[b.row];
  if (begin_a != begin_b) return begin_a < begin_b;
  return a.table->end(a.row) > b.table->end(b.row);
}

// Merges tables' rows of one track; the first table's come first where they are equal.
template <class Visitor>
void Merge(std::vector<Cursor> cursors, Visitor visit) {
  for (size_t row = 0; !cursors.empty(); ++row) {
    CancelPoint(row);
    size_t next = 0;
    for (size_t c = 1; c < cursors.size(); ++c) {
      if (ComesBefore(cursors[c], cursors[next])) next = c;
    }
    Cursor& cursor = cursors[next];
    visit(cursor.table->interval(Row{cursor.row}), cursor.kind, cursor.row);
    if (++cursor.row == cursor.end) cursors.erase(cursors.begin() + static_cast<long>(next));
  }
}

inline Cursor CursorOf(const EventColumns& table, Table kind, TrackId track) {
  const auto [first, last] = table.rows_of(track);
  return {&table, kind, first, last};
}

// Which tables a line of a track shows: all that hold events, those of devices apart.
inline bool Shows(LineKind kind, Table table) {
  switch (table) {
    case Table::kDeviceOps:
      return kind == LineKind::kStream;
    case Table::kSyncs:
      return kind == LineKind::kStreamSyncs;
    default:
      return kind == LineKind::kThread || kind == LineKind::kStreamRanges;
  }
}

// Of the tables that have a row for the line.
inline std::vector<Cursor> CursorsOf(const Trace& trace, LineKind kind, TrackId track) {
  std::vector<Cursor> cursors;
  ForEachEventTable(trace, [&](Table table, const EventColumns& columns) {
    const Cursor cursor = CursorOf(columns, table, track);
    if (cursor.row < cursor.end && Shows(kind, table)) cursors.push_back(cursor);
  });
  return cursors;
}

// By begin, the longer first. O(n log streams).
std::vector<uint32_t> CopiesOf(const Trace& trace, DeviceId device);

}  // namespace line_events_internal

// Calls visit(Interval, Table, row) for each event of a line that shows rows of tables, in trace
// time; kGpu and kIdle show segments of the account. May be cancelled (trace/base/cancel.h).
template <class Visitor>
void VisitEvents(const Lines& lines, const Line& line, Visitor visit) {
  const RankView& rank = lines.ranks()[line.rank];
  const Trace& trace = *rank.trace;
  // Allocations have a line of their own.
  const auto visit_row = [&](const Interval& interval, Table table, uint32_t row) {
    const bool hidden = table == Table::kInstants && trace.AllocationOf(Row{row}) != nullptr;
    if (!hidden) visit(interval, table, row);
  };
  switch (line.kind) {
    case LineKind::kRank:
      if (rank.analysis == nullptr) return;
      for (uint32_t row = 0; row < rank.analysis->steps.steps.size(); ++row) {
        visit(rank.analysis->steps.steps[row].span, Table::kSteps, row);
      }
      return;
    case LineKind::kThread:
    case LineKind::kStream:
    case LineKind::kStreamRanges:
    case LineKind::kStreamSyncs:
      return line_events_internal::Merge(
          line_events_internal::CursorsOf(trace, line.kind, line.track), visit_row);
    case LineKind::kCopies:
      for (uint32_t row : line_events_internal::CopiesOf(trace, line.device)) {
        visit(trace.device_ops.interval(Row{row}), Table::kDeviceOps, row);
      }
      return;
    case LineKind::kGpu:
    case LineKind::kIdle:
    case LineKind::kMemory:
    case LineKind::kCounter:
      return;
  }
}

}  // namespace trainprof
