// What many ranks cost: nothing grows faster than the collectives that they have together.
#include <gtest/gtest.h>

#include <chrono>

#include "analysis/job/waits.h"
#include "tests/analysis/waits_twin.h"

namespace trainprof {
namespace {

double SecondsOf(const std::vector<RankDigest>& digests) {
  const auto begin = std::chrono::steady_clock::now();
  const JobWaits waits = WaitsOf(digests);
  EXPECT_TRUE(waits.Any());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

TEST(RanksScale, DISABLED_Figures) {
  for (const bool numbered : {true, false}) {
    for (const int ranks : {64, 512, 4000}) {
      const DrawnJob job = DrawJob(
          1, {.ranks = ranks, .steps = 64, .meetings = 4, .numbered = numbered, .has_pairs = true});
      size_t calls = 0;
      for (const RankDigest& digest : job.digests) {
        for (const Collectives& list : digest.collectives) calls += list.calls.size();
      }
      const double seconds = SecondsOf(job.digests);
      printf("%s %d ranks, %zu calls: %.2f s, %.0f ns a call\n", numbered ? "numbered" : "ordered",
             ranks, calls, seconds, 1e9 * seconds / static_cast<double>(calls));
    }
  }
}

}  // namespace
}  // namespace trainprof
