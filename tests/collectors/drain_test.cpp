// Chunks that the supervisor drains while the program runs: nothing is lost, nothing is there twice, and the raw file
// stays small.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>

#include "tests/collectors/handed_over.h"
#include "tests/collectors/recorded_run.h"
#include "tests/support/segment_writer.h"
#include "trace/recording/files/run_directory.h"

namespace trainprof::testing {
namespace {

namespace fs = std::filesystem;

// Until that many chunks have been taken out.
void AwaitDrained(const RecordedRun& run, size_t chunks) {
  for (int i = 0; i < 4000 && run.Drained().size() < chunks; ++i) usleep(5000);
  EXPECT_GE(run.Drained().size(), chunks);
}

uint64_t BytesOf(const fs::path& run, const std::string& suffix) {
  uint64_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(run)) {
    if (entry.path().string().ends_with(suffix)) bytes += entry.file_size();
  }
  return bytes;
}

TEST(DrainKill, AtAHundredRandomMomentsLosesNothing) {
  std::mt19937 random(20261126);
  std::uniform_int_distribution<int> delay_us(0, 40'000);
  size_t drained = 0;
  for (int i = 0; i < RandomKills(); ++i) {
    RecordedRun run;
    run.StartDraining();
    const auto file = run.Scratch("handed_over");
    const SharedCounts handed(file);
    const pid_t pid = run.Start({"numbered", file.string()});
    AwaitFirst(*handed);
    if (i % 4 != 0) AwaitDrained(run, 1);
    usleep(static_cast<useconds_t>(delay_us(random)));
    if (i % 3 == 1) run.StopDraining(true);  // the supervisor first
    if (i % 6 == 1) {
      run.StartDraining();  // another goes on
      usleep(300'000);
    }
    kill(pid, SIGKILL);
    const int status = run.Wait();
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    run.StopDraining();
    const Trace raw = run.ReadOne();
    ExpectNothingLost(raw, *handed);
    EXPECT_EQ(raw.quality.CountOf("lost_chunk"), 0);
    drained += run.Drained().size();
    if (i % 5 != 0) continue;
    const auto summary = recording::SealRecording(run.directory(), {}, InAnHour());
    ASSERT_TRUE(summary.ok()) << summary.error();
    EXPECT_EQ(summary.value().left_raw, 0u);
    EXPECT_EQ(BytesOf(run.directory(), recording::kDrainedSuffix), 0u);
    const Trace sealed = run.ReadOne();
    EXPECT_EQ(sealed.ranges, raw.ranges);
    EXPECT_EQ(sealed.quality, raw.quality);
  }
  EXPECT_GT(drained, 2u * RandomKills());
}

TEST(Drain, ReadWhileItRunsItHasNoHoles) {
  RecordedRun run;
  run.StartDraining();
  const auto file = run.Scratch("handed_over");
  const SharedCounts handed(file);
  const pid_t pid = run.Start({"numbered", file.string(), "5"});
  AwaitFirst(*handed);
  AwaitDrained(run, 1);
  size_t last = 0;
  for (int i = 0; i < (kIsSanitized ? 2 : 6); ++i) {
    const Trace live = run.ReadOne();
    ExpectNoHoles(live);
    EXPECT_GT(live.ranges.size(), last);
    last = live.ranges.size();
  }
  kill(pid, SIGKILL);
  run.Wait();
  run.StopDraining();
  ExpectNothingLost(run.ReadOne(), *handed);
}

TEST(Drain, TheRawFileOfALongRunStaysSmall) {
  constexpr int kBursts = 300;
  RecordedRun run;
  run.StartDraining();
  ASSERT_EQ(run.Run({"paced", std::to_string(kBursts), "10"}), 0);
  run.StopDraining();
  // Its 1.5 million ranges take 24 MB.
  EXPECT_LT(BytesOf(run.directory(), recording::kSegmentSuffix), 8'000'000u);
  EXPECT_LT(BytesOf(run.directory(), recording::kDrainedSuffix), 12'000'000u);
  const Trace raw = run.ReadOne();
  EXPECT_EQ(CountRanges(raw, "paced"), kBursts * 5000);
  EXPECT_TRUE(raw.quality.items().empty());
  ASSERT_TRUE(recording::SealRecording(run.directory(), {}, InAnHour()).ok());
  EXPECT_EQ(BytesOf(run.directory(), recording::kDrainedSuffix), 0u);
  EXPECT_EQ(run.ReadOne().ranges, raw.ranges);
}

TEST(Drain, TheSameIsRecordedAsWithoutIt) {
  RecordedRun drained;
  drained.StartDraining();
  ASSERT_EQ(drained.Run({"paced", "60", "10"}), 0);
  drained.StopDraining();
  EXPECT_GT(drained.Drained().size(), 0u);
  RecordedRun alone;
  ASSERT_EQ(alone.Run({"paced", "60", "10"}), 0);
  EXPECT_EQ(RangeNames(drained.ReadOne()), RangeNames(alone.ReadOne()));
}

TEST(Drain, AProcessThatRecordsLittleGetsNoFile) {
  RecordedRun run;
  run.StartDraining();
  ASSERT_EQ(run.Run({"paced", "1", "600"}), 0);
  run.StopDraining();
  EXPECT_EQ(BytesOf(run.directory(), recording::kDrainedSuffix), 0u);
  EXPECT_EQ(CountRanges(run.ReadOne(), "paced"), 5000);
}

TEST(Drain, AllFilesTogetherStayWithinTheSizeBound) {
  constexpr uint64_t kBound = 3'000'000;
  RecordedRun run(kBound);
  run.StartDraining();
  ASSERT_EQ(run.Run({"paced", "300", "5"}), 0);
  run.StopDraining();
  EXPECT_LE(BytesOf(run.directory(), recording::kSegmentSuffix) +
                BytesOf(run.directory(), recording::kDrainedSuffix),
            kBound);
  const Trace trace = run.ReadOne();
  EXPECT_EQ(CountRanges(trace, "paced") + trace.quality.CountOf("dropped_events") +
                trace.quality.CountOf("thinned_events"),
            300 * 5000);
}

// A child has its parent's chunks mapped: they are the parent's.
TEST(DrainFork, ChildrenBesideBusyThreadsLoseNothing) {
  RecordedRun run;
  run.StartDraining();
  ASSERT_EQ(run.Run({"fork", kIsSanitized ? "20" : "200"}), 0) << run.output();
  run.StopDraining();
  for (const recording::RankTrace& rank : run.Read()) {
    EXPECT_EQ(rank.trace.quality.CountOf("corrupt_chunk"), 0);
    EXPECT_EQ(rank.trace.quality.CountOf("lost_chunk"), 0);
  }
}

}  // namespace
}  // namespace trainprof::testing
