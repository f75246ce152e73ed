// The time accounts: every nanosecond of the steps belongs to exactly one class, for each device
// and for the thread that steps. The classes of one account sum to the window exactly, in
// nanoseconds.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "analysis/graph/graph.h"
#include "analysis/graph/latencies.h"
#include "analysis/host/cpu_use.h"
#include "analysis/host/packed_timeline.h"
#include "analysis/steps/steps.h"

namespace trainprof {

// Where a device's time went. Overlaps go to the first of compute, communication, copy.
enum class DeviceClass : uint8_t {
  kCompute,               // at least one kernel that is no communication ran
  kExposedCommunication,  // only communication kernels (and perhaps copies) ran
  kExposedCopy,           // only copies and memsets ran
  // Nothing ran, because ...
  kIdleInputWait,    // the host waited for the data loader
  kIdleSyncDrain,    // the host had just waited for the device and had to start feeding it again
  kIdleAllocation,   // the host was inside cudaMalloc, cudaFree, ...
  kIdleLaunchBound,  // the host issued work more slowly than the device did it
  kIdlePython,  // the host ran Python for long without an operator: garbage collection, own code
  kIdleIo,      // the host saved or logged
  kIdleDependency,    // work was queued; the device needed a moment to go from one to the next
  kIdleOtherDevice,   // the next operation waited for another device's: a pipeline's bubble
  kIdleHostFunction,  // ... for a host function in its stream (cudaLaunchHostFunc)
  kIdleHostWork,  // the host computed something else: in the user's own range, an operator, silently
  kIdlePreempted,  // the host's thread could have run, and another one ran on its core
  // for other ranks, while no operation ran, or only collectives that waited for another device of
  // the process (collective_waits.h)
  kIdleCollective,
  kIdleUnrecorded,  // the trace misses device work: a launch's row, or nodes of a graph
  kIdleUnknown,     // nothing recorded explains it
};
inline constexpr size_t kDeviceClasses = 17;  // at most 32: PackedTimeline

std::string_view Name(DeviceClass c);  // "compute", "idle_input_wait", ...
// For people: one word a cause, the same in verdict, report, findings and timeline.
std::string_view Title(DeviceClass c);    // "input wait"
std::string_view Meaning(DeviceClass c);  // what the word stands for; "" where it says it
constexpr bool IsIdle(DeviceClass c) { return c >= DeviceClass::kIdleInputWait; }

// What the stepping thread's time went to, by phase.
enum class HostClass : uint8_t {
  kInputWait,
  kCopy,
  kForward,
  kBackward,
  kOptimizer,
  kRankWait,  // inside a collective: for other ranks, and for the exchange itself
  kOther
};
inline constexpr size_t kHostClasses = 7;

std::string_view Name(HostClass c);
std::string_view Title(HostClass c);
HostClass ClassOf(Phase phase);

// A stretch of idle time that a call cost in which the host waited for a device.
struct Drain {
  Interval interval;
  Row wait = kNoRow;  // of api, the outermost call
};

struct DeviceAccount {
  DeviceId device = kNoDevice;
  std::array<Duration, kDeviceClasses> total{};  // sums to the steps' device_window
  // Union of the device's operations, whole trace, less what is idle_collective.
  IntervalSet busy;
  IntervalSet exposed_communication;  // of `busy`; what is in neither is compute
  IntervalSet exposed_copy;
  PackedTimeline<DeviceClass> idle;  // the idle time, whole trace
  std::vector<Drain> drains;         // of it, what is idle_sync_drain
  Duration missing_rows;  // of the idle time within that: the part that MissingWork names
  size_t ops_in_window = 0;
  size_t ops_without_launch = 0;  // of those: who asked for them, and when, is not recorded

  Duration Of(DeviceClass c) const { return total[static_cast<size_t>(c)]; }
  // What a part of the window went to, by class: Step::device, say. Sums to its length.
  // O(log n + intervals there).
  std::array<Duration, kDeviceClasses> Within(const Interval& part) const;
  Duration BusyWithin(const IntervalSet& window) const { return busy.TotalWithin(window); }
};

struct HostAccount {
  std::array<Duration, kHostClasses> total{};  // sums to window.Total()
  Timeline<Phase> phases;                      // of the stepping thread, whole trace
  // Where nothing named a phase: the thread whose samples tell of them (sampled_phases.h), to a
  // hundredth of a second or so. kNoTrack elsewhere.
  TrackId sampled_thread = kNoTrack;
  IntervalSet copies;    // within the window, where no phase is named
  IntervalSet backward;  // the same, on autograd's own threads
  // The same, from the end of torch's loader to the next backward pass, less the user's own ranges.
  // Empty where ranges or modules name the forward pass.
  IntervalSet forward;

  // The times that no range of the stepping thread names and that are known all the same.
  std::array<std::pair<HostClass, const IntervalSet*>, 3> Unnamed() const {
    return {{{HostClass::kCopy, &copies},
             {HostClass::kBackward, &backward},
             {HostClass::kForward, &forward}}};
  }
  // When the stepping thread waited for its input, in the whole trace.
  IntervalSet InputWait() const;
  Duration Of(HostClass c) const { return total[static_cast<size_t>(c)]; }
  // As for a device.
  std::array<Duration, kHostClasses> Within(const Interval& part) const;
};

// How much an idle gap may be explained by, and from where the numbers come.
//
// Python without any operator for this long is not the interpreter's cost between two launches.
inline constexpr Duration kPythonStretch = Milliseconds(1);
// A host thread without any event for this long may be doing anything; launch-bound means that the host
// kept issuing, too slowly. In the traces that calibrated this, gaps that end with a late launch are below
// 1 ms, the ones behind a loader's wait apart.
inline constexpr Duration kSilentStretch = Milliseconds(1);
// A collective that takes less than that only issues its kernels.
inline constexpr Duration kRankPause = kThreadPause;

// One account a device that has operations in the trace, in the order of trace.devices.
// O(n log n) in the device's operations.
std::vector<DeviceAccount> AccountDevices(const Trace& trace, const Steps& steps,
                                          const ThreadActivities& activities, const Graph& graph,
                                          DeviceRows& rows);
std::vector<DeviceAccount> AccountDevices(const Trace& trace, const Steps& steps);
HostAccount AccountHost(const Trace& trace, const Steps& steps);

}  // namespace trainprof
