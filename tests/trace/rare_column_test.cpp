#include "trace/base/rare_column.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace trainprof {
namespace {

using Column = RareColumn<int, 7>;

TEST(RareColumn, TakesNoMemoryWhileAllRowsHoldTheUsualValue) {
  Column column;
  column.Expect(1000);
  for (int i = 0; i < 1000; ++i) column.push_back(7);
  column.resize(1500, 7);
  EXPECT_EQ(column.size(), 1500u);
  EXPECT_EQ(column.stored_bytes(), 0u);
  EXPECT_EQ(column[1499], 7);
  EXPECT_EQ(StoredRows(column), nullptr);
  column.push_back(8);
  EXPECT_EQ(column[1499], 7);
  EXPECT_EQ(column[1500], 8);
  EXPECT_EQ(StoredRows(column)->size(), 1501u);
}

TEST(RareColumn, DoesAsAVectorDoes) {
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<uint32_t>(n)); };
    Column column;
    std::vector<int> plain;
    for (int step = below(12); step >= 0; --step) {
      const int value = below(3) == 0 ? below(9) : 7;
      if (below(3) == 0) {
        const auto size = static_cast<size_t>(below(8));
        column.resize(size, value);
        plain.resize(size, value);
      } else {
        column.push_back(value);
        plain.push_back(value);
      }
      ASSERT_EQ(column.size(), plain.size()) << seed;
      for (size_t row = 0; row < plain.size(); ++row) ASSERT_EQ(column[row], plain[row]) << seed;
    }
    // Equal whether or not it takes memory.
    Column again;
    for (int value : plain) again.push_back(value);
    EXPECT_EQ(again, column) << seed;
    again.push_back(1);
    EXPECT_FALSE(again == column) << seed;
  }
}

}  // namespace
}  // namespace trainprof
