// Room for columns of millions of rows. Growing step by step copies them over and over, and each
// page of 4 KiB costs a fault when it is first written: as much as filling it.
#pragma once

#include <cstddef>
#include <vector>

namespace trainprof {

// Asks the kernel for pages of 2 MiB behind room that nothing was written to. Where it has none to
// give, or the room is small, nothing changes.
void PreferLargePages(void* room, size_t bytes);

// As reserve(). Memory is taken only as rows are written, so that an estimate may be too high.
template <class T>
void ReserveLarge(std::vector<T>& column, size_t rows) {
  if (column.capacity() >= rows) return;
  column.reserve(rows);
  PreferLargePages(column.data() + column.size(), (rows - column.size()) * sizeof(T));
}

}  // namespace trainprof
