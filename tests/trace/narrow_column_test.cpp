// NarrowColumn against a vector: the same numbers whatever is added, four bytes a row for those that fit.
#include "trace/base/narrow_column.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/support/sanitized.h"
#include "trace/base/rare_column.h"

namespace trainprof {
namespace {

TEST(NarrowColumn, TakesFourBytesARowAndEightForOneThatDoesNotFit) {
  NarrowColumn column;
  column.Expect(1000);
  for (int64_t row = 0; row < 1000; ++row)
    column.push_back(row == 500 ? INT64_MAX : row * 2'000'000);
  EXPECT_EQ(column.stored_bytes(), 1000 * sizeof(uint32_t) + sizeof(int64_t));
  NarrowColumn absent;
  absent.Expect(1000);
  absent.resize(1000, INT64_MIN);  // kNoCorrelation
  EXPECT_EQ(absent.stored_bytes(), 1000 * sizeof(uint32_t) + sizeof(int64_t));
  EXPECT_EQ(absent[999], INT64_MIN);
}

TEST(NarrowColumn, DoesAsAVectorDoes) {
  constexpr int64_t kEdge = (int64_t{1} << 31) - (int64_t{1} << 16);
  constexpr int64_t kValues[] = {
      0,         1,         -1,        kEdge - 1,           kEdge,
      kEdge + 1, INT64_MIN, INT64_MAX, -(int64_t{1} << 16), -(int64_t{1} << 16) - 1,
      1'000'000, 1LL << 32, 1LL << 31};
  for (uint32_t seed = 0; seed < testing::Rounds<uint32_t>(2000); ++seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](uint64_t n) { return static_cast<size_t>(random() % n); };
    NarrowColumn column;
    std::vector<int64_t> plain;
    for (size_t step = below(40); step > 0; --step) {
      const int64_t value =
          below(8) == 0 ? static_cast<int64_t>(random()) : kValues[below(std::size(kValues))];
      switch (below(4)) {
        case 0: {
          const size_t size = below(2) == 0 ? plain.size() + below(8) : below(8);
          column.resize(size, value);
          plain.resize(size, value);
          break;
        }
        case 1:
          if (plain.empty()) break;
          if (const size_t row = below(plain.size()); below(2) == 0) {
            column.Set(row, value);
            plain[row] = value;
          } else {
            SetBack(column, value);
            plain.back() = value;
          }
          break;
        default:
          column.push_back(value);
          plain.push_back(value);
      }
    }
    VisitStored(column, [&](auto& rows) { std::reverse(rows.begin(), rows.end()); });
    std::reverse(plain.begin(), plain.end());
    ASSERT_EQ(column.size(), plain.size()) << seed;
    for (size_t row = 0; row < plain.size(); ++row) ASSERT_EQ(column[row], plain[row]) << seed;
    NarrowColumn again;
    for (const int64_t value : plain) again.push_back(value);
    EXPECT_EQ(again, column) << seed;
    again.push_back(1);
    EXPECT_FALSE(again == column) << seed;
  }
}

}  // namespace
}  // namespace trainprof
