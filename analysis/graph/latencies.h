// How long it may take from a cause to its effect, and from where the numbers come. The graph says which
// of them explain a pause; what they do not explain is named as such.
#pragma once

#include <cstdint>

#include "trace/base/time.h"

namespace trainprof {

// Between two operations of a full queue the GPU needs a moment: 1-5 us on V100, A100 and H100 in
// the traces that calibrated this; 99 % stay under 20 us (also with 1 us rounding).
inline constexpr Duration kHandOver = Microseconds(20);
// A pageable host-to-device copy is staged through a pinned buffer before the device starts: the
// driver's buffers are below 4 MiB, filled at 4 GB/s or better.
inline constexpr int64_t kStagingBytes = 4 << 20;
inline constexpr int64_t kStagingBytesPerMicrosecond = 4000;
// An operation that begins later than this after its call began waited for something: on an idle stream half
// begin after 7 to 13 us, 99 % after 16 to 24, in traces of V100, A100 and H100 whose streams wait for no
// events.
inline constexpr Duration kLongestLaunch = Microseconds(200);
// What a call that waits does before it waits, where no other call of its name tells.
inline constexpr Duration kIssue = Microseconds(5);
// A host thread wakes from a sync within this time after its device went idle, on a busy machine too; and
// behind another thread that it waited for.
inline constexpr Duration kSyncReturn = Milliseconds(1);
// A host thread that gets on with its work is silent for less: 99 % of the pauses between operators and calls
// are below 171 us in the same traces and those of CPU runs.
inline constexpr Duration kHostPause = Microseconds(250);
// A thread that pauses for less than this does not wait for another one: to be woken takes as long.
inline constexpr Duration kThreadPause = Microseconds(60);

}  // namespace trainprof
