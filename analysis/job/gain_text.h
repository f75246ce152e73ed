// What findings would give, for people.
#pragma once

#include <string>

#include "analysis/job/analysis.h"

namespace trainprof {

// "1.2 to 3.4 ms/step"; loops of tiny steps have theirs in microseconds.
std::string GainText(const RankAnalysis& rank, const Gain& gain);

// ", 0.3 ms/step beside those above": where findings before this one give a part of it.
std::string FurtherText(const RankAnalysis& rank, const Gain& gain);

// "most of it once in 5 steps, 8.0 ms each; the median step gains 0.0 ms": where few steps hold it, else "".
std::string SpreadText(const Gain& gain);

// How well the run is understood that gains are replayed on; a line.
std::string ReplayLine(const RankAnalysis& rank);

}  // namespace trainprof
