// A job: all ranks of a run, each analysed. What every renderer takes.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "analysis/analysis.h"
#include "trace/result.h"

namespace trainprof {

struct JobAnalysis {
  std::string kind;  // "recording", "kineto", "chrome"
  std::string path;
  std::vector<RankAnalysis> ranks;  // by rank; never empty
  // Processes that recorded something but neither train nor use a GPU: launchers, loader workers
  // with a folder of their own.
  std::vector<std::string> other_processes;
};

struct LoadOptions {
  // Called about once a megabyte with a line of progress ("reading a.json: 42 %, 310 MB/s, 3 s
  // left"); may be empty.
  std::function<void(std::string_view)> progress;
  // When it turns true, loading ends with an error that says "cancelled".
  const std::atomic<bool>* cancel = nullptr;
};

// The traces behind a path: a run directory or a rank folder of ours (finished or still running),
// a trace file of one rank or several, or a folder of trace files.
Result<std::vector<Trace>> LoadTraces(const std::filesystem::path& path,
                                      const LoadOptions& options);

// Passes these traces on, one rank in memory at a time where the source allows, and stops at the
// first error of `visit`. Returns what could not be read among the files of a folder.
Result<std::vector<std::string>> VisitTraces(const std::filesystem::path& path,
                                             const LoadOptions& options,
                                             const std::function<Result<void>(Trace trace)>& visit);

// Loads and analyses, one rank at a time where the source allows.
Result<JobAnalysis> AnalyzePath(const std::filesystem::path& path, const LoadOptions& options);

// One sentence: "median step 176.3 ms; GPU busy 56.0 %; biggest loss: waiting for input, 59.3
// ms/step".
std::string Verdict(const RankAnalysis& rank);

// The rank that a one-line summary speaks of: the slowest mean step, the lowest number if equal.
const RankAnalysis& SlowestRank(const JobAnalysis& job);

}  // namespace trainprof
