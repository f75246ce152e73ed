// A path is the same job to the command line and to the viewer: the same ranks with the same
// figures and losses, the same notes on what was done to it, the same refusal.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <thread>

#include "analysis/job/job.h"
#include "tests/support/killed_run.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/trace_script.h"
#include "trace/formats/exporter.h"
#include "viewer/document/document.h"

namespace trainprof {
namespace {

namespace fs = std::filesystem;
using testing::ScratchFolder;

Trace SmallRank(int64_t rank, bool says_rank = true) {
  Trace trace = TraceFromScript(fmt::format(R"(
recording
thread 1
repeat 8 every 1000
step 0 {} ProfilerStep#1
call 10 20 cudaLaunchKernel | corr=100
end
stream 0 7
repeat 8 every 1000
kernel 20 {} gemm | corr=100
end
)",
                                            900 + rank, 100 + 50 * rank));
  trace.rank = rank;
  trace.rank_known = says_rank;
  return trace;
}

void Write(const Trace& trace, const fs::path& file) {
  const Result<void> written = ExportTrace(trace, file.string());
  ASSERT_TRUE(written.ok()) << written.error();
}

void WriteText(const fs::path& file, std::string_view text) { std::ofstream(file) << text; }

// What a program gets to know of a path, without the place of `folder`.
struct Opened {
  std::vector<std::string> ranks;  // a line each, by number
  std::vector<std::string> others;
  std::string note;
  std::string refusal;
};

std::string LineOf(const RankAnalysis& rank, const fs::path& folder) {
  std::string line = fmt::format("rank {}{} of {}: {}: {} steps, {} ns, {} kernels, {} calls",
                                 rank.rank, rank.rank_known ? "" : "?", rank.world_size,
                                 fs::path(rank.path).lexically_relative(folder).string(),
                                 rank.steps.count(), rank.window.ns, rank.kernels, rank.api_calls);
  for (const QualityItem& item : rank.quality) {
    line += fmt::format("; {} x {} [{}]", item.count, item.kind, Name(item.severity));
  }
  for (const Finding& finding : rank.findings) {
    line += fmt::format("; {} ({:.3f}, {} reasons)", finding.title, finding.confidence,
                        finding.confidence_reasons.size());
  }
  return line;
}

std::string Without(std::string text, const fs::path& folder) {
  const std::string place = folder.string();
  for (size_t at = text.find(place); at != std::string::npos; at = text.find(place)) {
    text.replace(at, place.size(), "F");
  }
  return text;
}

Opened ByReport(const fs::path& path, const fs::path& folder) {
  Opened opened;
  LoadOptions options;
  options.notice = [&](const std::string& text) { opened.note = Without(text, folder); };
  const Result<JobAnalysis> job = AnalyzePath(path, options);
  if (!job.ok()) {
    opened.refusal = Without(job.error(), folder);
    return opened;
  }
  for (const RankAnalysis& rank : job.value().ranks) opened.ranks.push_back(LineOf(rank, folder));
  for (const std::string& other : job.value().other_processes) {
    opened.others.push_back(Without(other, folder));
  }
  return opened;
}

const RankAnalysis& InTheJob(const JobAnalysis& job, int64_t place) {
  return *std::find_if(job.ranks.begin(), job.ranks.end(),
                       [&](const RankAnalysis& rank) { return rank.place == place; });
}

Opened ByViewer(const fs::path& path, const fs::path& folder) {
  Opened opened;
  Document document(path);
  while (!document.progress().done) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  document.Update();
  const LoadProgress progress = document.progress();
  opened.refusal = Without(progress.error, folder);
  for (uint32_t rank = 0; rank < document.ranks(); ++rank) {
    opened.ranks.push_back(LineOf(*document.Analysis(rank), folder));
  }
  std::sort(opened.ranks.begin(), opened.ranks.end());
  for (uint32_t rank = 0; document.job() != nullptr && rank < document.ranks(); ++rank) {
    EXPECT_EQ(*document.Analysis(rank), InTheJob(*document.job(), rank));
  }
  if (document.job() != nullptr) {
    for (const std::string& other : document.job()->other_processes) {
      opened.others.push_back(Without(other, folder));
    }
  }
  const std::string text = Without(progress.text, folder);
  const size_t note = text.find(" events. ");
  if (note != std::string::npos)
    opened.note = text.substr(note + std::string_view(" events. ").size());
  return opened;
}

struct PathCase {
  const char* name;
  std::function<fs::path(const fs::path& folder)> make;  // the path to open
  size_t ranks;
  const char* says;  // in the refusal, or where there are ranks in the note
};

fs::path Merged(const fs::path& folder) {
  const auto visit_all = [](const VisitRank& visit) -> Result<void> {
    for (int64_t rank : {0, 1, 2}) {
      if (Result<void> visited = visit(SmallRank(rank)); !visited.ok()) return visited;
    }
    return {};
  };
  EXPECT_TRUE(ExportMerged(visit_all, (folder / "merged.json.gz").string()).ok());
  return folder / "merged.json.gz";
}

fs::path Sample(const char* part) {
  return fs::path(TRAINPROF_SOURCE_DIR) / "samples/trainer_cpu_workers2/recording" / part;
}

const PathCase kCases[] = {
    {"a file",
     [](const fs::path& folder) {
       return Write(SmallRank(3), folder / "a.json"), folder / "a.json";
     },
     1, ""},
    {"a file of several ranks", Merged, 3, ""},
    {"a folder of ranks",
     [](const fs::path& folder) {
       for (int64_t rank : {0, 1})
         Write(SmallRank(rank), folder / fmt::format("rank{}.json", rank));
       return folder;
     },
     2, ""},
    {"a folder of ranks whose order is not that of the names",
     [](const fs::path& folder) {
       Write(SmallRank(1), folder / "a.json");
       Write(SmallRank(0), folder / "b.json");
       WriteText(folder / "c.json", "{");
       return folder;
     },
     2, ""},
    {"a trace among other files",
     [](const fs::path& folder) {
       Write(SmallRank(0, false), folder / "a.json");
       WriteText(folder / "settings.json", R"({"lr": 1})");
       return folder;
     },
     1, ""},
    {"separate traces",
     [](const fs::path& folder) {
       Write(SmallRank(0, false), folder / "first.json");
       Write(SmallRank(0, false), folder / "second.json");
       return folder;
     },
     0, "Name one of them"},
    {"a recording", [](const fs::path&) { return Sample(""); }, 1, ""},
    {"a folder of a recording", [](const fs::path&) { return Sample("pid-12892"); }, 1, ""},
    {"a run that was killed",
     [](const fs::path& folder) {
       for (int rank : {0, 1}) testing::WriteKilledRun(folder / "run", rank);
       return folder / "run";
     },
     2, "20 GPU events of killed processes were recovered"},
    {"an empty folder", [](const fs::path& folder) { return folder; }, 0,
     "neither a trainprof recording nor"},
    {"no such path", [](const fs::path& folder) { return folder / "nowhere"; }, 0,
     "no such file or folder"},
    {"no trace",
     [](const fs::path& folder) { return WriteText(folder / "a.json", "{"), folder / "a.json"; }, 0,
     "a.json"},
};

TEST(SameJob, APathIsTheSameToReportAndViewer) {
  for (const PathCase& one : kCases) {
    SCOPED_TRACE(one.name);
    const ScratchFolder for_report;
    const ScratchFolder for_viewer;
    const Opened report = ByReport(one.make(for_report.path()), for_report.path());
    const Opened viewer = ByViewer(one.make(for_viewer.path()), for_viewer.path());
    EXPECT_EQ(report.ranks.size(), one.ranks) << report.refusal;
    EXPECT_NE((one.ranks == 0 ? report.refusal : report.note).find(one.says), std::string::npos)
        << report.refusal << report.note;
    EXPECT_EQ(report.others, viewer.others);
    EXPECT_EQ(report.note, viewer.note);
    EXPECT_EQ(report.refusal, viewer.refusal);
    // Before a refusal the viewer has drawn what was read until then.
    if (report.refusal.empty()) {
      EXPECT_EQ(report.ranks, viewer.ranks);
    }
  }
}

}  // namespace
}  // namespace trainprof
