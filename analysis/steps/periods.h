// Steps that nobody named, from the device's work: a loop does the same operations again and again.
// So does a model with its layers; only what must be an iteration of the loop is taken for one.
#pragma once

#include <vector>

#include "analysis/steps/device_order.h"
#include "trace/tables/trace.h"

namespace trainprof {

// The operation that recurs once a period on the busiest device, each time; empty where there is no
// such thing. A period is an iteration where
//  - it recurs kMinRepetitions times and more, nearly all of it each time,
//  - what recurs is most of what the device did, and lasts for most of the time in which it did any,
//  - nearly every one has what a layer has not: a copy between host and device, a wait of the host,
//    or an optimizer's kernel; and the host launched each anew: layers within one launch of a graph
//    are none.
// O(operations) for each of at most kMaxCandidates names. Can be cancelled.
std::vector<Row> PeriodicOps(const Trace& trace, DeviceOrder& order);

// Three equal distances are no accident.
inline constexpr size_t kMinRepetitions = 4;

}  // namespace trainprof
