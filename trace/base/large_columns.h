// Room for columns of millions of rows. Growing step by step copies them over and over, and each
// page of 4 KiB costs a fault when it is first written: as much as filling it.
#pragma once

#include <atomic>
#include <cstddef>
#include <type_traits>
#include <vector>

#include "trace/base/parallel.h"

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

// Gives back the memory behind room that nothing is written to any more.
void ReturnPages(void* room, size_t bytes);

// The memory behind what a column has of room beyond its rows: it takes some again where rows are added.
template <class T>
void ReturnRoom(std::vector<T>& column) {
  ReturnPages(column.data() + column.size(), (column.capacity() - column.size()) * sizeof(T));
}

// So many zeros.
template <class T>
void AssignLarge(std::vector<T>& column, size_t rows) {
  column.clear();
  ReserveLarge(column, rows);
  column.resize(rows);
}

// As push_back(), of a column whose length nobody knows before.
template <class T>
void AddLarge(std::vector<T>& column, const std::type_identity_t<T>& row) {
  constexpr size_t kFewRows = size_t{1} << 14;
  if (column.size() == column.capacity() && column.size() >= kFewRows) {
    ReserveLarge(column, 2 * column.size());
  }
  column.push_back(row);
}

// Has the kernel clear the pages of rooms while others fill them, on a thread of its own: where it
// comes first, writing the first row of a page costs nothing.
class RoomAhead {
 public:
  RoomAhead() = default;
  RoomAhead(const RoomAhead&) = delete;
  RoomAhead& operator=(const RoomAhead&) = delete;
  ~RoomAhead() { stop_ = true; }

  // What is behind the rows of a column, up to its capacity. All columns before Start(). What rooms
  // hold never changes: that a column gets other room meanwhile is a waste, no error.
  template <class T>
  void Add(std::vector<T>& column) {
    rooms_.push_back({reinterpret_cast<char*>(column.data() + column.size()),
                      (column.capacity() - column.size()) * sizeof(T)});
  }
  // Nothing happens where there is one core alone, or little room.
  void Start();

 private:
  struct Room {
    char* begin;
    size_t bytes;
  };
  void Work() const;

  std::vector<Room> rooms_;
  std::atomic<bool> stop_ = false;
  Helpers helper_;  // one, or none
};

}  // namespace trainprof
