// The one sentence that comes first everywhere.
#pragma once

#include <string>

#include "analysis/analysis.h"

namespace trainprof {

// "median step 176.3 ms; GPU busy 56.0 %; biggest loss: waiting for input, 59.3 ms/step".
std::string Verdict(const RankAnalysis& rank);

}  // namespace trainprof
