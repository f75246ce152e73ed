// What a rank's steps hold and keep, as text.
#pragma once

#include <string>

#include "analysis/job/analysis.h"

namespace trainprof {

// Peaks, growth, the lines that keep memory and what looking cost. "" without. Ends with a line end.
std::string MemoryText(const RankAnalysis& rank);

// What grows the most, and the line that keeps the most; "" where nothing grows. Ends with a line end.
std::string MemoryCardLine(const RankAnalysis& rank);

}  // namespace trainprof
