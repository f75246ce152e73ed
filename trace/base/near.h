// Search from where the last one ended.
#pragma once

#include <cstddef>

namespace trainprof {

// Of the places [first, last) the first for which `is_before(place)` does not hold, which holds for none behind it;
// from `near` (of [first, last]) on: O(log distance) where the answer is close to it.
template <class Predicate>
size_t PlaceNear(size_t first, size_t last, size_t near, Predicate is_before) {
  size_t low = first;
  size_t high = last;
  if (near != last && is_before(near)) {
    low = near + 1;
    for (size_t step = 1; low < last; step *= 2) {
      const size_t probe = last - low > step ? low + step - 1 : last - 1;
      if (!is_before(probe)) {
        high = probe;
        break;
      }
      low = probe + 1;
    }
  } else {
    high = near;
    for (size_t step = 1; high > first; step *= 2) {
      const size_t probe = high - first > step ? high - step : first;
      if (is_before(probe)) {
        low = probe + 1;
        break;
      }
      high = probe;
    }
  }
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    is_before(middle) ? low = middle + 1 : high = middle;
  }
  return low;
}

// As std::partition_point(first, last, is_before) of a vector's iterators.
template <class Iterator, class Predicate>
Iterator PartitionNear(Iterator first, Iterator last, Iterator near, Predicate is_before) {
  const auto place =
      PlaceNear(0, static_cast<size_t>(last - first), static_cast<size_t>(near - first),
                [&](size_t at) { return is_before(first[static_cast<ptrdiff_t>(at)]); });
  return first + static_cast<ptrdiff_t>(place);
}

}  // namespace trainprof
