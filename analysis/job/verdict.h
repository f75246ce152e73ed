// The one sentence that comes first everywhere.
#pragma once

#include <string>

#include "analysis/job/job.h"

namespace trainprof {

// "median step 176.3 ms, mean 174.9 ms; GPU busy 56.0 %; biggest loss: GPU idle, input wait,
// 58.7 ms/step (34 % of the mean)".
std::string Verdict(const RankAnalysis& rank);

// The slowest rank's, how long others wait for it, and why it comes late, where that was recorded: "...;
// other ranks wait for it, up to 158.2 ms/step, in 38 of 40 steps: input wait takes 160.1 ms a step
// longer than on the middle one of the others".
std::string JobVerdict(const JobAnalysis& job);

}  // namespace trainprof
