#include "analysis/tables/name_table.h"

#include <algorithm>

#include "trace/base/cancel.h"

namespace trainprof {
namespace {

constexpr uint32_t kNoGroup = UINT32_MAX;

const EventColumns& ColumnsOf(const Trace& trace, NamedEvents what) {
  if (what == NamedEvents::kDeviceOps) return trace.device_ops;
  if (what == NamedEvents::kCalls) return trace.api;
  return trace.ranges;
}

// The span that kineto adds for the profiler's whole run is nobody's work.
bool IsProfilersSpan(const Trace& trace, uint32_t row) {
  return trace.ranges.kind[row] == RangeKind::kOther &&
         trace.Text(trace.ranges.category[row]) == "Trace";
}

bool IsCounted(const Trace& trace, NamedEvents what, uint32_t row) {
  if (what == NamedEvents::kDeviceOps || what == NamedEvents::kCalls) return true;
  const RangeKind kind = trace.ranges.kind[row];
  if (what == NamedEvents::kPython) return kind == RangeKind::kPythonFunction;
  return kind != RangeKind::kPythonFunction && kind != RangeKind::kOverhead &&
         kind != RangeKind::kGpuAnnotation && !IsProfilersSpan(trace, row);
}

Category CategoryOfRow(Categorizer& categorizer, NamedEvents what, uint32_t row) {
  if (what == NamedEvents::kDeviceOps) return categorizer.OfDeviceOp(row);
  if (what == NamedEvents::kCalls) return categorizer.OfCall(row);
  return categorizer.OfRange(row);
}

class Maker {
 public:
  Maker(const Trace& trace, NamedEvents what, const IntervalSet& window)
      : trace_(trace),
        what_(what),
        columns_(ColumnsOf(trace, what)),
        cutter_(window),
        categorizer_(trace),
        group_of_(trace.strings.size(), kNoGroup) {}

  NameTable Make() {
    Sum();
    FindMedians();
    for (const NameRow& row : table_.rows) table_.self += row.self;
    return std::move(table_);
  }

 private:
  bool nests() const { return what_ == NamedEvents::kOperators || what_ == NamedEvents::kPython; }

  void Sum() {
    const auto size = static_cast<uint32_t>(columns_.size());
    for (uint32_t row = 0; row < size; ++row) {
      CancelPoint(row);
      Duration part;
      if (!cutter_.Cut(columns_.interval(Row{row}), &part)) continue;
      if (IsCounted(trace_, what_, row)) Add(row, part);
      if (nests()) Charge(row, part);
    }
    for (NameRow& row : table_.rows) row.self = nests() ? std::max(row.self, {}) : row.total;
  }

  void Add(uint32_t row, Duration part) {
    uint32_t& group = group_of_[Index(columns_.name[row])];
    if (group == kNoGroup) {
      group = static_cast<uint32_t>(table_.rows.size());
      table_.rows.push_back({.name = columns_.name[row],
                             .category = CategoryOfRow(categorizer_, what_, row),
                             .longest = Duration{-1}});
    }
    NameRow& sum = table_.rows[group];
    ++sum.count;
    sum.total += part;
    sum.self += part;
    if (part > sum.longest) {
      sum.longest = part;
      sum.longest_row = Row{row};
    }
    ++table_.events;
  }

  // Takes a range's time from what its parent has for itself. The parent, which began before,
  // has its group by now.
  void Charge(uint32_t row, Duration part) {
    const Row parent = trace_.ranges.parent[row];
    if (parent == kNoRow || !IsCounted(trace_, what_, static_cast<uint32_t>(parent))) return;
    const uint32_t group = group_of_[Index(columns_.name[Index(parent)])];
    if (group != kNoGroup) table_.rows[group].self -= part;
  }

  void FindMedians() {
    std::vector<uint64_t> next(table_.rows.size() + 1, 0);
    for (size_t g = 0; g < table_.rows.size(); ++g) next[g + 1] = next[g] + table_.rows[g].count;
    std::vector<int64_t> parts(next.back());
    std::vector<uint64_t> at(next.begin(), next.end() - 1);
    const auto size = static_cast<uint32_t>(columns_.size());
    for (uint32_t row = 0; row < size; ++row) {
      CancelPoint(row);
      Duration part;
      if (!IsCounted(trace_, what_, row)) continue;
      if (!cutter_.Cut(columns_.interval(Row{row}), &part)) continue;
      parts[at[group_of_[Index(columns_.name[row])]]++] = part.ns;
    }
    for (size_t g = 0; g < table_.rows.size(); ++g) {
      CancelPoint();
      const auto first = parts.begin() + static_cast<int64_t>(next[g]);
      const auto middle = first + static_cast<int64_t>((table_.rows[g].count - 1) / 2);
      std::nth_element(first, middle, parts.begin() + static_cast<int64_t>(next[g + 1]));
      table_.rows[g].median = Duration{*middle};
    }
  }

  const Trace& trace_;
  const NamedEvents what_;
  const EventColumns& columns_;
  const Cutter cutter_;
  Categorizer categorizer_;
  std::vector<uint32_t> group_of_;  // by name
  NameTable table_;
};

}  // namespace

Table TableOf(NamedEvents what) {
  if (what == NamedEvents::kDeviceOps) return Table::kDeviceOps;
  return what == NamedEvents::kCalls ? Table::kApi : Table::kRanges;
}

bool Cutter::Cut(const Interval& event, Duration* part) const {
  const std::span<const Interval> intervals = window_.intervals();
  if (intervals.size() == 1) {
    const Interval inside = Intersect(event, intervals.front());
    *part = inside.Empty() ? Duration{} : inside.Length();
  } else {
    *part = window_.TotalWithin(event);
  }
  if (part->ns > 0) return true;
  if (!event.Empty()) return false;
  const auto after =
      std::upper_bound(intervals.begin(), intervals.end(), event.begin,
                       [](TraceTime t, const Interval& interval) { return t < interval.begin; });
  return after != intervals.begin() && (after - 1)->Contains(event.begin);
}

NameTable MakeNameTable(const Trace& trace, NamedEvents what, const IntervalSet& window) {
  return Maker(trace, what, window).Make();
}

}  // namespace trainprof
