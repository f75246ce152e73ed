// How long things usually take on a device, learnt from what waited for nothing else; and what its streams
// were asked to wait for.
#pragma once

#include <array>
#include <vector>

#include "analysis/graph/streams.h"

namespace trainprof {

// A stream was asked to wait for an event.
struct StreamWait {
  TraceTime issued;
  uint32_t target = 0;  // the item of Streams that the event stands behind
  Row sync = kNoRow;
};

struct StreamWaits {
  bool are_recorded = false;                       // else none is known of
  std::vector<std::vector<StreamWait>> of_stream;  // by stream, by when it was asked to
};

// O(waits log items).
StreamWaits FindStreamWaits(const Trace& trace, const Streams& streams);

// Medians.
struct DeviceTimes {
  Duration gap;                    // between two operations of a queue
  std::array<Duration, 2> launch;  // from a call's begin to its operation's: kernels, copies
};

// By device; behind them those of none. O(items).
std::vector<DeviceTimes> LearnDeviceTimes(const Trace& trace, const Streams& streams,
                                          const StreamWaits& waits);

}  // namespace trainprof
