// Search from where the last one ended.
#pragma once

#include <iterator>

namespace trainprof {

// As std::partition_point(first, last, is_before), from `near` (of [first, last]) on: O(log distance) where the
// answer is close to it.
template <class Iterator, class Predicate>
Iterator PartitionNear(Iterator first, Iterator last, Iterator near, Predicate is_before) {
  using Distance = typename std::iterator_traits<Iterator>::difference_type;
  Iterator low = first;
  Iterator high = last;
  if (near != last && is_before(*near)) {
    low = near + 1;
    for (Distance step = 1; low < last; step *= 2) {
      const Iterator probe = last - low > step ? low + step - 1 : last - 1;
      if (!is_before(*probe)) {
        high = probe;
        break;
      }
      low = probe + 1;
    }
  } else {
    high = near;
    for (Distance step = 1; high > first; step *= 2) {
      const Iterator probe = high - first > step ? high - step : first;
      if (is_before(*probe)) {
        low = probe + 1;
        break;
      }
      high = probe;
    }
  }
  // Itself, as of numbers (std::views::iota) std::partition_point counts every one.
  while (low < high) {
    const Iterator middle = low + (high - low) / 2;
    is_before(*middle) ? low = middle + 1 : high = middle;
  }
  return low;
}

}  // namespace trainprof
