// What devices may have done without a row, by brute force: the twin of
// analysis/account/missing_work.h, for traces of one process without captured graphs. O(calls^2 *
// operations).
#pragma once

#include <cstdint>
#include <vector>

#include "trace/tables/trace.h"

namespace trainprof {

// What the device may have done unseen, and the thread that asked for it; kNoTrack: several.
struct Unseen {
  int64_t begin = 0;
  int64_t end = 0;
  TrackId thread = kNoTrack;
};

// Sorted; what touches is one.
std::vector<Unseen> UnseenOn(const Trace& trace, DeviceId device);

}  // namespace trainprof
