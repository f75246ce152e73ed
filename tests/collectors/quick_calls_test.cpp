#include "collectors/cupti/quick_calls.h"

#include <gtest/gtest.h>

#include <vector>

namespace trainprof::collectors {
namespace {

TEST(QuickCalls, AreAllLookedAtWhileThatIsNotInVain) {
  QuickCalls calls{};
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(calls.Pass());
    calls.NoteLook(false);
  }
}

TEST(QuickCalls, ArePassedOverMoreAndMoreWhereLooksAreInVain) {
  QuickCalls calls{};
  int looks = 0;
  for (int i = 0; i < 100'000; ++i) {
    if (calls.Pass()) continue;
    ++looks;
    calls.NoteLook(true);
  }
  EXPECT_GT(looks, 100'000 / 24);
  EXPECT_LT(looks, 100'000 / 12);
  while (calls.Pass()) {
  }
  calls.NoteLook(false);
  EXPECT_FALSE(calls.Pass()) << "a site that nobody had seen: others may stand beside it";
}

// A new one among them is seen soon.
TEST(QuickCalls, OfALoopAreAllSeenInTheEnd) {
  for (size_t in_loop = 1; in_loop <= 64; ++in_loop) {
    QuickCalls calls{};
    std::vector<int> seen(in_loop);
    for (size_t i = 0; i < 1000 * in_loop; ++i) {
      if (calls.Pass()) continue;
      ++seen[i % in_loop];
      calls.NoteLook(true);
    }
    for (size_t i = 0; i < in_loop; ++i) EXPECT_GT(seen[i], 20) << i << " of " << in_loop;
  }
}

}  // namespace
}  // namespace trainprof::collectors
