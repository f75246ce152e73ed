// When an engine of the device (copy engine, room for kernels) is free: reservations of time, first
// fit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace vgpu {

class Engine {
 public:
  // slots: how much can run at once, at least 1.
  explicit Engine(int slots) : slots_(slots) {}

  // Takes the earliest time >= ready_ns that is free for duration_ns, and returns where it begins.
  // Work that ended before now_ns is forgotten. Work may slip in before work that was reserved
  // earlier and starts later: streams do not wait for each other in an engine's queue.
  int64_t Reserve(int64_t ready_ns, int64_t duration_ns, int64_t now_ns);

  // Nanoseconds that any slot was reserved up to now_ns, the sum over all slots.
  int64_t BusyNs(int64_t now_ns) const;

 private:
  struct Interval {
    int64_t begin_ns;
    int64_t end_ns;
  };
  using Slot = std::deque<Interval>;  // sorted, disjoint; touching ones are merged

  static void Insert(Slot& slot, size_t position, int64_t begin_ns, int64_t end_ns);
  void Forget(Slot& slot, int64_t now_ns);

  std::vector<Slot> slots_;
  int64_t forgotten_busy_ns_ = 0;
};

}  // namespace vgpu
