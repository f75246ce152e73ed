// What the host's phases consist of, by source line, as samples of stacks tell.
#pragma once

#include <string>

#include "analysis/job/analysis.h"

namespace trainprof {

// Lines under the account of the training thread: of each phase that takes a part of the step worth
// opening the source lines that take most of it, and of input wait what other threads and processes
// did meanwhile. "" without samples. Ends with a line end.
std::string PhaseLinesText(const RankAnalysis& rank);

}  // namespace trainprof
