// Several ranks in one Chrome trace: see rank_namespace.h for how they are told apart.
#pragma once

#include <string>

#include "trace/formats/exporter.h"

namespace trainprof {

// Visits the ranks twice, for what stands before the events and for the events, and holds one
// rank's trace at a time beside some kilobytes a rank. An error when the second visit finds other
// ranks.
Result<MergedRanks> MergeChrome(const VisitRanks& ranks, const std::string& path,
                                const ExportOptions& options);

}  // namespace trainprof
