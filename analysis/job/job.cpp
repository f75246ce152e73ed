// Reads and analyses the ranks of a job.
#include "analysis/job/job.h"

#include <algorithm>

#include "trace/base/cancel.h"

namespace trainprof {
namespace {

namespace fs = std::filesystem;

void CountUnreadable(const std::vector<std::string>& errors, RankAnalysis& rank) {
  // A settings file among the traces is no reason to give up.
  if (errors.empty()) return;
  rank.quality.push_back({"unreadable_file", QualitySeverity::kDataLoss,
                          static_cast<int64_t>(errors.size()), errors.front()});
}

std::vector<std::optional<Duration>> LatenessIn(std::span<const RankAnalysis* const> ranks) {
  std::vector<int64_t> base_ns;
  for (const RankAnalysis* rank : ranks) base_ns.push_back(rank->base_ns);
  return LatenessOf(ClockOf(base_ns), ranks);
}

// Who is late, and what that leaves of the gains.
void JudgeRanks(JobAnalysis& job) {
  job.late_cause = CauseOf(job.waits, job.ranks);
  FitGains(job.waits, job.ranks);
  std::vector<const RankAnalysis*> ranks;
  for (const RankAnalysis& rank : job.ranks) ranks.push_back(&rank);
  job.late = LatenessIn(ranks);
  if (job.waits.Any()) {
    if (!job.waits.late.empty()) job.late = LatenessOf(job.waits, job.ranks);
    return;
  }
  const std::vector<std::optional<Duration>> slack = SlackOf(ranks);
  for (size_t i = 0; i < slack.size(); ++i) {
    if (slack[i]) TakeSlackOff(*slack[i], job.ranks[i]);
  }
}

Result<JobDigests> DigestAll(const fs::path& path, const LoadOptions& options) {
  Result<JobSource> source = OpenJob(path);
  if (!source.ok()) return Error{source.error()};
  JobDigests digests;
  int64_t place = 0;
  LoadOptions reading = options;
  reading.args = KeptArgs::kOfAnalysis;
  Result<JobFacts> facts =
      VisitJob(source.value(), reading, [&](const Trace& trace) -> Result<void> {
        digests.ranks.push_back(DigestOf(RankModel(trace, options.warmup_steps), place++));
        return {};
      });
  if (!facts.ok()) return Error{facts.error()};
  digests.source = std::move(source).value();
  digests.facts = std::move(facts).value();
  return digests;
}

}  // namespace

void JobAnalyzer::Add(RankDigest digest) { digests_.push_back(std::move(digest)); }

JobAnalysis JobAnalyzer::Finish(const JobSource& source, JobFacts facts) && {
  std::sort(digests_.begin(), digests_.end(), [](const RankDigest& a, const RankDigest& b) {
    return a.analysis.place < b.analysis.place;
  });
  CountUnreadable(facts.unreadable, digests_.front().analysis);
  JobAnalysis job;
  job.kind = digests_.front().analysis.kind;
  std::stable_sort(digests_.begin(), digests_.end(), [](const RankDigest& a, const RankDigest& b) {
    return a.analysis.rank < b.analysis.rank;
  });
  job.path = source.path.lexically_normal().string();
  std::stable_sort(digests_.begin(), digests_.end(), [](const RankDigest& a, const RankDigest& b) {
    return a.analysis.rank < b.analysis.rank;
  });
  job.waits = WaitsOf(digests_);
  for (RankDigest& digest : digests_) {
    RateConfidence(digest.analysis);
    job.ranks.push_back(std::move(digest.analysis));
    job.steps.push_back({std::move(digest.host_steps), std::move(digest.devices)});
  }
  job.other_processes = std::move(facts.other_processes);
  job.silent_ranks = std::move(facts.silent_ranks);
  job.elsewhere = facts.elsewhere.items();
  job.whole = source.is_whole;
  job.run = source.run;
  JudgeRanks(job);
  return job;
}

Result<JobDigests> DigestsOfPath(const fs::path& path, const LoadOptions& options) {
  return InMemory(path, [&] {
    return ResultUnlessCancelled(path.string(), options.cancel,
                                 [&] { return DigestAll(path, options); });
  });
}

JobAnalysis AnalysisOf(JobDigests digests) {
  JobAnalyzer analyzer;
  for (RankDigest& digest : digests.ranks) analyzer.Add(std::move(digest));
  return std::move(analyzer).Finish(digests.source, std::move(digests.facts));
}

Result<JobAnalysis> AnalyzePath(const fs::path& path, const LoadOptions& options) {
  Result<JobDigests> digests = DigestsOfPath(path, options);
  if (!digests.ok()) return Error{digests.error()};
  return InMemory(path,
                  [&]() -> Result<JobAnalysis> { return AnalysisOf(std::move(digests).value()); });
}

namespace {

double LongestOwnStepMs(const JobAnalysis& job) {
  double longest = job.ranks.front().OwnStepMs();
  for (const RankAnalysis& rank : job.ranks) longest = std::max(longest, rank.OwnStepMs());
  return longest;
}

bool IsAsSlow(const RankAnalysis& rank, double longest_ms) {
  return rank.OwnStepMs() >= (1 - kWaitWorthSaying) * longest_ms;
}

}  // namespace

bool AreAlike(const JobAnalysis& job) {
  if (job.ranks.size() < 2 || !job.waits.late.empty()) return false;
  if (job.waits.is_whole) return true;  // whatever their means are, nobody waits
  const double longest_ms = LongestOwnStepMs(job);
  return std::all_of(job.ranks.begin(), job.ranks.end(),
                     [&](const RankAnalysis& rank) { return IsAsSlow(rank, longest_ms); });
}

const RankAnalysis& SlowestRank(const JobAnalysis& job) {
  if (!job.waits.late.empty()) return job.ranks[job.waits.late.front()];
  const double longest_ms = LongestOwnStepMs(job);
  const bool all_are = AreAlike(job);
  const auto promise = [](const RankAnalysis& rank) {
    return rank.findings.empty() ? 0 : rank.findings.front().gain.high_ms_per_step;
  };
  const RankAnalysis* chosen = nullptr;
  for (const RankAnalysis& rank : job.ranks) {
    if (!all_are && !IsAsSlow(rank, longest_ms)) continue;
    const double chance_ms = kWaitWorthSaying * rank.PerStepMs(rank.window);
    if (chosen == nullptr || promise(rank) > promise(*chosen) + chance_ms) chosen = &rank;
  }
  return chosen == nullptr ? job.ranks.front()
                           : *chosen;  // figures of a damaged digest may be below 0
}

}  // namespace trainprof
