// The collectives that a rank took part in, as its trace shows them.
#pragma once

#include <string>
#include <vector>

#include "analysis/model.h"

namespace trainprof {

struct CollectiveCall {
  // Same of all ranks that took part: the trace's own number, else the place among the calls of its
  // Collectives, from 0.
  int64_t sequence = 0;
  Interval when;  // it arrives at `begin`
  // Of it, while the rank did nothing else: no kernel of another kind ran, or its stepping thread was
  // the one inside. 0 on another thread of the host, where that is not known.
  Duration exposed;

  bool operator==(const CollectiveCall&) const = default;
};

inline constexpr int64_t kHostCollectives = -1;  // Collectives::device of calls on the host

// Calls of one operation on one communicator.
struct Collectives {
  std::string communicator;  // "" where the trace does not say
  std::string members;       // the ranks in it, as the trace writes them: "[0, 1]"; may be ""
  std::string operation;     // "allreduce", else the kernel's name, or the range's
  int64_t device = 0;        // DeviceReport::id, or kHostCollectives
  bool numbered = false;     // the trace numbers all of them
  std::vector<CollectiveCall> calls;  // by begin

  bool operator==(const Collectives&) const = default;
};

// Communication kernels; where there are none, ranges of the host in which a thread was inside a
// collective: those of torch.distributed that our hooks write, and what torch.profiler shows of gloo. The
// outermost of a thread count; `c10d::wait` does not, since a rank that comes late to it keeps nobody
// waiting. In the order of their first calls. O(n log n) in the trace's events.
std::vector<Collectives> CollectivesOf(const RankModel& model);

}  // namespace trainprof
