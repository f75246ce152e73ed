#include "trace/base/sort_runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>

namespace trainprof {
namespace {

using Items = std::vector<std::pair<int, int>>;  // key, place

Items Sorted(Items items) {
  SortRuns(items, [](const auto& item) { return item.first; });
  return items;
}

TEST(SortRuns, EqualKeysStayInTheirOrder) {
  EXPECT_EQ(Sorted({{1, 0}, {2, 1}, {2, 2}, {1, 3}, {2, 4}, {0, 5}}),
            (Items{{0, 5}, {1, 0}, {1, 3}, {2, 1}, {2, 2}, {2, 4}}));
}

TEST(SortRuns, GivesWhatAStableSortGives) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    const size_t size = random() % 60;
    const int keys = 1 + static_cast<int>(random() % 30);
    const size_t run = 1 + random() % 20;  // about so many in order
    Items items;
    int key = 0;
    for (size_t i = 0; i < size; ++i) {
      key = random() % run == 0 ? static_cast<int>(random()) % keys : key + 1;
      items.emplace_back(key, static_cast<int>(i));
    }
    Items expected = items;
    std::stable_sort(expected.begin(), expected.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    EXPECT_EQ(Sorted(items), expected);
  }
}

}  // namespace
}  // namespace trainprof
