// How long things usually take on a device, learnt from what waited for nothing else; and what its streams
// were asked to wait for.
#pragma once

#include <array>
#include <vector>

#include "analysis/graph/streams.h"

namespace trainprof {

// A stream was asked to wait for an event, as the graph needs it: host/stream_waits.h tells of rows.
struct EventWait {
  TraceTime issued;
  uint32_t target = 0;  // the item of Streams that the event stands behind
  Row sync = kNoRow;
};

struct EventWaits {
  bool are_recorded = false;                      // else none is known of
  std::vector<bool> lacks_some;                   // by stream: of some waits nobody knows for what
  std::vector<std::vector<EventWait>> of_stream;  // by stream, by when it was asked to
};

// O(waits log items).
EventWaits FindEventWaits(const Trace& trace, const Streams& streams);

// Medians.
struct DeviceTimes {
  Duration gap;                    // between two operations of a queue
  std::array<Duration, 2> launch;  // from a call's begin to its operation's: kernels, copies
};

// By device; behind them those of none. O(items).
std::vector<DeviceTimes> LearnDeviceTimes(const Trace& trace, const Streams& streams,
                                          const EventWaits& waits);

}  // namespace trainprof
