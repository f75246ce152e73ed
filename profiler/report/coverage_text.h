// What a verdict does not cover, in lines for people: the same words in the text report, on the end
// card and from the gate.
#pragma once

#include <string>
#include <vector>

#include "analysis/job/coverage.h"

namespace trainprof {

// "ranks 0 to 3, 7"; "" for a job of one rank, or for none.
std::string RanksText(const JobAnalysis& job, const std::vector<int64_t>& ranks);

// One line a reason: "records are lost or damaged: 2 x corrupt_chunk (rank 1)".
std::vector<std::string> DoubtLines(const JobAnalysis& job);

// One line a reason: "cpu-tensor, host-sync: the trace holds no device work (ranks 0 to 3)".
std::vector<std::string> NotCheckedLines(const JobAnalysis& job);

// "78.5 % of the time: GPU idle, launch-bound 40.2 %; communication 38.3 %"; "" where rules explain
// all that is lost.
std::string UncoveredText(const RankAnalysis& rank);

// One line a kind: "2 x corrupt_chunk [data_loss] ... (rank 1)".
std::vector<std::string> QualityLines(const JobAnalysis& job);

// What stands where there are no findings: never that all is well, but what was looked at.
std::string NoFindingsText(const JobAnalysis& job, const RankAnalysis& rank);

}  // namespace trainprof
