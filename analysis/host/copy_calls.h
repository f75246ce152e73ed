// Copies and memsets with the calls that asked for them, and which of these made their thread wait;
// and which threads' waits can hold the training up.
#pragma once

#include <vector>

#include "analysis/steps/steps.h"
#include "trace/tables/trace.h"

namespace trainprof {

struct CopyCall {
  Row op = kNoRow;    // of device_ops
  Row call = kNoRow;  // of api
  Row sync = kNoRow;  // the synchronisation right behind it that waits for it; of the host's copies
  Row waiting = kNoRow;  // of the two the one that took longer: what a stack was taken of
  Interval wait;         // from the call's begin to the end of the last that waited
  Duration blocked;      // what the two took; 0 where neither waited for the device

  bool Waits() const { return blocked.ns > 0; }
};

// Those whose call lies in the window, in the order of device_ops. A copy without a recorded call is
// none of them. `blocking`: FindBlockingCalls. O(device_ops).
std::vector<CopyCall> FindCopyCalls(const Trace& trace, const IntervalSet& window,
                                    const std::vector<bool>& blocking);

// Whether copies from the host say what memory they read; true where there are none. ROCm's do not. O(device_ops).
bool TellsHostMemory(const Trace& trace);

// By track: the thread that steps, and those that launch kernels within the window. Of any other
// thread, a logger's or a prefetcher's, nobody waits for its waits. O(api).
std::vector<bool> FindFeeders(const Trace& trace, const Steps& steps);

}  // namespace trainprof
