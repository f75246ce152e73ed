// A job: all ranks of a run, each analysed. What every renderer takes, and how it comes of its
// ranks' digests.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "analysis/job/digest.h"
#include "analysis/job/late_rank.h"
#include "analysis/job/lateness.h"
#include "analysis/job/open.h"
#include "trace/base/result.h"

namespace trainprof {

// What each step of a rank went to.
struct RankSteps {
  std::vector<HostSplit> host;       // as RankDigest::host_steps
  std::vector<DeviceSteps> devices;  // as RankDigest::devices

  bool operator==(const RankSteps&) const = default;
};

struct JobAnalysis {
  std::string kind;  // "recording", "kineto", "chrome", or the slug of another importer
  std::string path;
  std::vector<RankAnalysis> ranks;           // by rank; never empty
  std::vector<std::string> other_processes;  // see JobFacts
  std::vector<int64_t> silent_ranks;
  std::vector<QualityItem> elsewhere;
  bool whole = false;       // JobSource::is_whole
  recording::RunState run;  // of a recording
  JobWaits waits;           // by rank, as `ranks`
  LateCause late_cause;     // of waits.late
  // By rank, as `ranks`: by the waits where they are worth saying, else LatenessOf.
  std::vector<std::optional<Duration>> late;
  std::vector<RankSteps> steps;  // by rank, as `ranks`
};

// Puts a job together from what is known of each rank. The order of Add does not matter.
class JobAnalyzer {
 public:
  void Add(RankDigest digest);  // each of another place
  // After at least one. What could not be read counts as a loss of the rank that was read first: a
  // broken file must be seen.
  JobAnalysis Finish(const JobSource& source, JobFacts facts) &&;

 private:
  std::vector<RankDigest> digests_;
};

// A job's ranks by themselves, and what is known of it beside them.
struct JobDigests {
  JobSource source;
  JobFacts facts;
  std::vector<RankDigest> ranks;  // as they were read; never empty
};
// Reads, with one rank's trace in memory where the source allows.
Result<JobDigests> DigestsOfPath(const std::filesystem::path& path, const LoadOptions& options);
JobAnalysis AnalysisOf(JobDigests digests);

// Both.
Result<JobAnalysis> AnalyzePath(const std::filesystem::path& path, const LoadOptions& options);

// No rank makes others wait, by what the collectives of all show; where these are not known, none has
// a longer mean step, but for its waits for others, by more than kWaitWorthSaying. O(ranks).
bool AreAlike(const JobAnalysis& job);

// The rank that a one-line summary speaks of: the one that others wait for in their collectives, most
// often where that changes. Where none is known, the slowest mean step but for its waits for other
// ranks; of those as slow, within kWaitWorthSaying, and of ranks that are alike, the lowest number, or
// one whose first finding gives more by so much of the step.
const RankAnalysis& SlowestRank(const JobAnalysis& job);

}  // namespace trainprof
