// An order of tracks and of equal rows that does not depend on the order of arrival. JSON files
// list events in any order: two rows that begin and end together would otherwise be parent and
// child, or child and parent, by chance, and a report would differ between two files of the same
// events.
#pragma once

#include <algorithm>
#include <numeric>
#include <type_traits>
#include <vector>

#include "trace/base/cancel.h"
#include "trace/tables/trace.h"

namespace trainprof {

// Numbers processes by pid, devices by id, and tracks by process, kind, number and device. Of
// unsorted tables, before sums by track are made.
void OrderTracks(Trace& trace);

// Numbers what rows refer to (launch configurations, collectives, allocations) by the first row
// that refers to each. Of sorted tables.
void OrderReferredTo(Trace& trace);

// What tells two rows of equal times apart: the numbers that torch counts up as calls are made
// ("External id", "Python id"), so that an enclosing call stands first; then what they say.
class RowOrder {
  // Where two of these differ, so do names or arguments, which are the last to tell.
  template <class Id>
  static constexpr bool kIsNumberedAsItCame =
      std::is_same_v<Id, ArgsId> || std::is_same_v<Id, StackId> ||
      std::is_same_v<Id, LaunchConfigId> || std::is_same_v<Id, CollectiveId> ||
      std::is_same_v<Id, AllocationId>;

 public:
  explicit RowOrder(const Trace& trace)
      : trace_(trace),
        nesting_keys_{trace.strings.Find("External id"), trace.strings.Find("Python id")} {}

  template <class T>
  bool Before(const T& table, uint32_t a, uint32_t b) const {
    int order = CompareNesting(table.args[a], table.args[b]);
    ForEachColumn(table, [&](const auto& column) {
      if (order == 0) order = Compare(column[a], column[b]);
    });
    if (order == 0) order = CompareArgs(table.args[a], table.args[b]);
    return order < 0;
  }

 private:
  template <class T>
  int Compare(const T& a, const T& b) const {
    if constexpr (std::is_same_v<T, StringId>) {
      return a == b ? 0 : trace_.Text(a).compare(trace_.Text(b));
    } else if constexpr (kIsNumberedAsItCame<T>) {
      return 0;
    } else {
      return a < b ? -1 : b < a ? 1 : 0;
    }
  }
  int CompareNesting(ArgsId a, ArgsId b) const;
  int CompareArgs(ArgsId a, ArgsId b) const;

  const Trace& trace_;
  StringId nesting_keys_[2];
};

// Puts rows of a sorted table that share track, begin and end into RowOrder. O(n) where there are
// none.
template <class T>
void OrderEqualRows(const RowOrder& row_order, T& table) {
  std::vector<uint32_t> order;
  const auto before = [&](uint32_t a, uint32_t b) { return row_order.Before(table, a, b); };
  const auto rows = static_cast<uint32_t>(table.size());
  for (uint32_t first = 0, last = 0; first < rows; first = last) {
    CancelPoint(first);
    last = first + 1;
    while (last < rows && table.begin[last] == table.begin[first] &&
           table.end(last) == table.end(first) && table.track[last] == table.track[first]) {
      ++last;
    }
    if (last - first < 2) continue;
    order.resize(last - first);
    std::iota(order.begin(), order.end(), first);
    if (std::is_sorted(order.begin(), order.end(), before)) continue;
    std::stable_sort(order.begin(), order.end(), before);
    ForEachStored(table, [&](auto& column) {
      const std::decay_t<decltype(column)> old(column.begin() + first, column.begin() + last);
      for (size_t i = 0; i < order.size(); ++i) column[first + i] = old[order[i] - first];
    });
  }
}

}  // namespace trainprof
