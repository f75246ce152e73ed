// The smallest traces that show one habit each, with what is true about them: why the device was idle, and what
// the fix would give. Made by hand, as data: an engine is held against all of them (minimal_traces_test.cpp).
#pragma once

#include <ostream>
#include <string_view>
#include <vector>

namespace trainprof::testing {

// Idle time of a device, in us a step. Several names, with '|' between them, where more than one class says the
// truth. What a trace does not list must be near 0.
struct TrueIdle {
  int64_t device = 0;
  std::string_view classes;
  double us = 0;
};

struct MinimalTrace {
  std::string_view name;
  std::string_view shows;  // what it is about
  std::string_view script;
  std::vector<TrueIdle> idle;
  // Rules, with '|' between them, one of which has to find it; "": no rule may claim anything.
  // "?": the trace is about classes alone.
  std::string_view rules = "?";
  double gain_us = 0;  // a step; within [low, high] of that finding
  // The device's rows lie a step behind their launches: what is idle before the first one is nobody's loss.
  bool is_ahead = false;

  friend void PrintTo(const MinimalTrace& trace, std::ostream* out) { *out << trace.name; }
};

// The classes by what they mean, so that another name for one is one line here.
inline constexpr std::string_view kInputWait = "idle_input_wait";
inline constexpr std::string_view kDrain = "idle_sync_drain";
inline constexpr std::string_view kAllocation = "idle_allocation";
inline constexpr std::string_view kLaunchBound = "idle_launch_bound";
inline constexpr std::string_view kHostWork = "idle_host_work|idle_python";
inline constexpr std::string_view kOtherDevice = "idle_other_device";
inline constexpr std::string_view kHostFunction = "idle_host_function";
inline constexpr std::string_view kForCollective = "idle_collective";
// The host did something that nothing names.
inline constexpr std::string_view kNothingNamed = "idle_unknown|idle_host_work";
// Operators are the host's work, named, or a host that launches too slowly.
inline constexpr std::string_view kOperators = "idle_launch_bound|idle_host_work";
// The host was on its way to the call that ends the gap, or in it: no earlier sync is to blame.
inline constexpr std::string_view kIssuing = "idle_launch_bound|idle_dependency|idle_copy_staging";

std::vector<MinimalTrace> MinimalTracesOfWaits();
std::vector<MinimalTrace> MinimalTracesOfHosts();

inline std::vector<MinimalTrace> MinimalTraces() {
  std::vector<MinimalTrace> all = MinimalTracesOfWaits();
  const std::vector<MinimalTrace> hosts = MinimalTracesOfHosts();
  all.insert(all.end(), hosts.begin(), hosts.end());
  return all;
}

}  // namespace trainprof::testing
