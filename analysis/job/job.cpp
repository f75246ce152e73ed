// Reads and analyses the ranks of a job.
#include "analysis/job/job.h"

#include <algorithm>
#include <optional>

#include "trace/base/cancel.h"

namespace trainprof {
namespace {

namespace fs = std::filesystem;

Result<JobAnalysis> AnalyzeAll(const fs::path& path, const LoadOptions& options) {
  const Result<JobSource> source = OpenJob(path);
  if (!source.ok()) return Error{source.error()};
  JobAnalysis job;
  job.path = path.lexically_normal().string();
  // Only when all are read is it known what the first one's quality has to say of the others.
  std::optional<Trace> first;
  LoadOptions reading = options;
  reading.args = KeptArgs::kOfAnalysis;
  Result<JobFacts> facts = VisitJob(source.value(), reading, [&](Trace trace) -> Result<void> {
    if (first) {
      job.ranks.push_back(Analyze(trace));
    } else {
      first = std::move(trace);
    }
    return {};
  });
  if (!facts.ok()) return Error{facts.error()};
  CountUnreadable(facts.value().unreadable, first->quality);
  job.kind = KindName(*first);
  job.ranks.insert(job.ranks.begin(), Analyze(*first));
  job.other_processes = std::move(facts.value().other_processes);
  job.silent_ranks = std::move(facts.value().silent_ranks);
  job.elsewhere = facts.value().elsewhere.items();
  job.whole = source.value().is_whole;
  job.run = source.value().run;
  std::stable_sort(job.ranks.begin(), job.ranks.end(),
                   [](const RankAnalysis& a, const RankAnalysis& b) { return a.rank < b.rank; });
  return job;
}

}  // namespace

Result<JobAnalysis> AnalyzePath(const fs::path& path, const LoadOptions& options) {
  return InMemory(path, [&] {
    return ResultUnlessCancelled(path.string(), options.cancel,
                                 [&] { return AnalyzeAll(path, options); });
  });
}

std::string_view KindName(const Trace& trace) {
  switch (trace.source) {
    case SourceKind::kRecording:
      return "recording";
    case SourceKind::kKineto:
      return "kineto";
    case SourceKind::kChrome:
      return "chrome";
    case SourceKind::kOther:
      break;
  }
  return trace.format;
}

const RankAnalysis& SlowestRank(const JobAnalysis& job) {
  return *std::max_element(job.ranks.begin(), job.ranks.end(),
                           [](const RankAnalysis& a, const RankAnalysis& b) {
                             return a.PerStepMs(a.window) < b.PerStepMs(b.window);
                           });
}

}  // namespace trainprof
