#include "tests/virtual_gpu/model/engine.h"

#include <algorithm>
#include <limits>

namespace vgpu {

int64_t Engine::Reserve(int64_t ready_ns, int64_t duration_ns, int64_t now_ns) {
  Slot* best_slot = nullptr;
  size_t best_position = 0;
  int64_t best_begin = std::numeric_limits<int64_t>::max();
  for (Slot& slot : slots_) {
    Forget(slot, now_ns);
    int64_t begin = ready_ns;
    size_t position = slot.size();
    if (!slot.empty() && slot.back().end_ns > ready_ns) {
      for (position = 0; position < slot.size(); ++position) {
        if (begin + duration_ns <= slot[position].begin_ns) break;
        begin = std::max(begin, slot[position].end_ns);
      }
    }
    if (begin < best_begin) {
      best_slot = &slot;
      best_position = position;
      best_begin = begin;
    }
    if (begin == ready_ns) break;
  }
  Insert(*best_slot, best_position, best_begin, best_begin + duration_ns);
  return best_begin;
}

void Engine::Insert(Slot& slot, size_t position, int64_t begin_ns, int64_t end_ns) {
  if (position > 0 && slot[position - 1].end_ns == begin_ns) {
    slot[position - 1].end_ns = end_ns;
  } else {
    slot.insert(slot.begin() + static_cast<ptrdiff_t>(position), {begin_ns, end_ns});
  }
}

void Engine::Forget(Slot& slot, int64_t now_ns) {
  while (!slot.empty() && slot.front().end_ns <= now_ns) {
    forgotten_busy_ns_ += slot.front().end_ns - slot.front().begin_ns;
    slot.pop_front();
  }
}

int64_t Engine::BusyNs(int64_t now_ns) const {
  int64_t busy = forgotten_busy_ns_;
  for (const Slot& slot : slots_) {
    for (const Interval& interval : slot) {
      busy += std::max<int64_t>(0, std::min(interval.end_ns, now_ns) - interval.begin_ns);
    }
  }
  return busy;
}

}  // namespace vgpu
