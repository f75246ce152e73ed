// Random programs of a host thread and its streams, run by a simulator that knows how long everything
// takes: their traces are true, and so is what they would take without some of what they do.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/support/random_trace.h"
#include "trace/tables/trace.h"

namespace trainprof {

enum class Does : uint8_t {
  kWork,     // the host computes
  kLaunch,   // a kernel
  kCopyIn,   // an asynchronous copy to the device
  kCopyOut,  // a copy to the host that the host waits for
  kSyncStream,
  kSyncDevice,
  kRecordEvent,  // of the stream
  kWaitEvent,    // the stream waits for the event recorded last on `other`
  kInput,        // waits for the loader
};

struct Action {
  Does does = Does::kWork;
  int stream = 0;
  int other = 0;
  int64_t ns = 0;
};

struct RandomProgram {
  int streams = 1;
  std::vector<std::vector<Action>> steps;
};

struct Tweak {
  bool waits = true;   // host waits for the device
  bool inputs = true;  // the loader takes time
  bool events = true;  // streams wait for events
};

struct Simulation {
  Trace trace;
};

// What everything takes that no action says, ns.
inline constexpr int64_t kCallNs = 4000;
inline constexpr int64_t kLatencyNs = 6000;  // from a call's begin to its operation's
inline constexpr int64_t kGapNs = 1000;      // between operations that wait for each other
inline constexpr int64_t kWakeNs = 3000;

RandomProgram DrawProgram(Random& random);
Simulation Simulate(const RandomProgram& program, const Tweak& tweak = {});

}  // namespace trainprof
