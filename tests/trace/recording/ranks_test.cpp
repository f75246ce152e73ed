// The ranks of a recording come one by one, each when it is asked for; reading ends when cancelled.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>

#include "tests/support/scratch_folder.h"
#include "tests/trace/cancel_everywhere.h"
#include "tests/trace/recording/rows_of.h"
#include "trace/recording/read/reader.h"
#include "trace/recording/seal/sealer.h"

namespace trainprof::testing {
namespace {

using recording::ReadProgress;

std::filesystem::path FolderOf(const ScratchFolder& scratch, int rank) {
  const std::string number = std::to_string(rank);
  return scratch / ("rank-" + std::string(5 - number.size(), '0') + number).c_str();
}

// A step and a kernel, on a thread that the program has named.
std::filesystem::path WriteRank(const ScratchFolder& scratch, int rank, uint64_t steps = 1) {
  SegmentWriter writer(FolderOf(scratch, rank));
  writer.BeginWriter(0, 100);
  writer.ThreadName(100, "main loop");
  for (uint64_t i = 0; i < steps; ++i) {
    writer.Push("step", 1000 * (i + 1));
    writer.Pop(1000 * (i + 1) + 500);
    const auto at = static_cast<int64_t>(1000 * (i + 1));
    writer.Row(RowOf(recording::DeviceRowType::kKernel, at, at + 100, 7));
  }
  writer.Finish();
  return writer.path();
}

// In place: a reader may have the file open.
void Replace(const std::filesystem::path& path, std::string_view from, std::string_view to) {
  const std::vector<char> bytes = ReadBytes(path);
  const auto at = std::search(bytes.begin(), bytes.end(), from.begin(), from.end());
  ASSERT_NE(at, bytes.end());
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(at - bytes.begin());
  file.write(to.data(), static_cast<std::streamsize>(to.size()));
}

// 64 ranks would keep the first one from the screen for long. Names of threads are what records are
// read for before they are decoded.
TEST(RanksOfARecording, AreNotReadBeforeTheirTurn) {
  const ScratchFolder scratch;
  WriteRank(scratch, 0);
  const std::filesystem::path second = WriteRank(scratch, 1);
  std::vector<std::string> names;
  const Result<void> visited =
      recording::VisitRecording(scratch.path(), [&](recording::RankTrace rank) -> Result<void> {
        names.emplace_back(rank.trace.Text(rank.trace.tracks[0].name));
        if (rank.rank == 0) Replace(second, "main loop", "MAIN LOOP");
        return {};
      });
  ASSERT_TRUE(visited.ok());
  EXPECT_EQ(names, (std::vector<std::string>{"main loop", "MAIN LOOP"}));
}

TEST(RanksOfARecording, ComeByNumberAndKnowHowManyThereAre) {
  const ScratchFolder scratch;
  for (const int rank : {10, 2, 0}) WriteRank(scratch, rank);
  std::vector<int> order;
  ASSERT_TRUE(recording::VisitRecording(scratch.path(), [&](recording::RankTrace rank) {
                order.push_back(rank.rank);
                EXPECT_EQ(rank.trace.world_size, 11);
                return Result<void>();
              }).ok());
  EXPECT_EQ(order, (std::vector<int>{0, 2, 10}));
}

// More than keep their file open meanwhile.
TEST(RanksOfARecording, AreReadWholeWhenSealedMeanwhile) {
  constexpr int kRanks = 70;
  const ScratchFolder scratch;
  const std::filesystem::path run = scratch / "run";
  ASSERT_TRUE(recording::CreateRun(run, recording::RunDescription{}).ok());
  for (int rank = 0; rank < kRanks; ++rank) {
    std::filesystem::rename(WriteRank(scratch, rank).parent_path(),
                            run / FolderOf(scratch, rank).filename());
  }
  int ranks = 0;
  const auto seal = [&] {
    const auto deadline = testing::InAnHour();
    ASSERT_TRUE(recording::SealRecording(run, {}, deadline).ok());
  };
  ASSERT_TRUE(recording::VisitRecording(run, [&](recording::RankTrace rank) {
                if (ranks++ == 0) seal();
                EXPECT_EQ(rank.trace.ranges.size(), 1u) << rank.folder;
                EXPECT_EQ(rank.trace.device_ops.size(), 1u) << rank.folder;
                EXPECT_EQ(rank.trace.quality.CountOf("corrupt_chunk"), 0) << rank.folder;
                return Result<void>();
              }).ok());
  EXPECT_EQ(ranks, kRanks);
}

TEST(RanksOfARecording, ProgressGrowsFromBeginToEndOfEach) {
  const ScratchFolder scratch;
  WriteRank(scratch, 0, 20'000);
  WriteRank(scratch, 1, 10);
  std::vector<ReadProgress> seen;
  ASSERT_TRUE(recording::VisitRecording(
                  scratch.path(), [](const recording::RankTrace&) { return Result<void>(); },
                  [&](const ReadProgress& progress) { seen.push_back(progress); })
                  .ok());
  ASSERT_GT(seen.size(), 6u);
  size_t between = 0;
  for (size_t i = 0; i < seen.size(); ++i) {
    EXPECT_EQ(seen[i].folders, 2u);
    const bool is_first = i == 0 || seen[i].folder != seen[i - 1].folder;
    if (is_first) {
      EXPECT_EQ(seen[i].share, 0);
      EXPECT_EQ(seen[i].events, 0u);
    } else {
      EXPECT_GE(seen[i].share, seen[i - 1].share);
      EXPECT_GE(seen[i].events, seen[i - 1].events);
    }
    if (seen[i].share > 0 && seen[i].share < 1) ++between;
    const bool is_last = i + 1 == seen.size() || seen[i + 1].folder != seen[i].folder;
    if (is_last) {
      EXPECT_DOUBLE_EQ(seen[i].share, 1);
    }
  }
  EXPECT_GE(between, 2u);
}

TEST(RanksOfARecording, ReadingEndsAnywhere) {
  const ScratchFolder scratch;
  for (const int rank : {0, 1}) WriteRank(scratch, rank, 20);
  ExpectCancellableEverywhere(
      [&] {
        const auto ranks = recording::ReadRecording(scratch.path());
        EXPECT_TRUE(ranks.ok() && ranks.value().size() == 2);
      },
      10);
}

// With threads that load ahead, in the middle of a rank: it is not passed on, no further one
// begins.
TEST(RanksOfARecording, ALargeRankEndsInTheMiddle) {
  const ScratchFolder scratch;
  for (const int rank : {0, 1}) WriteRank(scratch, rank, 40'000);
  std::atomic<bool> cancel = false;
  size_t visited = 0;
  ReadProgress last;
  const bool whole = RunUnlessCancelled(&cancel, [&] {
    (void)recording::VisitRecording(
        scratch.path(),
        [&](const recording::RankTrace&) {
          ++visited;
          return Result<void>();
        },
        [&](const ReadProgress& progress) {
          last = progress;
          if (progress.share > 0.5) cancel = true;
        })
        .ok();
  });
  EXPECT_FALSE(whole);
  EXPECT_EQ(visited, 0u);
  EXPECT_EQ(last.folder, 0u);
  EXPECT_LT(last.share, 1);
}

}  // namespace
}  // namespace trainprof::testing
