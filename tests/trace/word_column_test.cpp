// WordColumn against a vector: the same rows whatever is added, within a byte a row.
#include "trace/base/word_column.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/support/sanitized.h"

namespace trainprof {
namespace {

TEST(WordColumn, TakesAByteARowAndNoneWhileNoRowHasAWord) {
  WordColumn column;
  column.resize(1000);
  column.push_back(kEmptyString);
  EXPECT_EQ(column.stored_bytes(), 0u);
  column.Expect(1500);
  EXPECT_EQ(column.stored_bytes(), 0u);
  column.resize(1500, StringId{7});
  EXPECT_EQ(column.stored_bytes(), 1500u);
  EXPECT_EQ(column[1000], kEmptyString);
  EXPECT_EQ(column[1001], StringId{7});
}

TEST(WordColumn, HoldsMoreWordsThanAByteCounts) {
  WordColumn column;
  for (uint32_t word = 0; word < 1000; ++word) column.push_back(StringId{word % 700});
  for (uint32_t row = 0; row < 1000; ++row) ASSERT_EQ(column[row], StringId{row % 700});
  // What is stored may be put in another order.
  int visits = 0;
  VisitStored(column, [&](auto& rows) {
    std::reverse(rows.begin(), rows.end());
    ++visits;
  });
  EXPECT_EQ(visits, 1);
  EXPECT_EQ(column[0], StringId{299});
}

TEST(WordColumn, DoesAsAVectorDoes) {
  for (uint32_t seed = 0; seed < testing::Rounds<uint32_t>(2000); ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
    const uint32_t words = below(20) == 0 ? 2000 : 1 + below(6);
    WordColumn column;
    std::vector<StringId> plain;
    for (uint32_t step = below(words > 100 ? 800 : 12); step > 0; --step) {
      const StringId word{below(2) == 0 ? 0 : below(words)};
      if (below(4) == 0) {
        const size_t size = below(2) == 0 ? plain.size() + below(8) : below(8);
        column.resize(size, word);
        plain.resize(size, word);
      } else {
        column.push_back(word);
        plain.push_back(word);
      }
      ASSERT_EQ(column.size(), plain.size()) << seed;
      if (!plain.empty()) {
        ASSERT_EQ(column.back(), plain.back()) << seed;
      }
    }
    for (size_t row = 0; row < plain.size(); ++row) ASSERT_EQ(column[row], plain[row]) << seed;
    VisitStored(column, [&](auto& rows) { ASSERT_EQ(rows.size(), plain.size()) << seed; });
    // Equal whatever they held before.
    WordColumn again;
    for (const StringId word : plain) again.push_back(word);
    EXPECT_EQ(again, column) << seed;
    again.push_back(StringId{1});
    EXPECT_FALSE(again == column) << seed;
  }
}

}  // namespace
}  // namespace trainprof
