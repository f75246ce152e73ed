// A job: all ranks of a run, each analysed. What every renderer takes.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "analysis/job/analysis.h"
#include "analysis/job/open.h"
#include "trace/base/result.h"

namespace trainprof {

struct JobAnalysis {
  std::string kind;  // "recording", "kineto", "chrome", or the slug of another importer
  std::string path;
  std::vector<RankAnalysis> ranks;           // by rank; never empty
  std::vector<std::string> other_processes;  // see JobFacts
  std::vector<int64_t> silent_ranks;
  std::vector<QualityItem> elsewhere;
  bool whole = false;       // JobSource::is_whole
  recording::RunState run;  // of a recording
};

// Loads and analyses, with two ranks in memory where the source allows.
Result<JobAnalysis> AnalyzePath(const std::filesystem::path& path, const LoadOptions& options);

// JobAnalysis::kind; lives as long as the trace.
std::string_view KindName(const Trace& trace);

// The rank that a one-line summary speaks of: the slowest mean step, the lowest number if equal.
const RankAnalysis& SlowestRank(const JobAnalysis& job);

}  // namespace trainprof
