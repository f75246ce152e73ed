// A job: all ranks of a run, each analysed. What every renderer takes; where its traces come from.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "analysis/job/analysis.h"
#include "trace/base/result.h"
#include "trace/recording/files/run_state.h"

namespace trainprof {

struct JobAnalysis {
  std::string kind;  // "recording", "kineto", "chrome"
  std::string path;
  std::vector<RankAnalysis> ranks;  // by rank; never empty
  // Processes that recorded something but neither train nor use a GPU: launchers, loader workers
  // with a folder of their own.
  std::vector<std::string> other_processes;
  std::vector<int64_t> silent_ranks;   // their ranks, where they have one
  std::vector<QualityItem> elsewhere;  // what is lost of them, or of files that are no rank's
  // The path is a folder that should hold all ranks, not one of its files.
  bool whole = false;
  recording::RunState run;  // of a recording
};

struct LoadStatus {
  std::string text;     // "reading a.json (3 of 8): 42 %, 310 MB/s, 1.2 million events, 3 s left"
  double share = -1;    // of all that is to read, 0..1; < 0: not known
  uint64_t events = 0;  // of the file or rank that is being read
};

struct LoadOptions {
  // Called about once a megabyte, and at the begin of each file or rank; may be empty.
  std::function<void(const LoadStatus&)> progress;
  // Called with what was done to a recording, for its user to know; may be empty.
  std::function<void(const std::string&)> notice;
  // When it turns true, the work ends within milliseconds, with an error that says "cancelled":
  // reading, what `visit` does with cancel points (trace/base/cancel.h), and analysis.
  const std::atomic<bool>* cancel = nullptr;
};

// The traces behind a path: a run directory or a rank folder of ours (finished or still running),
// a trace file of one rank or several, or a folder of trace files. Of a run that was killed the
// buffers of its GPU records are made readable first (recover.h).
Result<std::vector<Trace>> LoadTraces(const std::filesystem::path& path,
                                      const LoadOptions& options);

// Passes these traces on, one rank in memory at a time where the source allows, and stops at the
// first error of `visit`. Returns what could not be read among the files of a folder.
Result<std::vector<std::string>> VisitTraces(const std::filesystem::path& path,
                                             const LoadOptions& options,
                                             const std::function<Result<void>(Trace trace)>& visit);

// What a job has besides its ranks.
struct JobFacts {
  std::vector<std::string> other_processes;  // see JobAnalysis
  std::vector<int64_t> silent_ranks;         // see JobAnalysis
  Quality elsewhere;                         // what is lost of other processes
  std::vector<std::string> unreadable;       // errors of files in a folder
};

// Passes the ranks of a job on as soon as each is read; of a recording, processes that do not train
// only at the end, and only when nobody does. Ranks without a number get that of the one before
// plus one. Fails when there is no rank, and on the first error of `visit`.
Result<JobFacts> VisitJob(const std::filesystem::path& path, const LoadOptions& options,
                          const std::function<Result<void>(Trace trace)>& visit);

// Counts what could not be read in a rank's quality: a broken file must be seen.
void CountUnreadable(const std::vector<std::string>& errors, Quality& quality);

// Loads and analyses, with two ranks in memory where the source allows.
Result<JobAnalysis> AnalyzePath(const std::filesystem::path& path, const LoadOptions& options);

std::string_view KindName(SourceKind kind);  // JobAnalysis::kind

// The rank that a one-line summary speaks of: the slowest mean step, the lowest number if equal.
const RankAnalysis& SlowestRank(const JobAnalysis& job);

}  // namespace trainprof
