#include "trace/recording/read/correlation_set.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace trainprof::recording {
namespace {

TEST(CorrelationSet, HoldsWhatWasAddedAndNothingElse) {
  std::mt19937_64 random(1);
  CorrelationSet ids;
  EXPECT_TRUE(ids.empty());
  EXPECT_FALSE(ids.Contains(0));
  std::set<uint32_t> twin;
  for (int i = 0; i < 2000; ++i) {
    const auto near = static_cast<uint32_t>(random() % 10'000);
    const uint32_t id = random() % 20 == 0 ? UINT32_MAX - near : near;
    ids.Add(id);
    twin.insert(id);
  }
  EXPECT_FALSE(ids.empty());
  for (uint32_t near = 0; near < 20'000; ++near) {
    for (const uint32_t id : {near, UINT32_MAX - near}) {
      EXPECT_EQ(ids.Contains(id), twin.contains(id)) << id;
    }
  }
}

TEST(CorrelationSet, IsWithinTwoWhenEachIdIsInOne) {
  CorrelationSet ids;
  CorrelationSet even;
  CorrelationSet odd;
  EXPECT_TRUE(ids.IsWithin(even, odd)) << "nothing is in nothing";
  for (uint32_t id = 1; id < 20'000; ++id) {
    ids.Add(id);
    if (id != 12'345) (id % 2 == 0 ? even : odd).Add(id);
  }
  EXPECT_FALSE(ids.IsWithin(even, odd));
  EXPECT_FALSE(ids.IsWithin(even, even));
  EXPECT_TRUE(even.IsWithin(ids, odd));
  odd.Add(12'345);
  EXPECT_TRUE(ids.IsWithin(even, odd));
  ids.Add(UINT32_MAX);
  EXPECT_FALSE(ids.IsWithin(even, odd));
}

}  // namespace
}  // namespace trainprof::recording
