// The ranks of a file that ExportMerged wrote, each as it was before.
#pragma once

#include <vector>

#include "trace/tables/trace.h"

namespace trainprof {

// One trace a rank, with its own ids, times, names and metadata: equal to what a file of that rank
// alone would give. A trace of any other file comes back as it is, alone. Where the file is
// damaged, what belongs to no rank is counted in the first rank's quality. O(rows); takes as much
// memory again as the trace.
std::vector<Trace> SplitRanks(Trace trace);

}  // namespace trainprof
