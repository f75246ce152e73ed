// Why a device was idle: splits each gap between its operations by what the next one waited for.
#pragma once

#include <span>
#include <vector>

#include "analysis/account/account.h"
#include "analysis/account/missing_work.h"
#include "analysis/graph/waited_for.h"
#include "analysis/host/cpu_use.h"

namespace trainprof {

// The law. A gap [g0, g1) is ended by an operation X: the first that begins there, or behind it (of the next
// kMostSkipped), for which the thread that steps waits (WaitedFor::IsNeeded); where there is none, the one at
// g1. Each nanosecond of the gap goes to what X waited for then, on the way back along the graph's edges
// (graph/waited_for.h):
//  - an operation of another device: other device; a host function in a stream: host function;
//  - the moment between two queued operations: hand-over;
//  - the host in the call that issued X, as long as X may take to begin after it: rest; unknown where that
//    call set something up; launch-bound for copies, which it prepares. What is later, unknown;
//  - nothing recorded, though X was queued: unrecorded where a graph was launched before, nodes of which
//    may be missing. Else unknown;
//  - a thread T of the host: input wait while the stepping thread waited for input. Else what T was doing
//    (host/timeline.h): input wait, allocation, I/O; for kRankPause, other ranks; for 1 ms, Python; for
//    1 ms (kHostPause where it names no phase), inside a range of the user's that began behind T's last
//    call or in the gap and ended in its step, or inside one operator that issues nothing for
//    kOperatorStretch, host work. For less than that, and inside calls: rest. With nothing recorded what
//    the stepping thread was doing; for 1 ms, host work where looks at the thread's use of the CPU show that
//    it computed, else unknown. Such a stretch of Python, of a range, of nothing, may begin before the gap and
//    end behind it: who is silent for so long does not issue slowly. A wait of more than kSyncReturn for a
//    device that is idle: unknown. Of host work, Python and what is unknown, preempted is what looks show that
//    the thread was;
//  - X has no recorded launch: unknown.
// The rest is launch-bound. But where the host waited for a device before, in a call of length B > kHandOver, it would
// have come B earlier without: the rest is sync drain until the device has been idle for B since it ran
// dry, be it in several gaps. Unknown where work may be missing in between.
//
// No operation ends the gap (end of the trace, recording off): what the stepping thread was doing, else
// unknown.
// While the device may have done what the trace does not show (analysis/account/missing_work.h):
// unrecorded. What is left of such a gap, until X's launch began, is what T was doing (input wait,
// allocation, I/O, Python, other ranks, the user's range, preempted) where X and the missing launches are
// the same thread's; unrecorded if that launch returned before g0; else unknown. X is what ends the gap.
// Less evidence names no cause that more would not name.
// The parts cover the gap exactly.
class IdleSplitter {
 public:
  // As many operations for which nobody waits stand between a gap and the next that matters, at most.
  static constexpr size_t kMostSkipped = 64;

  // Keeps references: all but `missing`, LaunchesWithoutRow(), must outlive it.
  IdleSplitter(const Trace& trace, const Steps& steps, const ThreadActivities& activities,
               const Graph& graph, const std::vector<Row>& missing);

  // Adds the parts of the complement of `account.busy` (within the extent of the trace and of the window,
  // less recording gaps outside of that) to its `idle` and `drains`. `ops`: rows of the device's operations
  // in the order of their begin. O(n log n).
  void Split(std::span<const uint32_t> ops, DeviceAccount& account) const;

  const MissingWork& missing() const { return missing_; }

 private:
  class OfDevice;
  const Trace& trace_;
  const Steps& steps_;
  const ThreadActivities& activities_;
  const MissingWork missing_;
  const WaitedFor waited_for_;
  IntervalSet input_waits_;  // of the stepping thread
};

}  // namespace trainprof
