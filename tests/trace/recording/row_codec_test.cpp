#include "trace/recording/row_codec.h"

#include <gtest/gtest.h>

#include <random>

namespace trainprof::recording {
namespace {

std::vector<uint64_t> PackedAndBack(const std::vector<uint64_t>& rows, uint16_t row_bytes) {
  std::vector<uint64_t> back(7, 99);  // what an earlier chunk left
  UnpackRows(PackRows(rows, row_bytes), row_bytes, back);
  return back;
}

TEST(RowCodec, AnyWordsComeBackAsTheyWere) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 500; ++i) {
    const auto row_bytes = static_cast<uint16_t>(8 * (2 + random() % 20));
    std::vector<uint64_t> rows(random() % 500);
    for (uint64_t& word : rows) word = random() >> random() % 64;
    EXPECT_EQ(PackedAndBack(rows, row_bytes), rows) << row_bytes;
  }
}

// Any mixture of columns that hold and columns that vary, also by one value alone.
TEST(RowCodec, ColumnsThatHoldComeBackAsTheyWere) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 500; ++i) {
    const size_t words = 2 + random() % 12;
    const size_t count = 1 + random() % 40;
    std::vector<uint64_t> row(words);
    for (uint64_t& word : row) word = random() >> random() % 64;
    std::vector<uint64_t> rows;
    for (size_t r = 0; r < count; ++r) rows.insert(rows.end(), row.begin(), row.end());
    for (size_t changes = random() % 4; changes > 0; --changes) {
      rows[random() % rows.size()] ^= uint64_t{1} << random() % 64;
    }
    rows.resize(rows.size() + random() % words, 5);
    EXPECT_EQ(PackedAndBack(rows, static_cast<uint16_t>(8 * words)), rows) << i;
  }
}

TEST(RowCodec, RowsThatRepeatBecomeZeros) {
  std::vector<uint64_t> rows;
  for (uint64_t i = 0; i < 100; ++i) rows.insert(rows.end(), {1000 * i, 1000 * i + 7, 5, 6});
  const std::vector<uint64_t> packed = PackRows(rows, 32);
  size_t zeros = 0;
  for (const uint64_t word : packed) zeros += word == 0;
  EXPECT_GT(zeros, 340u);  // of 400
}

TEST(RowCodec, RowsWithoutTimesHaveNoColumns) {
  for (const uint16_t bytes : {0, 8, 20}) EXPECT_FALSE(HasColumns(bytes)) << bytes;
  for (const uint16_t bytes : {16, 40, 96}) EXPECT_TRUE(HasColumns(bytes)) << bytes;
}

}  // namespace
}  // namespace trainprof::recording
