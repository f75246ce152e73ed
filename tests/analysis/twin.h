// The time accounts again, by brute force: an implementation of the law (analysis/account/idle.h,
// analysis/account/account.h) that shares no code with analysis/ but the graph, which has twins of its own
// (graph_test.cpp). It cuts the trace at every begin
// and end into cells within which nothing changes, and asks for each cell which events cover it.
// O(cells * events), so for small traces only.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "analysis/account/account.h"
#include "trace/tables/trace.h"

namespace trainprof {

struct TwinDevice {
  DeviceId device = kNoDevice;
  std::array<int64_t, kDeviceClasses> class_ns{};  // within the device's window
  int64_t busy_ns = 0;                             // within that, as the two below
  int64_t idle_ns = 0;
};

struct TwinAccounts {
  int64_t window_ns = 0;
  int64_t device_window_ns = 0;
  std::vector<TwinDevice> devices;  // those that have operations, in the order of trace.devices
  std::array<int64_t, kHostClasses> host_ns{};
};

// `step_ranges`: the steps' own ranges, in time order; empty: the window is the whole trace.
// `graph`: what waited for what. `stepping`: the thread that steps, or kNoTrack. `on_device`: the ranges are in the device's time.
TwinAccounts AccountByBruteForce(const Trace& trace, const Graph& graph, TrackId stepping,
                                 const std::vector<Interval>& step_ranges, bool on_device = false);

}  // namespace trainprof
