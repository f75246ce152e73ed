// The size bound: thinning, stopping, and the exact count of what is missing.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "tests/collectors/recorded_run.h"

namespace trainprof::testing {
namespace {

constexpr uint64_t kBound = 1 << 20;
// Ten times the bound: three ranges of 16 bytes a round.
constexpr int64_t kRounds = 220'000;

TEST(Bound, IsKeptAndEveryMissingEventIsCounted) {
  RecordedRun run(kBound);
  ASSERT_EQ(run.Run({"bulk", std::to_string(kRounds)}), 0);
  EXPECT_LE(run.BytesOfSegments(), kBound);
  const Trace trace = run.ReadOne();
  const int64_t thinned = trace.quality.CountOf("thinned_events");
  const int64_t dropped = trace.quality.CountOf("dropped_events");
  EXPECT_EQ(static_cast<int64_t>(trace.ranges.size()) + thinned + dropped, 3 * kRounds);
  EXPECT_GT(thinned, 0);
  EXPECT_GT(dropped, 0);
  EXPECT_EQ(trace.quality.CountOf("open_range_at_end"), 0) << "recorded pushes keep their pops";
  // Phases are kept longer than detail; the last round may have been cut anywhere.
  EXPECT_NEAR(CountRanges(trace, "phase"), CountRanges(trace, "part"), 1);
  EXPECT_NEAR(CountRanges(trace, "phase") - CountRanges(trace, "detail"), thinned, 1);
  ASSERT_EQ(trace.gaps.size(), 1u);
  EXPECT_EQ(trace.Text(trace.gaps[0].reason), "size bound");
}

TEST(Bound, HoldsForAllProcessesTogether) {
  RecordedRun run(kBound);
  for (int i = 0; i < 4; ++i) ASSERT_EQ(run.Run({"bulk", "20000"}), 0);
  EXPECT_LE(run.BytesOfSegments(), kBound);
  int64_t events = 0;
  for (const auto& rank : run.Read()) {
    events += static_cast<int64_t>(rank.trace.ranges.size()) +
              rank.trace.quality.CountOf("thinned_events");
  }
  const auto summary = recording::SummarizeRecording(run.directory());
  ASSERT_TRUE(summary.ok());
  uint64_t dropped = summary.value().lost_events;
  for (const auto& process : summary.value().processes) dropped += process.dropped_all;
  EXPECT_EQ(events + static_cast<int64_t>(dropped), 4 * 3 * 20'000);
}

TEST(Bound, FullMeansNoThinningBeforeIt) {
  RecordedRun run(kBound);
  run.environment[recording::kEnvOptions] = "full=1";
  ASSERT_EQ(run.Run({"bulk", std::to_string(kRounds)}), 0);
  const Trace trace = run.ReadOne();
  EXPECT_EQ(trace.quality.CountOf("thinned_events"), 0);
  EXPECT_EQ(static_cast<int64_t>(trace.ranges.size()) + trace.quality.CountOf("dropped_events"),
            3 * kRounds);
}

TEST(Bound, TooSmallForAnythingIsToldAndHarmless) {
  RecordedRun run(1000);
  ASSERT_EQ(run.Run({"bulk", "10"}), 0);
  EXPECT_EQ(run.BytesOfSegments(), 0u);
  const auto summary = recording::SummarizeRecording(run.directory());
  ASSERT_TRUE(summary.ok());
  EXPECT_EQ(summary.value().failed_processes, 1u);
  EXPECT_EQ(summary.value().lost_events, 30u);
  EXPECT_NE(summary.value().failure.find("size bound"), std::string::npos);
}

}  // namespace
}  // namespace trainprof::testing
