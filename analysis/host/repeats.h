// What steps launch again and again: the candidate for a CUDA graph, and what stands in its way.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/steps/steps.h"
#include "trace/tables/trace.h"

namespace trainprof {

// A run of consecutive tokens: sequences[sequence][begin, begin + length).
struct CommonRun {
  size_t sequence = 0;
  size_t begin = 0;
  size_t length = 0;
  size_t held_by = 0;  // so many sequences hold it
};

// The longest run that at least `share` of the sequences hold, the first of equally long ones; of
// length 0 where there is none, and of `bound` where longer ones are not asked for. Runs are compared by a hash of 61
// bits. O(n log n).
CommonRun LongestCommonRun(std::span<const std::vector<uint64_t>> sequences, double share,
                           size_t bound = SIZE_MAX);

// Of one device, over at most kMostRepeatSteps steps.
struct RepeatedLaunches {
  size_t steps = 0;              // looked at
  double launches_per_step = 0;  // kernels, memsets and copies within the device, outside of graphs
  double graphs_per_step = 0;    // launches of whole graphs
  CommonRun same_kernels;        // by their names
  CommonRun same_shapes;         // and by grid and block
  bool shapes_known = false;
  CommonRun capturable;  // the same, with nothing in between that a capture does not take
  // Rows of api within these steps, on threads that launch: waits for the device, allocations that are
  // not ordered by a stream, copies from and to the host.
  std::vector<Row> obstacles;
};

inline constexpr size_t kMostRepeatSteps = 32;
// In all, in these steps. Fewer steps are looked at where they launch more.
inline constexpr size_t kMostRepeatLaunches = 1 << 16;
// What all but one of 20 steps hold repeats: the odd one logs, or saves.
inline constexpr double kRepeatShare = 0.95;

// `blocking`: FindBlockingCalls. O(n log n) in the calls and operations of those steps, after O(n)
// to find them.
RepeatedLaunches FindRepeats(const Trace& trace, const Steps& steps, DeviceId device,
                             const std::vector<bool>& blocking);

}  // namespace trainprof
