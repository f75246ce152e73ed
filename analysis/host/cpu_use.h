// What threads that step used of the CPU, as far as looks at them tell: whether one computed, waited, or was
// preempted while nothing else says what it did.
#pragma once

#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "analysis/host/timeline.h"

namespace trainprof {

// Between two looks, what a thread did not use of the CPU.
struct CpuUse {
  Duration waited;  // at most: it gave the CPU up, beyond what its recorded waits for a device took
  Duration preempted;  // it did not, all that time
  // For so long nothing recorded says what it did, be it in several pieces.
  Duration silent;

  bool operator==(const CpuUse&) const = default;
};

// In time order. `activity`: the thread's own. O(looks + its segments).
Timeline<CpuUse> CpuUseOf(const Trace& trace, TrackId thread, const Timeline<HostMoment>& activity);

// What threads of the host were doing, made once for all who ask.
class ThreadActivities {
 public:
  struct Thread {
    Timeline<HostMoment> activity;
    Timeline<CpuUse> cpu;
  };

  // Keeps references.
  ThreadActivities(const Trace& trace, const std::vector<bool>& blocking_calls)
      : trace_(trace), blocking_(blocking_calls) {}

  // O(the thread's events) when it is asked for first; several threads may ask, and make those of several at once.
  const Thread& Of(TrackId thread) const;
  // Of those that launched what devices did: for them somebody will ask, as a rule. O(operations + their events).
  void MakeThoseOfLaunches() const;

 private:
  struct Made {
    std::once_flag once;
    Thread thread;
  };

  const Trace& trace_;
  const std::vector<bool>& blocking_;
  mutable std::mutex mutex_;  // of threads_
  mutable std::unordered_map<uint32_t, Made> threads_;
};

// Those that enclose it together, without holes; none where no looks do. O(log looks).
std::span<const Segment<CpuUse>> UseDuring(const Timeline<CpuUse>& uses, const Interval& time);

CpuUse SumOf(std::span<const Segment<CpuUse>> uses);

// Whether looks that enclose it show that the thread never gave the CPU up meanwhile: so nobody woke it. False where
// none do. O(log looks + those within).
bool NeverWaited(const CpuTimeTable& looks, TrackId thread, const Interval& time);

// Whether the thread computed for most of that time, or of all silence between the looks.
bool Computed(const CpuUse& use, Duration time);

// For how long within `window` the thread could have run and another one had its processor, as far as looks
// tell: that of looks between which it waited as well is not known. O(looks log window).
Duration PreemptedWithin(const Trace& trace, TrackId thread, const IntervalSet& window);

// When nothing shows that a thread worked: for at least `least` no event that began there covers it (ranges
// that hold `enclosing` or longer hold anything), and no look shows that it computed.
IntervalSet SilenceOf(const Trace& trace, const ThreadActivities::Thread& thread, Duration least,
                      Duration enclosing);

}  // namespace trainprof
