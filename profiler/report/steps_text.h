// The steps of a rank, as text: how many, how long, by which clock.
#pragma once

#include <string>

#include "analysis/job/analysis.h"

namespace trainprof {

// A line, and one for each thing that changes what figures mean. Ends with a line end.
std::string StepsText(const RankAnalysis& rank);

}  // namespace trainprof
