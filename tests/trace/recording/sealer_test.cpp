#include "trace/recording/seal/sealer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/scratch_folder.h"
#include "tests/support/segment_writer.h"
#include "trace/recording/files/clock_log.h"
#include "trace/recording/read/reader.h"

namespace trainprof::testing {
namespace {

namespace fs = std::filesystem;

void WriteLongSegment(const fs::path& folder, int pid = SegmentWriter::kDeadPid) {
  SegmentWriter writer(folder, pid);
  writer.header().dropped_detail.store(1);
  writer.BeginWriter(0, 100, "main");
  writer.chunk().dropped_detail.store(2);
  for (uint64_t i = 0; i < 20'000; ++i) {
    writer.Push("step", 1000 + 100 * i);
    writer.ShortPush("data", 1010 + 100 * i);
    writer.ShortPop(1050 + 100 * i);
    writer.Pop(1090 + 100 * i);
  }
  writer.BeginWriter(1, 101, "loader");
  writer.Mark("batch", 2000);
  writer.Push("open", 3000);
  writer.Finish();
}

Trace ReadOne(const fs::path& path) {
  auto ranks = recording::ReadRecording(path);
  EXPECT_TRUE(ranks.ok()) << (ranks.ok() ? "" : ranks.error());
  return ranks.ok() ? std::move(ranks.value().at(0).trace) : Trace{};
}

nlohmann::json Manifest(const fs::path& run) {
  std::ifstream file(run / recording::kManifestFile);
  return nlohmann::json::parse(file);
}

TEST(CreateRun, MakesAControlBlockAndAThinManifest) {
  const ScratchFolder scratch;
  recording::RunDescription run;
  run.command = {"python", "train.py", "\xFF"};  // arguments need not be UTF-8
  ASSERT_TRUE(recording::CreateRun(scratch / "run", run).ok());
  EXPECT_TRUE(recording::LooksLikeRecording(scratch / "run"));
  const nlohmann::json manifest = Manifest(scratch / "run");
  EXPECT_EQ(manifest["format_version"], recording::kFormatVersion);
  EXPECT_EQ(manifest["command"][1], "train.py");
  EXPECT_TRUE(manifest["exit_code"].is_null());
  EXPECT_FALSE(manifest.contains("processes"));
}

TEST(CreateRun, NeverOverwrites) {
  const ScratchFolder scratch;
  ASSERT_TRUE(recording::CreateRun(scratch / "run", {}).ok());
  const auto again = recording::CreateRun(scratch / "run", {});
  ASSERT_FALSE(again.ok());
  EXPECT_NE(again.error().find("exists"), std::string::npos) << again.error();
  EXPECT_FALSE(recording::CreateRun(scratch / "absent/run", {}).ok());
}

TEST(SealRecording, ReadsTheSameInLessSpace) {
  const ScratchFolder scratch;
  const fs::path run = scratch / "run";
  ASSERT_TRUE(recording::CreateRun(run, {}).ok());
  WriteLongSegment(run / "rank-00002");
  const Trace raw = ReadOne(run);
  const auto before = recording::SummarizeRecording(run);
  ASSERT_TRUE(before.ok());
  const auto after = recording::SealRecording(run, {}, InAnHour());
  ASSERT_TRUE(after.ok()) << after.error();
  const Trace sealed = ReadOne(run);
  EXPECT_EQ(sealed.ranges, raw.ranges);
  EXPECT_EQ(sealed.instants, raw.instants);
  EXPECT_EQ(sealed.tracks, raw.tracks);
  EXPECT_EQ(sealed.quality, raw.quality);
  EXPECT_EQ(sealed.quality.CountOf("thinned_events"), 3);
  EXPECT_LT(after.value().total_bytes, before.value().total_bytes / 3);
  ASSERT_EQ(after.value().processes.size(), 1u);
  const recording::ProcessSummary& process = after.value().processes[0];
  EXPECT_EQ(process.events, 40'002u);
  EXPECT_EQ(before.value().processes.at(0).events, 40'002u);
  EXPECT_EQ(process.dropped_detail, 3u);
  EXPECT_EQ(process.folder, "rank-00002");
  ASSERT_EQ(process.threads.size(), 2u);
  EXPECT_EQ(process.threads[1].name, "loader");
  EXPECT_EQ(after.value().left_raw, 0u);
}

TEST(SealRecording, WritesWhatHappenedIntoTheManifest) {
  const ScratchFolder scratch;
  const fs::path run = scratch / "run";
  ASSERT_TRUE(recording::CreateRun(run, {}).ok());
  WriteLongSegment(run / "rank-00002");
  recording::RunDescription description;
  description.exit_code = 137;
  description.signal = 9;
  description.warnings = {"no GPU"};
  ASSERT_TRUE(recording::SealRecording(run, description, InAnHour()).ok());
  const nlohmann::json manifest = Manifest(run);
  EXPECT_EQ(manifest["exit_code"], 137);
  EXPECT_EQ(manifest["signal"], 9);
  EXPECT_EQ(manifest["warnings"][0], "no GPU");
  ASSERT_EQ(manifest["processes"].size(), 1u);
  EXPECT_EQ(manifest["processes"][0]["events"], 40'002);
  EXPECT_EQ(manifest["processes"][0]["threads"][0]["name"], "main");
  EXPECT_EQ(manifest["processes"][0]["sealed"], true);
}

TEST(SealRecording, PastTheDeadlineLeavesTheRestRaw) {
  const ScratchFolder scratch;
  const fs::path run = scratch / "run";
  ASSERT_TRUE(recording::CreateRun(run, {}).ok());
  WriteLongSegment(run / "rank-00000");
  const auto summary =
      recording::SealRecording(run, {}, std::chrono::steady_clock::now() - std::chrono::seconds(1));
  ASSERT_TRUE(summary.ok());
  EXPECT_EQ(summary.value().left_raw, 1u);
  EXPECT_EQ(ReadOne(run).ranges.size(), 40'001u);
  const auto again = recording::SealRecording(run, {}, InAnHour());
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again.value().left_raw, 0u);
}

TEST(SealRecording, LeavesDamagedSegmentsAsTheyAre) {
  const ScratchFolder scratch;
  const fs::path run = scratch / "run";
  ASSERT_TRUE(recording::CreateRun(run, {}).ok());
  WriteLongSegment(run / "rank-00000");
  const fs::path segment = fs::directory_iterator(run / "rank-00000")->path();
  std::vector<char> bytes = ReadBytes(segment);
  bytes[recording::kChunkAlignment + 20] ^= 1;  // in the first chunk's header
  WriteBytes(segment, bytes);
  const auto summary = recording::SealRecording(run, {}, InAnHour());
  ASSERT_TRUE(summary.ok());
  EXPECT_EQ(summary.value().left_raw, 1u);
  EXPECT_EQ(ReadBytes(segment), bytes);
}

TEST(SealRecording, ASealedFileStandsForARawOneBesideIt) {
  const ScratchFolder scratch;
  const fs::path run = scratch / "run";
  ASSERT_TRUE(recording::CreateRun(run, {}).ok());
  WriteLongSegment(run / "rank-00000");
  const fs::path raw = fs::directory_iterator(run / "rank-00000")->path();
  const std::vector<char> bytes = ReadBytes(raw);
  ASSERT_TRUE(recording::SealRecording(run, {}, InAnHour()).ok());
  WriteBytes(raw, bytes);  // stopped just before the raw one was removed
  EXPECT_EQ(ReadOne(run).ranges.size(), 40'001u) << "not twice";
  ASSERT_TRUE(recording::SealRecording(run, {}, InAnHour()).ok());
  EXPECT_FALSE(fs::exists(raw));
}

TEST(Roles, AProcessBesideItsParentIsAWorker) {
  const ScratchFolder scratch;
  const fs::path run = scratch / "run";
  ASSERT_TRUE(recording::CreateRun(run, {}).ok());
  for (const auto& [pid, parent] : {std::pair(0x3FFFFFF0, 1), std::pair(0x3FFFFFF1, 0x3FFFFFF0)}) {
    SegmentWriter writer(run / "rank-00000", pid);
    writer.header().parent_pid = parent;
    writer.header().rank = 0;
    writer.Finish();
  }
  const auto summary = recording::SummarizeRecording(run);
  ASSERT_TRUE(summary.ok());
  EXPECT_EQ(summary.value().processes.at(0).role, "rank");
  EXPECT_EQ(summary.value().processes.at(1).role, "worker");
}

TEST(Roles, TheProgramWhoseChildrenAreRanksIsTheLauncher) {
  const ScratchFolder scratch;
  const fs::path run = scratch / "run";
  ASSERT_TRUE(recording::CreateRun(run, {}).ok());
  SegmentWriter rank(run / "rank-00000", 0x3FFFFFF1);
  rank.header().rank = 0;
  rank.Finish();
  SegmentWriter(run / "pid-7", 0x3FFFFFF0).Finish();
  recording::RunDescription description;
  description.program_pid = 0x3FFFFFF0;
  const auto summary = recording::SealRecording(run, description, InAnHour());
  ASSERT_TRUE(summary.ok());
  EXPECT_EQ(summary.value().processes.at(0).role, "rank");
  EXPECT_EQ(summary.value().processes.at(1).role, "launcher");
}

TEST(SummarizeRecording, OfSomethingElseFails) {
  const ScratchFolder scratch;
  EXPECT_FALSE(recording::SummarizeRecording(scratch.path()).ok());
}

TEST(ClockLog, KeepsWhatWasAppendedAndIgnoresATornTail) {
  const ScratchFolder scratch;
  {
    auto log = recording::ClockLog::Open(scratch.path());
    ASSERT_TRUE(log.ok()) << log.error();
    recording::ClockLog moved = std::move(log).value();
    EXPECT_TRUE(moved.Append());
  }
  {
    std::ofstream file(scratch / recording::kClockFile, std::ios::binary | std::ios::app);
    file << "torn";
  }
  const auto contents = recording::ReadClockLog(scratch.path());
  ASSERT_EQ(contents.clocks.size(), 2u);
  EXPECT_GT(contents.clocks[1].monotonic_ns, contents.clocks[0].monotonic_ns);
  EXPECT_GT(contents.clocks[1].ticks, contents.clocks[0].ticks);
  EXPECT_TRUE(recording::ReadClockLog(scratch / "absent").clocks.empty());
  EXPECT_FALSE(recording::ClockLog::Open(scratch / "absent").ok());
}

}  // namespace
}  // namespace trainprof::testing
