// What a verdict does not cover: the reasons why it is inconclusive, and what no rule looks at.
#include "analysis/job/coverage.h"

#include <gtest/gtest.h>

#include <fstream>

#include "analysis/rule.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/segment_writer.h"
#include "tests/support/trace_script.h"

namespace trainprof {
namespace {

using testing::ScratchFolder;
using testing::SegmentWriter;

// A rank that was judged and is well.
RankAnalysis Healthy(int64_t number = 0) {
  RankAnalysis rank;
  rank.rank = number;
  rank.window = Milliseconds(4);
  rank.steps.steps.resize(4);
  rank.device_steps = rank.steps;
  rank.device_window = rank.window;
  rank.kernels = 1000;
  rank.passed = {"input-bound"};
  return rank;
}

JobAnalysis JobOf(std::vector<RankAnalysis> ranks) {
  JobAnalysis job;
  job.ranks = std::move(ranks);
  return job;
}

// "data_loss; missing_rank"
std::string Ids(const JobAnalysis& job) {
  std::string ids;
  for (const Doubt& doubt : DoubtsOf(job)) {
    ids += (ids.empty() ? "" : "; ") + std::string(doubt.id);
  }
  return ids;
}

std::string IdsOf(RankAnalysis rank) { return Ids(JobOf({std::move(rank)})); }

TEST(Doubts, AHealthyRankHasNone) {
  EXPECT_EQ(IdsOf(Healthy()), "");
  EXPECT_EQ(ConclusionOf(JobOf({Healthy()})), Conclusion::kPassed);
}

// The kinds are open: whoever adds one says by its severity alone that evidence is missing.
TEST(Doubts, AnUnheardOfKindOfDataLossIsOne) {
  RankAnalysis rank = Healthy(3);
  rank.quality.push_back({"never_heard_of_before", QualitySeverity::kDataLoss, 2, "it says why"});
  const JobAnalysis job = JobOf({Healthy(0), rank});
  const std::vector<Doubt> doubts = DoubtsOf(job);
  ASSERT_EQ(doubts.size(), 1u);
  EXPECT_EQ(doubts[0].id, "data_loss");
  EXPECT_EQ(doubts[0].text, "records are lost or damaged: 2 x never_heard_of_before");
  EXPECT_EQ(doubts[0].ranks, std::vector<int64_t>{3});
  EXPECT_EQ(doubts[0].quality, rank.quality);
  EXPECT_EQ(ConclusionOf(job), Conclusion::kInconclusive);
}

TEST(Doubts, WhatIsHarmlessOrRepairedIsNone) {
  RankAnalysis rank = Healthy();
  rank.quality.push_back({"kernel_without_launch", QualitySeverity::kInfo, 1000, ""});
  rank.quality.push_back({"invalid_utf8", QualitySeverity::kWarning, 1000, ""});
  EXPECT_EQ(IdsOf(rank), "");
}

TEST(Doubts, AFewEventsWithoutATimeAreNoiseManyAreNot) {
  RankAnalysis rank = Healthy();
  rank.quality.push_back({"missing_time", QualitySeverity::kWarning, 10, ""});
  EXPECT_EQ(IdsOf(rank), "");
  rank.quality.push_back({"zero_time", QualitySeverity::kWarning, 10, ""});
  EXPECT_EQ(IdsOf(rank), "times_in_doubt");
}

TEST(Doubts, LossOutsideTheRanksCounts) {
  JobAnalysis job = JobOf({Healthy()});
  job.elsewhere.push_back({"unreadable_segment", QualitySeverity::kDataLoss, 1, "rank-1: cut"});
  EXPECT_EQ(Ids(job), "unreadable");
}

TEST(Doubts, ThereMustBeSomethingToJudge) {
  RankAnalysis nothing = Healthy();
  nothing.passed.clear();
  EXPECT_EQ(IdsOf(nothing), "no_rule_checked");
  nothing.kernels = 0;
  EXPECT_EQ(IdsOf(nothing), "no_rule_checked");
  nothing.steps.steps.clear();
  EXPECT_EQ(IdsOf(nothing), "nothing_to_judge");
  nothing.kernels = 1;  // figures are over the whole trace then
  nothing.passed = {"pageable-copy"};
  EXPECT_EQ(IdsOf(nothing), "");
}

TEST(Doubts, AWindowThatNeverOpenedIsNamed) {
  RankAnalysis rank = Healthy();
  rank.environment.emplace_back("recording options", "steps=100:110");
  EXPECT_EQ(IdsOf(rank), "");
  rank.steps.steps.clear();
  rank.kernels = 0;
  EXPECT_EQ(IdsOf(rank), "window_never_opened");
  EXPECT_NE(DoubtsOf(JobOf({rank}))[0].text.find("steps=100:110"), std::string::npos);
}

TEST(Doubts, AProgramThatDiedMustHaveMadeAStep) {
  JobAnalysis job = JobOf({Healthy()});
  job.run = {.known = true,
             .ended = true,
             .exit_code = 137,
             .signal = 9,
             .missing_files = {},
             .damaged_files = {},
             .no_manifest = {}};
  EXPECT_EQ(Ids(job), "");
  job.ranks[0].steps.steps.clear();
  EXPECT_EQ(Ids(job), "died_before_a_step");
  job.run = {.known = true,
             .ended = true,
             .exit_code = 0,
             .signal = {},
             .missing_files = {},
             .damaged_files = {},
             .no_manifest = {}};
  EXPECT_EQ(Ids(job), "");
}

TEST(Doubts, GpuWorkThatWasNotRecordedCountsUnlessTheUserWantedItSo) {
  const auto with_state = [](const char* state) {
    RankAnalysis rank = Healthy();
    rank.environment.emplace_back("cupti.state", state);
    return IdsOf(rank);
  };
  EXPECT_EQ(with_state("cuptiSubscribe gives CUPTI_ERROR_UNKNOWN"), "gpu_not_recorded");
  EXPECT_EQ(with_state("recording"), "");
  EXPECT_EQ(with_state("off: --no-gpu"), "");
  EXPECT_EQ(with_state("pid 7 forked after CUDA init: GPU recording is off in the child."), "");
}

// A finding does not make up for the rules that missing rows kept from being checked.
TEST(Doubts, MissingDeviceRowsCountBesideAFinding) {
  RankAnalysis rank = Healthy(2);
  rank.device_doubt = "launches without a row of what the device did leave 20 % of the time open";
  rank.passed.clear();
  rank.findings.emplace_back().severity = Severity::kWarning;
  ASSERT_EQ(IdsOf(rank), "device_rows_missing");
  EXPECT_EQ(DoubtsOf(JobOf({rank}))[0].ranks, std::vector<int64_t>{2});
  EXPECT_EQ(ConclusionOf(JobOf({rank})), Conclusion::kInconclusive);
  rank.findings[0].severity = Severity::kError;
  EXPECT_EQ(ConclusionOf(JobOf({rank})), Conclusion::kFailed);
}

TEST(Doubts, MissingLaunchesCountBesideAFinding) {
  RankAnalysis rank = Healthy(2);
  rank.launch_doubt = "the launches of 30 % of the operations are missing";
  EXPECT_EQ(IdsOf(rank), "launches_missing");
  EXPECT_EQ(ConclusionOf(JobOf({rank})), Conclusion::kInconclusive);
}

// A job's ranks with these numbers, from a folder.
JobAnalysis Ranks(std::vector<int64_t> numbers, int64_t world_size, SourceKind source) {
  JobAnalysis job;
  for (const int64_t number : numbers) {
    RankAnalysis& rank = job.ranks.emplace_back(Healthy(number));
    rank.rank_known = true;
    rank.world_size = world_size;
    rank.source = source;
  }
  job.whole = true;
  return job;
}

TEST(Doubts, ARankThatIsGoneIsNamed) {
  EXPECT_EQ(Ids(Ranks({0, 1, 2}, 3, SourceKind::kKineto)), "");
  JobAnalysis job = Ranks({1, 2, 5}, 8, SourceKind::kKineto);
  ASSERT_EQ(Ids(job), "missing_rank");
  EXPECT_EQ(DoubtsOf(job)[0].text,
            "of 8 ranks these were not judged, for lack of a trace with steps or device work: 0, 3 "
            "to 4, 6 to 7");
  job.whole = false;  // the user named one file
  EXPECT_EQ(Ids(job), "");
  // As many as a hostile trace likes.
  EXPECT_EQ(Ids(Ranks({0, INT64_MAX}, INT64_MAX, SourceKind::kKineto)), "missing_rank");
}

// The recording of the second of two machines begins at rank 4, and nothing is wrong with it.
TEST(Doubts, ARecordingOfOneMachineMayBeginAtAnyRank) {
  EXPECT_EQ(Ids(Ranks({4, 5, 6}, 7, SourceKind::kRecording)), "");
  EXPECT_EQ(Ids(Ranks({4, 6}, 7, SourceKind::kRecording)), "missing_rank");
  JobAnalysis silent = Ranks({4, 5}, 7, SourceKind::kRecording);
  silent.silent_ranks = {6};
  EXPECT_EQ(Ids(silent), "missing_rank");
}

// What else was lost cannot undo what is there.
TEST(Conclusion, AnErrorComesBeforeEveryDoubt) {
  RankAnalysis rank = Healthy();
  rank.quality.push_back({"corrupt_chunk", QualitySeverity::kDataLoss, 1, ""});
  Finding& finding = rank.findings.emplace_back();
  finding.severity = Severity::kWarning;
  EXPECT_EQ(ConclusionOf(JobOf({rank})), Conclusion::kInconclusive);
  rank.findings[0].severity = Severity::kError;
  EXPECT_EQ(ConclusionOf(JobOf({rank})), Conclusion::kFailed);
}

// A host that waits says nothing where the device may have worked meanwhile.
TEST(Conclusion, AnErrorFallsWhereTheDevicesSideIsAbsentOrTimesAreWrong) {
  RankAnalysis rank = Healthy(1);
  rank.kernels = 0;
  rank.findings.emplace_back().severity = Severity::kError;
  EXPECT_EQ(ConclusionOf(JobOf({rank})), Conclusion::kFailed);
  rank.environment.emplace_back("cupti.state", "CUPTI needs admin here");
  EXPECT_EQ(ConclusionOf(JobOf({rank})), Conclusion::kInconclusive);
  RankAnalysis other = Healthy(0);
  other.findings.emplace_back().severity = Severity::kError;  // another rank's stands
  EXPECT_EQ(ConclusionOf(JobOf({other, rank})), Conclusion::kFailed);
  other.quality.push_back({"missing_time", QualitySeverity::kWarning, 900, ""});
  EXPECT_EQ(ConclusionOf(JobOf({other, rank})), Conclusion::kInconclusive);
}

TEST(NotChecked, WhatIsSkippedForOneReasonInTheSameRanksIsSaidOnce) {
  RankAnalysis first = Healthy(0);
  first.skipped = {{"a", "no device work"}, {"b", "no device work"}, {"c", "no steps"}};
  RankAnalysis second = Healthy(1);
  second.skipped = {{"a", "no device work"}, {"b", "no device work"}};
  const std::vector<NotChecked> groups = RulesNotChecked(JobOf({first, second}));
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].rules, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(groups[0].ranks, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(groups[1].rules, std::vector<std::string>{"c"});
  EXPECT_EQ(groups[1].ranks, std::vector<int64_t>{0});
}

RankAnalysis WithAccount(std::vector<AccountLine> account) {
  RankAnalysis rank = Healthy();
  rank.devices.push_back(
      {.id = 0, .name = "A100", .busy = {}, .busy_high = {}, .account = std::move(account)});
  return rank;
}

std::string Uncovered(const RankAnalysis& rank) {
  std::string text;
  for (const UncoveredClass& uncovered : UncoveredClasses(rank)) {
    text += text.empty() ? "" : ", ";
    text += std::string(uncovered.name) + (uncovered.in_part.empty() ? "" : "*");
  }
  return text;
}

AccountLine Line(DeviceClass c, int64_t percent) {
  return {Name(c), Title(c), Microseconds(40 * percent)};
}

TEST(Uncovered, VisibleLossesThatNoRuleExplainsLargestFirst) {
  RankAnalysis rank = WithAccount({Line(DeviceClass::kCompute, 40),
                                   Line(DeviceClass::kExposedCommunication, 12),
                                   Line(DeviceClass::kIdleInputWait, 20),
                                   Line(DeviceClass::kIdleLaunchBound, 28),
                                   {"idle_python", "Python", Microseconds(39)}});
  EXPECT_EQ(Uncovered(rank), "idle_launch_bound, exposed_communication");
  EXPECT_NEAR(TotalShare(UncoveredClasses(rank)), 0.40, 1e-9);
  rank.passed.clear();  // who was skipped explains nothing
  EXPECT_EQ(Uncovered(rank), "idle_launch_bound, idle_input_wait, exposed_communication");
}

TEST(Uncovered, ARuleThatLooksForSomeCausesCoversInPart) {
  RankAnalysis rank = WithAccount({Line(DeviceClass::kIdleSyncDrain, 30)});
  EXPECT_EQ(Uncovered(rank), "idle_sync_drain");
  rank.passed.emplace_back("host-sync");
  EXPECT_EQ(Uncovered(rank), "idle_sync_drain*");
}

TEST(Uncovered, WithoutADeviceTheThreadsTimeCounts) {
  RankAnalysis rank = Healthy();
  rank.has_host_phases = true;
  rank.host_account = {{"input_wait", "waiting for input", Milliseconds(1)},
                       {"forward", "forward", Milliseconds(1)},
                       {"other", "other", Milliseconds(2)}};
  EXPECT_EQ(Uncovered(rank), "other");
}

// The data of a rule and the words of reports must not drift apart.
TEST(Uncovered, ClassesThatRulesExplainAreClassesOfAnAccount) {
  size_t explained = 0;
  for (const RegisteredRule& entry : AllRules()) explained += entry.rule->explains.size();
  EXPECT_GE(explained, 4u);
  const RankAnalysis rank = Analyze(TraceFromScript(R"(
    thread 1
    repeat 5 every 1000
      step 0 1000 ProfilerStep#1
      call 10 20 cudaLaunchKernel | corr=1
      call 300 310 cudaLaunchKernel | corr=2
    end
    stream 0 7
    repeat 5 every 1000
      kernel 25 100 gemm | corr=1
      kernel 315 1000 gemm | corr=2
    end)"));
  EXPECT_EQ(Uncovered(rank), "");
}

// A rank of a recording: ten steps with a tenth of each, or half of it, spent waiting for data.
std::filesystem::path WriteRank(const std::filesystem::path& folder, bool waits = false,
                                bool killed = false) {
  SegmentWriter writer(folder);
  writer.header().clean_exit.store(killed ? 0 : 1);
  writer.header().closed = SegmentWriter::Sample(400'000'000);
  writer.BeginWriter(0, 100);
  for (uint64_t step = 1; step <= 40; ++step) {
    const uint64_t begin = 9'000'000 * step;
    if (step % 10 == 0) writer.NewChunk();
    writer.Push("step", begin);
    writer.Push("data", begin);
    writer.Pop(begin + (waits ? 4'500'000 : 300'000));
    writer.Pop(begin + 9'000'000);
  }
  writer.Finish();
  return writer.path();
}

// Of a run that ended well.
void WriteManifest(const std::filesystem::path& run_dir) {
  std::ofstream(run_dir / "manifest.json")
      << R"({"format": "trainprof recording", "end_unix_ns": 5, "exit_code": 0, "signal": null})";
}

JobAnalysis Load(const std::filesystem::path& path) {
  Result<JobAnalysis> job = AnalyzePath(path, {});
  EXPECT_TRUE(job.ok());
  return job.ok() ? std::move(job).value() : JobOf({Healthy()});
}

TEST(DoubtsOfRecordings, AFailingRankFailsAHealthyOnePasses) {
  const ScratchFolder folder;
  WriteManifest(folder.path());
  WriteRank(folder / "rank-00000");
  EXPECT_EQ(ConclusionOf(Load(folder.path())), Conclusion::kPassed);
  WriteRank(folder / "rank-00001", true);
  EXPECT_EQ(ConclusionOf(Load(folder.path())), Conclusion::kFailed);
}

TEST(DoubtsOfRecordings, ARankWhoseFileIsCutOrRubbishIsNotPassed) {
  for (const size_t bytes : {0, 100, 16384}) {
    const ScratchFolder folder;
    WriteRank(folder / "rank-00000");
    std::filesystem::resize_file(WriteRank(folder / "rank-00001", true), bytes);
    const JobAnalysis job = Load(folder.path());
    EXPECT_EQ(ConclusionOf(job), Conclusion::kInconclusive) << bytes;
  }
  const ScratchFolder folder;
  WriteManifest(folder.path());
  WriteRank(folder / "rank-00000");
  std::ofstream(WriteRank(folder / "rank-00001", true)) << std::string(5000, 'x');
  EXPECT_EQ(Ids(Load(folder.path())), "unreadable; missing_rank");
}

TEST(DoubtsOfRecordings, ARankThatTheManifestNamesMustBeThere) {
  const ScratchFolder folder;
  WriteRank(folder / "rank-00000");
  const std::filesystem::path gone = WriteRank(folder / "rank-00001", true);
  std::ofstream(folder / "manifest.json")
      << R"({"format": "trainprof recording", "end_unix_ns": 5, "exit_code": 0, "signal": null, )"
      << R"("processes": [{"file": "rank-00000/)" << gone.filename().string()
      << R"("}, {"file": "rank-00001/)" << gone.filename().string()
      << R"("}, {"file": "../../etc/passwd"}, {"file": 7}, 7]})";
  EXPECT_EQ(ConclusionOf(Load(folder.path())), Conclusion::kFailed);
  std::filesystem::remove_all(folder / "rank-00001");
  EXPECT_EQ(Ids(Load(folder.path())), "missing_file");
  EXPECT_EQ(Ids(Load(folder / "rank-00000")), "");  // the user named one rank
}

