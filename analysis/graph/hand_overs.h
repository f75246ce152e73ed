// Where a thread goes on behind what another thread did: autograd's threads, prefetchers, workers within
// the process. No file records it; it is inferred from times that keep their distance.
#pragma once

#include <unordered_map>

#include "analysis/graph/host_items.h"

namespace trainprof {

struct HandOver {
  uint32_t thread = 0;  // of HostItems::threads: the item behind which the other one goes on
  uint32_t item = 0;
  int64_t lag_ns =
      0;  // from its end to the other's begin; to its end, where that is a wait for input
};

// The law. A thread that paused for kThreadPause before an item (or waited for input so long) went on
// behind the last item of another thread that ended meanwhile (not while it was in a range that it had begun
// in its pause, and stayed in for kHostPause, nor where looks show that it never gave the CPU up), where the
// calls of those two names do so at least kLeastTimes, and the distances between them vary less (from the lower
// to the upper quartile) than a tenth of the median pause. Where that is no chance: it goes on within an eighth of the time (or
// kHostPause) for which the other thread then does nothing, which does nothing for so long hardly anywhere else than where some
// thread goes on like that. A logger that does something now and then hands over to nobody.
class HandOvers {
 public:
  HandOvers() = default;
  // O(items log items).
  HandOvers(const Trace& trace, const HostItems& items);

  // Null of an item that goes on by itself.
  const HandOver* Of(uint32_t thread, uint32_t item) const {
    const auto found = found_.find(Key(thread, item));
    return found == found_.end() ? nullptr : &found->second;
  }
  size_t size() const { return found_.size(); }

  static constexpr size_t kLeastTimes = 3;

 private:
  static uint64_t Key(uint32_t thread, uint32_t item) { return uint64_t{thread} << 32 | item; }

  std::unordered_map<uint64_t, HandOver> found_;
};

}  // namespace trainprof
