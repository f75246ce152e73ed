#include "viewer/document/document.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

#include "analysis/job/job.h"
#include "tests/support/killed_run.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/segment_writer.h"
#include "tests/support/trace_script.h"
#include "trace/formats/exporter.h"
#include "viewer/state/actions.h"

namespace trainprof {
namespace {

namespace fs = std::filesystem;
using std::chrono::steady_clock;
using testing::ScratchFolder;

// Steps of `step_us`, half of it a kernel; a thread more the higher the rank.
Trace RankTrace(int64_t rank, int64_t step_us, bool with_steps = true) {
  std::string script = "recording\nthread 1\nrepeat 8 every " + std::to_string(step_us) + "\n";
  if (with_steps) script += fmt::format("step 0 {} ProfilerStep#1\n", step_us);
  script += fmt::format("call 10 20 cudaLaunchKernel | corr=100\nend\n");
  for (int64_t thread = 0; thread < rank; ++thread) {
    script += fmt::format("thread {}\nop 0 5 aten::mm\n", 2 + thread);
  }
  script += fmt::format("stream 0 7\nrepeat 8 every {}\nkernel 20 {} gemm | corr=100\nend\n",
                        step_us, 20 + step_us / 2);
  Trace trace = TraceFromScript(script);
  trace.rank = rank;
  trace.rank_known = true;
  return trace;
}

// Ranks 0, 1, ...; number 2 of 4 has the longest steps.
void WriteRanks(const fs::path& folder, int64_t ranks) {
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const Trace trace = RankTrace(rank, 1000 + 100 * (rank == ranks / 2 ? ranks : rank));
    const Result<void> written =
        ExportTrace(trace, (folder / fmt::format("rank{}.json", rank)).string());
    ASSERT_TRUE(written.ok()) << written.error();
  }
}

// Until nothing more comes. Calls back after each Update that brought something.
void LoadAll(
    Document& document, const std::function<void()>& on_update = [] {}) {
  const auto deadline = steady_clock::now() + std::chrono::minutes(2);
  for (bool done = false; !done;) {
    done = document.progress().done;
    if (document.Update()) on_update();
    ASSERT_LT(steady_clock::now(), deadline) << document.progress().text;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

std::vector<std::string> NamesOf(const Document& document) {
  std::vector<std::string> names;
  if (document.lines() == nullptr) return names;
  for (uint32_t line = 0; line < document.lines()->lines().size(); ++line) {
    const Line& l = document.lines()->lines()[line];
    names.push_back(fmt::format("{} {} {}", l.rank, document.lines()->NameOf(line), l.lanes));
  }
  return names;
}

// What a report says of the path, rank by rank.
void ExpectTheReportsResults(const Document& document, const fs::path& path) {
  const Result<JobAnalysis> job = AnalyzePath(path, {});
  ASSERT_TRUE(job.ok()) << job.error();
  EXPECT_EQ(document.kind(), job.value().kind);
  EXPECT_EQ(document.job()->other_processes, job.value().other_processes);
  ASSERT_EQ(document.ranks(), job.value().ranks.size());
  for (uint32_t rank = 0; rank < document.ranks(); ++rank) {
    const RankAnalysis& expected = job.value().ranks[rank];
    ASSERT_NE(document.Analysis(rank), nullptr);
    const RankAnalysis& analysis = *document.Analysis(rank);
    EXPECT_EQ(analysis.path, expected.path);
    EXPECT_EQ(analysis.rank, expected.rank);
    EXPECT_EQ(analysis.window, expected.window);
    EXPECT_EQ(analysis.steps.count(), expected.steps.count());
    EXPECT_EQ(analysis.quality, expected.quality);
    ASSERT_EQ(analysis.findings.size(), expected.findings.size());
    for (size_t f = 0; f < expected.findings.size(); ++f) {
      EXPECT_EQ(analysis.findings[f].title, expected.findings[f].title);
    }
  }
  EXPECT_EQ(document.Analysis(document.SlowestRank())->rank, SlowestRank(job.value()).rank);
}

TEST(Document, LoadsAFileOfOneRank) {
  const ScratchFolder folder;
  const std::string file = (folder / "a.json").string();
  ASSERT_TRUE(ExportTrace(RankTrace(0, 1000), file).ok());
  Document document(file);
  EXPECT_EQ(document.lines(), nullptr);
  LoadAll(document);
  const LoadProgress progress = document.progress();
  EXPECT_EQ(progress.error, "");
  EXPECT_EQ(progress.events, 24u);
  EXPECT_EQ(progress.text, "1 rank, 24 events");
  EXPECT_EQ(progress.ranks, 1u);
  EXPECT_EQ(progress.analysed, 1u);
  EXPECT_FALSE(progress.still_recorded);
  EXPECT_EQ(document.StepsOf(0).count(), 8u);
  EXPECT_EQ(document.Links(0).CallOf(Row{3}), Row{3});
  EXPECT_EQ(document.Links(0).OpsOf(Row{3})[0], Row{3});
  ExpectTheReportsResults(document, file);
  EXPECT_FALSE(document.Update());
}

// As they were when the rank came, whatever came later.
TEST(Document, RanksAndLinesKeepTheirIndex) {
  constexpr int64_t kRanks = 24;
  const ScratchFolder folder;
  WriteRanks(folder.path(), kRanks);
  Document document(folder.path());
  std::vector<std::string> names;
  std::vector<const Trace*> traces;
  LoadAll(document, [&] {
    const std::vector<std::string> now = NamesOf(document);
    ASSERT_GE(now.size(), names.size());
    for (size_t i = 0; i < names.size(); ++i) EXPECT_EQ(now[i], names[i]);
    names = now;
    ASSERT_GE(document.ranks(), traces.size());
    for (size_t r = 0; r < traces.size(); ++r) {
      EXPECT_EQ(&document.TraceOf(static_cast<uint32_t>(r)), traces[r]);
    }
    traces.clear();
    for (uint32_t r = 0; r < document.ranks(); ++r) {
      traces.push_back(&document.TraceOf(r));
      EXPECT_EQ(document.StepsOf(r).count(), 8u);
      EXPECT_EQ(document.Links(r).CallOf(Row{1}), Row{1});
      for (uint32_t line = 0; line < document.lines()->lines().size(); line += 3) {
        document.store().LanesOf(line);
      }
    }
    EXPECT_LT(document.SlowestRank(), document.ranks());
    EXPECT_LT(document.MedianRank(), document.ranks());
  });
  ASSERT_EQ(document.ranks(), static_cast<size_t>(kRanks));
  for (uint32_t r = 0; r < kRanks; ++r) EXPECT_EQ(document.TraceOf(r).rank, r);
  EXPECT_EQ(document.SlowestRank(), kRanks / 2);
  EXPECT_EQ(document.MedianRank(), kRanks / 2 - 1);
  ExpectTheReportsResults(document, folder.path());
}

TEST(Document, LoadsRecordingsAndTheirRankFolders) {
  for (const char* sample : {"trainer_cpu_workers0", "trainer_cpu_workers2", "trainer_killed"}) {
    const fs::path path = fs::path(TRAINPROF_SOURCE_DIR) / "samples" / sample / "recording";
    Document document(path);
    LoadAll(document);
    EXPECT_EQ(document.progress().error, "") << sample;
    EXPECT_FALSE(document.progress().still_recorded) << sample;
    ExpectTheReportsResults(document, path);
  }
}

TEST(Document, LoadsTheRanksOfOneFile) {
  const ScratchFolder folder;
  const std::string file = (folder / "merged.json.gz").string();
  const std::vector<Trace> ranks = {RankTrace(0, 1000), RankTrace(1, 2000), RankTrace(2, 1500)};
  const auto visit_all = [&](const VisitRank& visit) -> Result<void> {
    for (const Trace& rank : ranks) {
      if (Result<void> visited = visit(rank); !visited.ok()) return visited;
    }
    return {};
  };
  ASSERT_TRUE(ExportMerged(visit_all, file).ok());
  Document document(file);
  LoadAll(document);
  ASSERT_EQ(document.ranks(), 3u);
  EXPECT_EQ(document.SlowestRank(), 1u);
  EXPECT_EQ(document.MedianRank(), 2u);
  ExpectTheReportsResults(document, file);
}

// What stands in a launcher's folder is no rank; it is named.
TEST(Document, LeavesOutProcessesThatDoNotTrain) {
  const ScratchFolder folder;
  const auto write = [&](const char* name, bool trains) {
    testing::SegmentWriter writer(folder / name);
    writer.BeginWriter(1, 100);
    for (uint64_t step = 0; step < 4; ++step) {
      writer.Push(trains ? "step" : "poll", 1000 + 1000 * step);
      writer.Pop(1900 + 1000 * step);
    }
    writer.Finish();
  };
  write("rank-00000", false);
  write("rank-00001", true);
  Document document(folder.path());
  LoadAll(document);
  EXPECT_EQ(document.progress().error, "");
  ASSERT_EQ(document.ranks(), 1u);
  EXPECT_EQ(document.TraceOf(0).rank, 1);
  ASSERT_EQ(document.job()->other_processes.size(), 1u);
  ExpectTheReportsResults(document, folder.path());
}

TEST(Document, SaysThatTheProgramStillRuns) {
  const ScratchFolder folder;
  testing::SegmentWriter writer(folder / "rank-00000", getpid());
  std::ifstream stat("/proc/self/stat");
  std::string text((std::istreambuf_iterator<char>(stat)), {});
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::string field;
  for (int i = 3; i <= 22; ++i) fields >> field;
  writer.header().process_start = std::stoull(field);
  std::ifstream("/proc/sys/kernel/random/boot_id") >> field;
  std::strncpy(writer.header().boot_id, field.c_str(), sizeof writer.header().boot_id - 1);
  writer.BeginWriter(1, 100);
  writer.Push("step", 1000);
  writer.Pop(2000);
  writer.Finish();
  Document document(folder.path());
  LoadAll(document);
  EXPECT_EQ(document.progress().error, "");
  EXPECT_TRUE(document.progress().still_recorded);
}

// The number of a step comes with the rank where steps are named, with the analysis where not.
TEST(Document, InferredStepsComeWithTheAnalysis) {
  const ScratchFolder folder;
  std::string script = "recording\nstream 0 7\nrepeat 20 every 1000\n";
  for (int k = 0; k < 5; ++k) script += fmt::format("kernel {0} {1} k{0}\n", k * 100, k * 100 + 50);
  script += "kernel 600 650 adam\n";
  const std::string file = (folder / "a.json").string();
  ASSERT_TRUE(ExportTrace(TraceFromScript(script + "end\n"), file).ok());
  Document document(file);
  LoadAll(document, [&] {
    EXPECT_EQ(document.StepsOf(0).source,
              document.Analysis(0) == nullptr ? StepSource::kNone : StepSource::kInferred);
  });
  EXPECT_GT(document.StepsOf(0).count(), 10u);
}

std::string ErrorOf(const fs::path& path) {
  Document document(path);
  LoadAll(document);
  EXPECT_EQ(document.lines(), nullptr);
  EXPECT_EQ(document.ranks(), 0u);
  EXPECT_EQ(document.kind(), "");
  return document.progress().error;
}

TEST(Document, SaysWhyAPathCannotBeLoaded) {
  const ScratchFolder folder;
  EXPECT_EQ(ErrorOf(folder / "absent"), (folder / "absent").string() + ": no such file or folder");
  EXPECT_NE(ErrorOf(folder.path()).find("neither a trainprof recording nor a folder of traces"),
            std::string::npos);
  EXPECT_NE(ErrorOf("/dev/zero").find("not a trace that trainprof knows"), std::string::npos);
  for (const std::string_view content : {"", "{",
                                         "\x7f"
                                         "ELF",
                                         "\x1f\x8b", "[1, 2"}) {
    const fs::path file = folder / "file.json";
    testing::WriteBytes(file, {content.begin(), content.end()});
    EXPECT_NE(ErrorOf(file).find("file.json"), std::string::npos) << ErrorOf(file);
  }
}

TEST(Document, SurvivesRecordingsThatAreCutAnywhere) {
  const fs::path sample = fs::path(TRAINPROF_SOURCE_DIR) / "samples/trainer_killed/recording";
  std::vector<char> bytes;
  for (const auto& entry : fs::recursive_directory_iterator(sample)) {
    if (entry.path().extension() == ".tps") bytes = testing::ReadBytes(entry.path());
  }
  ASSERT_GT(bytes.size(), 4096u);
  for (size_t part = 0; part < 8; ++part) {
    const ScratchFolder folder;
    fs::create_directory(folder / "pid-1");
    testing::WriteBytes(
        folder / "pid-1" / "1-1.tps",
        {bytes.begin(), bytes.begin() + static_cast<long>(bytes.size() * part / 8)});
    Document document(folder.path());
    LoadAll(document);
    EXPECT_EQ(document.progress().error.empty(), document.ranks() > 0);
  }
}

// As a report does: a run that was killed shows the same in both.
TEST(Document, RecoversWhatAKilledRunLeft) {
  const ScratchFolder folder;
  const fs::path slots = testing::WriteKilledRun(folder / "run");
  Document document(folder / "run");
  LoadAll(document);
  ASSERT_EQ(document.progress().error, "");
  EXPECT_EQ(document.TraceOf(0).device_ops.size(), size_t{testing::kKilledKernels});
  EXPECT_NE(document.progress().text.find("10 GPU events"), std::string::npos)
      << document.progress().text;
  EXPECT_FALSE(fs::exists(slots));
  ExpectTheReportsResults(document, folder / "run");
}

// The others are shown; what is missing is said where losses are.
TEST(Document, ABrokenFileAmongRanksIsCounted) {
  const ScratchFolder folder;
  WriteRanks(folder.path(), 3);
  const std::string_view broken =
      "\x7f"
      "ELF";
  testing::WriteBytes(folder / "rank1.json", {broken.begin(), broken.end()});
  Document document(folder.path());
  LoadAll(document);
  EXPECT_EQ(document.progress().error, "");
  EXPECT_EQ(document.ranks(), 2u);
  ASSERT_EQ(document.unreadable().size(), 1u);
  EXPECT_NE(document.unreadable()[0].find("rank1.json"), std::string::npos);
  ASSERT_FALSE(document.Analysis(0)->quality.empty());
  EXPECT_EQ(document.Analysis(0)->quality.back().kind, "unreadable_file");
  ExpectTheReportsResults(document, folder.path());
}

// A file that takes seconds.
void WriteLargeFile(const fs::path& path) {
  std::ofstream file(path);
  file << "[";
  for (int i = 0; i < 200'000; ++i) {
    file << fmt::format(
        R"({}{{"ph":"X","cat":"cpu_op","name":"op{}","pid":1,"tid":1,"ts":{},"dur":1}})",
        i == 0 ? "" : ",\n", i % 100, 2 * i);
  }
  file << "]";
}

TEST(Document, EndsSoonAfterCancel) {
  const ScratchFolder folder;
  WriteLargeFile(folder / "a.json");
  WriteLargeFile(folder / "b.json");
  Document document(folder.path());
  while (document.progress().events == 0) {
    ASSERT_FALSE(document.progress().done);
    std::this_thread::yield();
  }
  EXPECT_GE(document.progress().share, 0);
  EXPECT_NE(document.progress().text.find(" of 2)"), std::string::npos);
  document.Cancel();
  EXPECT_TRUE(document.progress().done);
  EXPECT_EQ(document.progress().error, "cancelled");
  // Without sanitizers it takes a few milliseconds.
  const auto deadline = steady_clock::now() + std::chrono::seconds(2);
  while (!document.Stopped()) {
    ASSERT_LT(steady_clock::now(), deadline);
    std::this_thread::yield();
  }
  EXPECT_TRUE(document.Update());
  EXPECT_FALSE(document.Update());
  EXPECT_LT(document.ranks(), 2u);
}

TEST(Document, CancelAfterTheEndChangesNothing) {
  const ScratchFolder folder;
  WriteRanks(folder.path(), 2);
  Document document(folder.path());
  LoadAll(document);
  document.Cancel();
  EXPECT_EQ(document.progress().error, "");
  EXPECT_EQ(document.progress().ranks, 2u);
  EXPECT_FALSE(document.Update());
  EXPECT_EQ(document.ranks(), 2u);
}

// The frame in which a user closes it does not wait for its threads.
TEST(Document, IsKeptWhenClosedUntilItsThreadsHaveEnded) {
  const ScratchFolder folder;
  WriteLargeFile(folder / "a.json");
  State state;
  Open(state, folder / "a.json");
  const std::weak_ptr<Document> document = state.document;
  while (document.lock()->progress().events == 0) std::this_thread::yield();
  Close(state);
  EXPECT_EQ(state.document, nullptr);
  const auto deadline = steady_clock::now() + std::chrono::minutes(1);
  while (!document.expired()) {
    ASSERT_LT(steady_clock::now(), deadline);
    UpdateDocument(state);
  }
  EXPECT_TRUE(state.closing.empty());
}

// At any moment; with the thread sanitizer this is where a race would show.
TEST(Document, MayGoAtAnyTime) {
  const ScratchFolder folder;
  WriteRanks(folder.path(), 6);
  for (int turn = 0; turn < 40; ++turn) {
    Document document(folder.path());
    std::this_thread::sleep_for(std::chrono::microseconds(500 * turn));
    document.Update();
    if (turn % 3 == 0) document.Cancel();
  }
}

TEST(Document, EndsAlsoWhileItWaitsForAFifo) {
  const ScratchFolder folder;
  const std::string fifo = (folder / "fifo").string();
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  int writer = -1;
  {
    Document document(fifo);
    while ((writer = open(fifo.c_str(), O_WRONLY | O_NONBLOCK)) < 0) {
      ASSERT_EQ(errno, ENXIO);  // as long as nobody reads it
      std::this_thread::yield();
    }
    EXPECT_FALSE(document.progress().done);
  }
  close(writer);
}

TEST(Document, LoadsTheCorpusJob) {
  const fs::path path = fs::path(TRAINPROF_CORPUS) / "dlrm_8ranks";
  if (std::string_view(TRAINPROF_CORPUS).empty() || !fs::exists(path)) {
    GTEST_SKIP() << "no corpus folder: set TRAINPROF_CORPUS";
  }
  Document document(path);
  LoadAll(document);
  ASSERT_EQ(document.ranks(), 8u);
  EXPECT_EQ(document.SlowestRank(), 7u) << "the others wait for it";
  ExpectTheReportsResults(document, path);
}

}  // namespace
}  // namespace trainprof
