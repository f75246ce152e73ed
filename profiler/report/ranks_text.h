// The ranks of a job side by side: a line each, or a line for those that are alike where they are many.
#pragma once

#include <string>

#include "analysis/job/job.h"
#include "profiler/report/text.h"

namespace trainprof {

// Each rank's verdict; what it waits for which one; its own first finding; how far their clocks are apart.
// Of a job of several ranks.
std::string RanksOverview(const JobAnalysis& job, const Style& style);

}  // namespace trainprof
