// Loading and analysing a job ends soon when it is cancelled, with an error and nothing else.
#include "analysis/job/job.h"

#include <gtest/gtest.h>

#include "analysis/rule.h"
#include "tests/support/random_trace.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/segment_writer.h"
#include "tests/trace/cancel_everywhere.h"
#include "trace/formats/exporter.h"
#include "trace/recording/seal/sealer.h"

namespace trainprof {
namespace {

using testing::ScratchFolder;

void WriteLongRank(const std::filesystem::path& folder) {
  testing::SegmentWriter writer(folder);
  writer.BeginWriter(0, 100);
  for (uint64_t step = 1; step <= 10'000; ++step) {
    writer.Push("step", 10'000 * step);
    writer.Pop(10'000 * step + 9000);
  }
  writer.Finish();
}

// At any of its points: a verdict is whole or is not there.
TEST(Job, AnAnalysisEndsAnywhere) {
  for (const uint64_t seed : {3, 11, 29}) {
    const Trace trace = BuildTrace(DrawTrace(seed));
    const RankAnalysis expected = Analyze(trace);
    testing::ExpectCancellableEverywhere(
        [&] {
          const RankAnalysis made = Analyze(trace);
          EXPECT_EQ(made.window, expected.window);
          EXPECT_EQ(made.findings.size(), expected.findings.size());
        },
        50, static_cast<int64_t>(AllRules().size()) + 4);
  }
}

// The accounts of a model are those that a timeline would make.
TEST(Job, AModelHasTheAccounts) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    const Trace trace = BuildTrace(DrawTrace(seed));
    const RankModel made(trace);
    const std::vector<DeviceAccount> expected = AccountDevices(trace, made.device_steps);
    ASSERT_EQ(made.accounts.size(), expected.size());
    for (const DeviceAccount& account : expected) {
      const auto same =
          std::find_if(made.accounts.begin(), made.accounts.end(),
                       [&](const DeviceAccount& a) { return a.device == account.device; });
      ASSERT_NE(same, made.accounts.end());
      EXPECT_EQ(same->total, account.total);
      EXPECT_EQ(same->idle.size(), account.idle.size());
    }
  }
}

// In the second rank of three: its reading does not end, the third's does not begin.
TEST(Job, CancelledWhileARankIsReadSaysSo) {
  const ScratchFolder folder;
  for (const char* rank : {"rank-00000", "rank-00001", "rank-00002"}) WriteLongRank(folder / rank);
  std::atomic<bool> cancel = false;
  std::string last;
  LoadOptions options;
  options.cancel = &cancel;
  options.progress = [&](const LoadStatus& status) {
    EXPECT_FALSE(cancel) << status.text;
    last = status.text;
    cancel = status.share > 0.5;
  };
  const Result<JobAnalysis> job = AnalyzePath(folder.path(), options);
  ASSERT_FALSE(job.ok());
  EXPECT_EQ(job.error(), folder.path().string() + ": cancelled");
  EXPECT_NE(last.find("reading rank 2 of 3: "), std::string::npos) << last;
}

TEST(Job, CancelledWhileAFileIsReadIsNotAnUnreadableFile) {
  const ScratchFolder folder;
  const Trace trace = BuildTrace(DrawTrace(3));
  ASSERT_TRUE(ExportTrace(trace, (folder / "rank0.json").string()).ok());
  ASSERT_TRUE(ExportTrace(trace, (folder / "rank1.json").string()).ok());
  std::atomic<bool> cancel = false;
  size_t loaded = 0;
  LoadOptions options;
  options.cancel = &cancel;
  options.progress = [&](const LoadStatus& status) {
    EXPECT_NE(status.text.find("rank0.json (1 of 2)"), std::string::npos) << status.text;
    EXPECT_FALSE(cancel) << "it was told already";
    cancel = true;
  };
  const Result<std::vector<std::string>> visited = VisitTraces(folder.path(), options, [&](Trace) {
    ++loaded;
    return Result<void>();
  });
  ASSERT_FALSE(visited.ok());
  EXPECT_EQ(visited.error(), folder.path().string() + ": cancelled");
  EXPECT_EQ(loaded, 0u);
}

void Write(const std::filesystem::path& file, std::string_view text) {
  testing::WriteBytes(file, {text.begin(), text.end()});
}

// `trainprof report TRACES --format json -o TRACES/report.json`, twice.
TEST(Job, OurOwnReportBesideTheTracesIsNoneOfThem) {
  const ScratchFolder folder;
  ASSERT_TRUE(ExportTrace(BuildTrace(DrawTrace(3)), (folder / "rank0.json").string()).ok());
  Write(folder / "report.json",
        "{\n  \"schema_version\": \"1.8\",\n  \"input\": {\"kind\": \"folder\"}}");
  Write(folder / "baseline.json", "{\"trainprof_baseline\": 1, \"runs\": []}");
  size_t loaded = 0;
  const auto visit = [&](Trace) {
    ++loaded;
    return Result<void>();
  };
  const Result<std::vector<std::string>> unreadable = VisitTraces(folder.path(), {}, visit);
  ASSERT_TRUE(unreadable.ok()) << unreadable.error();
  EXPECT_EQ(unreadable.value(), std::vector<std::string>());
  EXPECT_EQ(loaded, 1u);
  // What only looks so is a trace that cannot be read.
  Write(folder / "rank1.json", "{\"schema_version\": 1, \"events\": []}");
  const Result<std::vector<std::string>> other = VisitTraces(folder.path(), {}, visit);
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(other.value().size(), 1u);
}

TEST(Job, AFolderWithARecordingAmongOthersSaysWhichToGive) {
  const ScratchFolder folder;
  ASSERT_TRUE(recording::CreateRun(folder / "run", {}).ok());
  Write(folder / "report.json", "{\"schema_version\": \"1.8\", \"input\": {}}");
  const Result<JobSource> source = OpenJob(folder.path());
  ASSERT_FALSE(source.ok());
  EXPECT_TRUE(source.error().ends_with(". It holds a recording: give " + (folder / "run").string()))
      << source.error();
}

}  // namespace
}  // namespace trainprof
