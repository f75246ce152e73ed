// The one sentence that comes first everywhere.
#pragma once

#include <string>

#include "analysis/job/analysis.h"

namespace trainprof {

// "median step 176.3 ms, mean 174.9 ms; GPU busy 56.0 %; biggest loss: GPU idle, input wait,
// 58.7 ms/step (34 % of the mean)".
std::string Verdict(const RankAnalysis& rank);

}  // namespace trainprof
