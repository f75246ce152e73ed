// When steps began and ended on the devices, by brute force: the law of
// analysis/steps/device_time.h, of traces without recording gaps. O(operations^2 * steps).
#pragma once

#include <vector>

#include "trace/tables/trace.h"

namespace trainprof {

// `spans`: the steps', in time order. The spans themselves where the host's clock tells.
std::vector<Interval> DeviceTimesByBruteForce(const Trace& trace,
                                              const std::vector<Interval>& spans);

// Of the streams' next operations always that which began first; of several that which was asked for first, then that
// which ended first, then the one that stands first.
std::vector<size_t> OpsInOrderByBruteForce(const Trace& trace, DeviceId device);

// From the first to the last operation of a device that trains; the trace's extent where there is
// none.
Interval DeviceExtentByBruteForce(const Trace& trace);

}  // namespace trainprof
