#include "analysis/host/repeats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/support/sanitized.h"

namespace trainprof {
namespace {

using Sequences = std::vector<std::vector<uint64_t>>;

bool Holds(const std::vector<uint64_t>& sequence, const std::vector<uint64_t>& run) {
  return std::search(sequence.begin(), sequence.end(), run.begin(), run.end()) != sequence.end();
}

// All runs, the longest first.
CommonRun ByForce(const Sequences& sequences, double share) {
  size_t most = 0;
  for (const auto& sequence : sequences) most = std::max(most, sequence.size());
  for (size_t length = most; length > 0; --length) {
    for (size_t s = 0; s < sequences.size(); ++s) {
      for (size_t begin = 0; begin + length <= sequences[s].size(); ++begin) {
        const std::vector<uint64_t> run(
            sequences[s].begin() + static_cast<ptrdiff_t>(begin),
            sequences[s].begin() + static_cast<ptrdiff_t>(begin + length));
        const auto held = static_cast<size_t>(
            std::count_if(sequences.begin(), sequences.end(),
                          [&](const auto& sequence) { return Holds(sequence, run); }));
        if (static_cast<double>(held) + 1e-9 >= share * static_cast<double>(sequences.size())) {
          return {s, begin, length, held};
        }
      }
    }
  }
  return {};
}

TEST(LongestCommonRun, IsTheOneThatBruteForceFinds) {
  std::mt19937_64 random(7);
  for (int round = 0; round < testing::Rounds(400); ++round) {
    Sequences sequences(1 + random() % 6);
    const uint64_t names = 1 + random() % 4;
    for (auto& sequence : sequences) {
      sequence.resize(random() % 12);
      for (uint64_t& token : sequence) token = random() % names;
    }
    const double share = std::vector<double>{0.3, 0.5, 0.95, 1}[random() % 4];
    const CommonRun found = LongestCommonRun(sequences, share);
    const CommonRun expected = ByForce(sequences, share);
    ASSERT_EQ(found.length, expected.length);
    ASSERT_EQ(found.sequence, expected.sequence);
    ASSERT_EQ(found.begin, expected.begin);
    ASSERT_EQ(found.held_by, expected.held_by);
  }
}

TEST(LongestCommonRun, OfNothingIsNothing) {
  EXPECT_EQ(LongestCommonRun({}, 0.95).length, 0u);
  EXPECT_EQ(LongestCommonRun(Sequences{{}, {}}, 0.95).length, 0u);
}

// One step in twenty logs in between.
TEST(LongestCommonRun, AnOddSequenceAmongManyDoesNotMatter) {
  Sequences sequences(20, {1, 2, 3, 4});
  sequences[7] = {1, 2, 9, 3, 4};
  EXPECT_EQ(LongestCommonRun(sequences, 0.95).length, 4u);
  EXPECT_EQ(LongestCommonRun(sequences, 1).length, 2u);
}

}  // namespace
}  // namespace trainprof
