#include "trace/base/tournament.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>

namespace trainprof {
namespace {

using Keys = std::vector<int64_t>;

// What comes out, with the sequence that it is of.
std::vector<std::pair<int64_t, uint32_t>> Merged(const std::vector<Keys>& sequences) {
  std::vector<size_t> next(sequences.size(), 0);
  const auto key_of = [&](uint32_t sequence) {
    const Keys& keys = sequences[sequence];
    return next[sequence] < keys.size() ? keys[next[sequence]] : Tournament::kDone;
  };
  Tournament merge(sequences.size());
  for (uint32_t i = 0; i < sequences.size(); ++i) merge.Set(i, key_of(i));
  merge.Start();
  std::vector<std::pair<int64_t, uint32_t>> merged;
  while (!merge.Done()) {
    const uint32_t first = merge.First();
    merged.emplace_back(key_of(first), first);
    ++next[first];
    merge.Advance(key_of(first));
  }
  return merged;
}

TEST(Tournament, NothingIsDoneAtOnce) {
  EXPECT_TRUE(Merged({}).empty());
  EXPECT_TRUE(Merged({{}, {}, {}}).empty());
}

TEST(Tournament, EqualKeysComeByTheNumberOfTheirSequence) {
  EXPECT_EQ(Merged({{2, 2}, {1, 2}, {2}}),
            (std::vector<std::pair<int64_t, uint32_t>>{{1, 1}, {2, 0}, {2, 0}, {2, 1}, {2, 2}}));
}

TEST(Tournament, GivesWhatAStableSortGives) {
  std::mt19937 random(11);
  for (int round = 0; round < 2000; ++round) {
    std::vector<Keys> sequences(random() % 9);
    std::vector<std::pair<int64_t, uint32_t>> expected;
    for (uint32_t i = 0; i < sequences.size(); ++i) {
      int64_t key = static_cast<int64_t>(random() % 10) - 5;
      for (size_t n = random() % 12; n > 0; --n) {
        sequences[i].push_back(key);
        expected.emplace_back(key, i);
        key += static_cast<int64_t>(random() % 4);
      }
    }
    std::stable_sort(expected.begin(), expected.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    EXPECT_EQ(Merged(sequences), expected);
  }
}

}  // namespace
}  // namespace trainprof
