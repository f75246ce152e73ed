#include "collectors/cupti/small_copies.h"

#include <gtest/gtest.h>

#include <vector>

namespace trainprof::collectors {
namespace {

TEST(SmallCopies, AreAllLookedAtWhileThatIsNotInVain) {
  SmallCopies copies{};
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(copies.Pass());
    copies.NoteLook(false);
  }
}

TEST(SmallCopies, ArePassedOverMoreAndMoreWhereLooksAreInVain) {
  SmallCopies copies{};
  int looks = 0;
  for (int i = 0; i < 100'000; ++i) {
    if (copies.Pass()) continue;
    ++looks;
    copies.NoteLook(true);
  }
  EXPECT_GT(looks, 100'000 / 24);
  EXPECT_LT(looks, 100'000 / 12);
  while (copies.Pass()) {
  }
  copies.NoteLook(false);
  EXPECT_FALSE(copies.Pass()) << "a site that nobody had seen: others may stand beside it";
}

// A new one among them is seen soon.
TEST(SmallCopies, OfALoopAreAllSeenInTheEnd) {
  for (size_t in_loop = 1; in_loop <= 64; ++in_loop) {
    SmallCopies copies{};
    std::vector<int> seen(in_loop);
    for (size_t i = 0; i < 1000 * in_loop; ++i) {
      if (copies.Pass()) continue;
      ++seen[i % in_loop];
      copies.NoteLook(true);
    }
    for (size_t i = 0; i < in_loop; ++i) EXPECT_GT(seen[i], 20) << i << " of " << in_loop;
  }
}

}  // namespace
}  // namespace trainprof::collectors
