// What a page shows of a rank's events: the worst and a typical step, and what took the time by name and by line.
#pragma once

#include <string>
#include <vector>

#include "analysis/job/job.h"
#include "profiler/report/renderer.h"

namespace trainprof::html {

struct TraceParts {
  std::string timelines;
  std::string tables;
  std::vector<std::string> evidence;  // by finding of the rank: a picture of the worst of it, or ""
};

// Of a rank of a job, whose trace is read once more and analysed. Fails where it cannot be read.
Result<TraceParts> PartsOfTrace(const RankAnalysis& rank, const RenderOptions& options);

}  // namespace trainprof::html
