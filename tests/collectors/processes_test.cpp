// Trees of processes: who records where.
#include <gtest/gtest.h>

#include "tests/collectors/recorded_run.h"

namespace trainprof::testing {
namespace {

int64_t RangesOfProcess(const Trace& trace, int64_t pid, std::string_view name) {
  int64_t count = 0;
  for (size_t i = 0; i < trace.ranges.size(); ++i) {
    const Track& track = trace.tracks[Index(trace.ranges.track[i])];
    count += trace.processes[Index(track.process)].pid == pid &&
             trace.Text(trace.ranges.name[i]) == name;
  }
  return count;
}

class Fork : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::string(TEST_SANITIZED) == "thread") {
      GTEST_SKIP() << "the thread sanitizer's runtime does not survive a fork of many threads";
    }
  }
};

TEST_F(Fork, ChildAndParentRecordEachIntoItsOwnSegment) {
  RecordedRun run;
  const pid_t parent = run.Start({"fork", "1"});
  ASSERT_EQ(run.Wait(), 0);
  const Trace trace = run.ReadOne();  // one folder
  ASSERT_EQ(trace.processes.size(), 2u);
  EXPECT_EQ(RangesOfProcess(trace, parent, "parent"), 2);
  EXPECT_EQ(RangesOfProcess(trace, parent, "around the forks"), 1);
  EXPECT_GT(RangesOfProcess(trace, parent, "busy"), 0);
  EXPECT_EQ(RangesOfProcess(trace, parent, "child"), 0);
  EXPECT_EQ(CountRanges(trace, "child"), 1);
  EXPECT_EQ(CountRanges(trace, "child's thread"), 1);
  EXPECT_EQ(CountRanges(trace, "around the forks"), 1) << "the child has not the parent's range";
  EXPECT_TRUE(trace.quality.items().empty()) << trace.quality.items()[0].kind;
}

TEST_F(Fork, AStormWithBusyThreadsLosesNothing) {
  constexpr int64_t kChildren = 300;
  if (std::string(TEST_SANITIZED) != "") {
    GTEST_SKIP() << "a child of many threads may find the sanitizer's allocator locked for good";
  }
  RecordedRun run;
  ASSERT_EQ(run.Run({"fork", std::to_string(kChildren)}), 0);
  const Trace trace = run.ReadOne();
  EXPECT_EQ(CountRanges(trace, "parent"), 2 * kChildren);
  EXPECT_EQ(CountRanges(trace, "child"), kChildren);
  EXPECT_EQ(CountRanges(trace, "child's thread"), kChildren);
  EXPECT_TRUE(trace.quality.items().empty()) << trace.quality.items()[0].kind;
  const auto summary = recording::SummarizeRecording(run.directory());
  ASSERT_TRUE(summary.ok());
  int64_t workers = 0;
  for (const auto& process : summary.value().processes) workers += process.role == "worker";
  EXPECT_EQ(workers, kChildren);
}

TEST_F(Fork, WithoutHandlersTheChildIsNoticedAllTheSame) {
  RecordedRun run;
  ASSERT_EQ(run.Run({"rawfork"}), 0);
  const Trace trace = run.ReadOne();
  EXPECT_EQ(CountRanges(trace, "parent"), 2);
  EXPECT_EQ(CountRanges(trace, "child"), 1);
  EXPECT_EQ(trace.processes.size(), 2u);
}

TEST_F(Fork, VforkAndExecDisturbNothing) {
  RecordedRun run;
  ASSERT_EQ(run.Run({"exec"}), 0);
  const Trace trace = run.ReadOne();
  EXPECT_EQ(CountRanges(trace, "parent"), 2);
  EXPECT_EQ(trace.processes.size(), 1u);
}

TEST(Folders, ASpawnedWorkerRecordsBesideItsTrainer) {
  RecordedRun run;
  const pid_t parent = run.Start({"spawned"});
  ASSERT_EQ(run.Wait(), 0);
  const auto ranks = run.Read();
  ASSERT_EQ(ranks.size(), 1u);
  // The rest of the name is where that pid means this process.
  EXPECT_TRUE(ranks[0].folder.starts_with("pid-" + std::to_string(parent) + "-"));
  EXPECT_EQ(ranks[0].rank, -1);
  EXPECT_FALSE(ranks[0].trace.rank_known);
  EXPECT_EQ(CountRanges(ranks[0].trace, "phase"), 1);
  EXPECT_EQ(CountRanges(ranks[0].trace, "parent"), 1);
}

TEST(Folders, RanksHaveOneEach) {
  RecordedRun run;
  run.environment["RANK"] = "3";
  ASSERT_EQ(run.Run({"bulk", "1"}), 0);
  run.environment["RANK"] = "12";
  ASSERT_EQ(run.Run({"bulk", "1"}), 0);
  run.environment["RANK"] = "not a number";
  run.environment["OMPI_COMM_WORLD_RANK"] = "0";
  ASSERT_EQ(run.Run({"bulk", "1"}), 0);
  const auto ranks = run.Read();
  ASSERT_EQ(ranks.size(), 3u);
  EXPECT_EQ(ranks[0].folder, "rank-00000");
  EXPECT_EQ(ranks[1].folder, "rank-00003");
  EXPECT_EQ(ranks[2].folder, "rank-00012");
  EXPECT_EQ(ranks[2].rank, 12);
  EXPECT_EQ(ranks[2].trace.rank, 12);
  EXPECT_EQ(ranks[2].trace.world_size, 13);
  // Their times are on one scale.
  EXPECT_LT(ranks[1].trace.extent.end, ranks[2].trace.extent.begin);
  EXPECT_EQ(ranks[1].trace.base_ns, ranks[2].trace.base_ns);
}

}  // namespace
}  // namespace trainprof::testing
