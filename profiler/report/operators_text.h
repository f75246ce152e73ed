// Torch's operators and modules, as text.
#pragma once

#include <string>

#include "analysis/job/analysis.h"

namespace trainprof {

// A table of each, by own time, and what recording them cost. "" without. Ends with a line end.
std::string OperatorsText(const RankAnalysis& rank);

}  // namespace trainprof