TEST(DoubtsOfRecordings, SamplesThatTheManifestNamesMustBeThere) {
  const ScratchFolder folder;
  WriteRank(folder / "rank-00000");
  std::ofstream(folder / "manifest.json")
      << R"({"format": "trainprof recording", "end_unix_ns": 5, "exit_code": 0, "signal": null, )"
      << R"("samples": ["host-1-2.tph", "../host-1-2.tph", "a/host-1-2.tph", 7]})";
  EXPECT_EQ(Ids(Load(folder.path())), "missing_file");
  std::ofstream(folder / "host-1-2.tphz") << "sealed since, and damaged";
  EXPECT_EQ(Ids(Load(folder.path())), "data_loss");
}

TEST(DoubtsOfRecordings, FilesOfTheRunThatAreNoneOfOursAreSaid) {
  for (const char* name : {"run.ctl", "clock.tpc"}) {
    const ScratchFolder folder;
    WriteManifest(folder.path());
    WriteRank(folder / "rank-00000");
    for (const size_t bytes : {0, 10, 10'000}) {
      std::ofstream(folder / name) << std::string(bytes, 'x');
      EXPECT_EQ(Ids(Load(folder.path())), "unreadable") << name << bytes;
    }
  }
}

// Nothing else says which files there were.
TEST(DoubtsOfRecordings, WithoutAManifestNobodyKnowsWhatIsMissing) {
  const ScratchFolder folder;
  WriteRank(folder / "rank-00000");
  EXPECT_EQ(Ids(Load(folder.path())), "no_manifest");
  EXPECT_EQ(Ids(Load(folder / "rank-00000")), "");  // the user named one rank
  for (const char* text : {"", "{", "[]", "{\"format\": \"another\"}", "\xff\xff"}) {
    std::ofstream(folder / "manifest.json") << text;
    const JobAnalysis job = Load(folder.path());
    EXPECT_EQ(Ids(job), "no_manifest") << text;
    EXPECT_EQ(ConclusionOf(job), Conclusion::kInconclusive) << text;
  }
  WriteManifest(folder.path());
  EXPECT_EQ(Ids(Load(folder.path())), "");
}

// Each segment's chunks stand one behind the other: a file that was cut between two is short.
TEST(DoubtsOfRecordings, AChunkThatWasCutOffOrWipedIsLost) {
  const ScratchFolder folder;
  WriteManifest(folder.path());
  const std::filesystem::path path = WriteRank(folder / "pid-1");
  const auto size = std::filesystem::file_size(path);
  EXPECT_EQ(Ids(Load(folder.path())), "");
  constexpr size_t kLast = recording::kChunkAlignment;  // the last chunk
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(size - kLast));
    file << std::string(kLast, '\0');
  }
  EXPECT_EQ(Ids(Load(folder.path())), "data_loss");
  std::filesystem::resize_file(path, size - kLast);
  EXPECT_EQ(Ids(Load(folder.path())), "data_loss");
}

// Of a process that was killed a chunk may be claimed and empty; a file that ends within one is
// cut.
TEST(DoubtsOfRecordings, AFileThatEndsWithinAChunkWasCutAlsoAfterAKill) {
  const ScratchFolder folder;
  const std::filesystem::path path = WriteRank(folder / "pid-1", false, true);
  const auto size = std::filesystem::file_size(path);
  const auto has_loss = [&] {
    return Ids(Load(folder.path())).find("data_loss") != std::string::npos;
  };
  EXPECT_FALSE(has_loss());
  std::filesystem::resize_file(path, size - 1);
  EXPECT_TRUE(has_loss());
  std::filesystem::resize_file(path, size - recording::kChunkAlignment + 8);
  EXPECT_TRUE(has_loss());
}

}  // namespace
}  // namespace trainprof
