// Sorts what comes as a few sorted runs, one behind the other: rows of a device stand stream by
// stream, and in order within each.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "trace/base/cancel.h"
#include "trace/base/large_columns.h"

namespace trainprof {

// By key(item), those of equal keys in their order. O(n log(runs)); can be cancelled.
template <class T, class Key>
void SortRuns(std::vector<T>& items, Key key) {
  std::vector<size_t> ends;  // of the runs
  for (size_t i = 1; i < items.size(); ++i) {
    CancelPoint(i);
    if (key(items[i]) < key(items[i - 1])) ends.push_back(i);
  }
  if (ends.empty()) return;
  ends.push_back(items.size());
  std::vector<T> merged;
  AssignLarge(merged, items.size());
  while (ends.size() > 1) {
    size_t runs = 0;
    T* out = merged.data();
    const T* a = items.data();
    for (size_t run = 0; run < ends.size(); run += 2) {
      CancelPoint(run);
      const T* const middle = items.data() + ends[run];
      const T* const end = run + 1 < ends.size() ? items.data() + ends[run + 1] : middle;
      const T* b = middle;
      // Without a branch on the data: neither side is likelier to come first.
      while (a < middle && b < end) {
        CancelPoint(static_cast<size_t>(out - merged.data()));
        const bool take_b = key(*b) < key(*a);
        *out++ = take_b ? *b : *a;
        b += take_b ? 1 : 0;
        a += take_b ? 0 : 1;
      }
      out = std::copy(a, middle, out);
      out = std::copy(b, end, out);
      a = end;
      ends[runs++] = static_cast<size_t>(end - items.data());
    }
    ends.resize(runs);
    items.swap(merged);
  }
}

}  // namespace trainprof
