// Steps that nobody named, from the device's work: a loop does the same operations again and again.
// So does a model with its layers; only what must be an iteration of the loop is taken for one.
#pragma once

#include <vector>

#include "analysis/steps/device_rows.h"
#include "trace/tables/trace.h"

namespace trainprof {

// The operation that recurs once a period on the busiest device, each time; empty where there is no
// such thing. A period is an iteration where
//  - it recurs kMinRepetitions times and more, three times where it is long, nearly all of it each time; of
//    several such the longest is taken,
//  - what recurs is most of what the device did, and lasts for most of the time in which it did any,
//  - the host launched nearly every one anew: layers within one launch of a graph are none;
//  - nearly every one has an optimizer's kernel; or a copy between host and device or a wait of the
//    host, and no kernel that does not recur comes soon behind the last one, as the head of a model comes
//    behind its layers, some of which do wait for the host (experts' routing); or it holds layers
//    itself, and nothing but it was recorded. Before the first one such kernels speak against it too, unless it
//    holds layers: a prefill comes before tokens, an embedding before layers.
// O(operations) for each of at most kMaxCandidates names. Can be cancelled.
std::vector<Row> PeriodicOps(const Trace& trace, DeviceRows& rows);

// Three equal distances are no accident.
inline constexpr size_t kMinRepetitions = 4;

}  // namespace trainprof
