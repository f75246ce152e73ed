// Room for columns: what they hold is what was written, whoever takes the memory.
#include "trace/base/large_columns.h"

#include <gtest/gtest.h>

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
