// Room for columns: what they hold is what was written, whoever takes the memory.
#include "trace/base/large_columns.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

namespace trainprof {
namespace {

constexpr size_t kRows = 6'000'000;  // 48 MB of 8 bytes: worth a thread

TEST(ReserveLarge, KeepsWhatThereIsAndMakesRoom) {
  std::vector<uint32_t> column = {1, 2, 3};
  ReserveLarge(column, kRows);
  EXPECT_EQ(column, (std::vector<uint32_t>{1, 2, 3}));
  EXPECT_GE(column.capacity(), kRows);
  const uint32_t* before = column.data();
  ReserveLarge(column, 10);
  column.resize(kRows, 7);
  EXPECT_EQ(column.data(), before);
}

// Of a column's room.
size_t PagesInMemory(const std::vector<uint64_t>& column) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(column.data()) + page - 1) & ~(page - 1);
  const size_t bytes =
      (column.capacity() - page / sizeof(uint64_t)) * sizeof(uint64_t) & ~(page - 1);
  std::vector<unsigned char> is_there(bytes / page);
  if (mincore(reinterpret_cast<void*>(begin), bytes, is_there.data()) != 0) return 0;
  return static_cast<size_t>(std::count_if(is_there.begin(), is_there.end(),
                                           [](unsigned char c) { return (c & 1) != 0; }));
}

TEST(ReturnRoom, GivesMemoryBackAndKeepsTheRows) {
  std::vector<uint64_t> column;
  ReserveLarge(column, kRows);
  column.resize(kRows / 2, 7);
  column.resize(kRows / 4);
  const size_t before = PagesInMemory(column);
  ReturnRoom(column);
  EXPECT_LE(PagesInMemory(column), before / 2 + 1);
  EXPECT_EQ(std::count(column.begin(), column.end(), 7), kRows / 4);
  column.resize(kRows, 8);
  EXPECT_EQ(std::count(column.begin(), column.end(), 7), kRows / 4);
  EXPECT_EQ(std::count(column.begin(), column.end(), 8), kRows - kRows / 4);
  std::vector<uint64_t> none;
  ReturnRoom(none);
}

TEST(RoomAhead, ChangesNothingInColumnsThatAreFilledMeanwhile) {
  std::vector<uint64_t> numbers = {0, 1, 2};
  std::vector<uint8_t> bytes;
  std::vector<uint64_t> grows;
  ReserveLarge(numbers, kRows);
  ReserveLarge(bytes, kRows);
  ReserveLarge(grows, kRows / 4);
  RoomAhead room;
  room.Add(numbers);
  room.Add(bytes);
  room.Add(grows);
  room.Start();
  for (uint64_t i = 0; i < kRows; ++i) {
    if (i > 2) numbers.push_back(i);
    bytes.push_back(static_cast<uint8_t>(i));
    grows.push_back(~i);  // gets other room on the way
  }
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < kRows; ++i) {
    wrong += numbers[i] != i || bytes[i] != static_cast<uint8_t>(i) || grows[i] != ~i;
  }
  EXPECT_EQ(wrong, 0u);
}

TEST(RoomAhead, MayEndAtOnceAndStartsForNothing) {
  std::vector<uint64_t> column;
  ReserveLarge(column, kRows);
  for (int i = 0; i < 20; ++i) {
    RoomAhead room;
    room.Add(column);
    room.Start();
  }
  RoomAhead nothing;
  nothing.Start();
  EXPECT_TRUE(column.empty());
}

}  // namespace
}  // namespace trainprof
