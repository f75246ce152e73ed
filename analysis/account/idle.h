// Why a device was idle: splits each gap between its operations by what the host was doing.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "analysis/account/account.h"
#include "analysis/account/missing_work.h"

namespace trainprof {

// The law. A gap [g0, g1) is ended by an operation X that call L issued on thread T.
//  - L returned before g0: X was queued. Up to kHandOver the device handed over
//    (dependency). Longer, and something held X back that the trace does not show
//    (unrecorded).
//  - Else, until L began, each nanosecond goes to what T was doing then (or the stepping
//    thread, while T had nothing recorded): input wait, allocation, I/O, long Python;
//    unknown for a call that sets something up. What that leaves unexplained is
//     - the drain of a sync in which T or the stepping thread was waiting just before g0
//       (at some moment of the 1 us before it, its end included: clocks are rounded),
//     - else launch-bound, but unknown if what no cause explains sums to kLaunchStretch.
//    From L's begin until it could have started X (its end; for copies their staging;
//    kHandOver more) the host was issuing it: the drain, or launch-bound, or unknown if L
//    is no copy and lasted kSetupCall (it loaded something). What is left is unrecorded if L
//    began before g0 and X is no copy to the device, else unknown.
//  - X has no recorded launch: unknown.
//  - No operation ends the gap (end of the trace, recording off): what the stepping thread
//    was doing, else unknown.
//  - While the device may have done what the trace does not show (analysis/account/missing_work.h):
//    unrecorded. What is left of such a gap, until L began, is input wait, allocation, I/O or
//    long Python where L and the missing launches are the same thread's and it was doing
//    that; unrecorded if L returned before g0; else unknown. Less evidence names no cause
//    that more would not name.
// The parts cover the gap exactly.
class IdleSplitter {
 public:
  // Keeps references: all must outlive it.
  IdleSplitter(const Trace& trace, const Steps& steps, const std::vector<bool>& blocking_calls);

  // `ops`: rows of the device's operations in the order of their begin; `busy`: their union. Covers
  // the complement of busy within the extent of the trace and of the window, less recording gaps
  // outside of that. O(n log n).
  std::vector<Segment<DeviceClass>> Split(DeviceId device, std::span<const uint32_t> ops,
                                          const IntervalSet& busy) const;

  const MissingWork& missing() const { return missing_; }

 private:
  struct Gap {
    Interval interval;
    Row op = kNoRow;  // that ended it
  };
  using Out = std::vector<Segment<DeviceClass>>;

  using Periods = std::span<const MissingWork::Period>;

  void SplitGap(const Gap& gap, Out& out) const;
  // A gap that the periods meet.
  void SplitAround(const Gap& gap, Periods missing, Out& out) const;
  void SplitLate(const Interval& gap, Row op, Out& out) const;
  // Splits host time before the launch (or to the end of the gap, when `rest` says so).
  void SplitHostTime(const Interval& part, TrackId thread, DeviceClass rest, Out& out) const;
  void SplitStepping(const Interval& part, DeviceClass rest, Out& out) const;
  // Was a thread inside a blocking call when the device ran dry at `t`?
  bool DrainAt(TraceTime t, TrackId thread) const;
  const Timeline<HostActivity>& TimelineOf(TrackId thread) const;

  const Trace& trace_;
  const Steps& steps_;
  const std::vector<bool>& blocking_;
  MissingWork missing_;
  // Filled lazily: only threads that launch need one.
  mutable std::unordered_map<uint32_t, Timeline<HostActivity>> timelines_;
};

}  // namespace trainprof
