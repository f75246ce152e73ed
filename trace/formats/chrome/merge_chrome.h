// Several ranks in one Chrome trace: see rank_namespace.h for how they are told apart. Before the
// events stands what split_ranks.h needs to give them back:
//
//   "trainprofRanks": {"version": 1, "aligned": true, "ranks": [
//     {"rank": 3, "kind": "kineto" or "chrome",
//      "shiftNanoseconds": what was added to the rank's own times,
//      "processes": [[pid in this file, own pid, own name, own labels, own sort index], ...],
//      "members": the top-level members of a file of this rank alone, but for its events}]}
//
// A pid that only events without a place have stands there without names.
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
