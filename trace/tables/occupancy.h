// Theoretical occupancy: the warps of a kernel that may live on a multiprocessor at once, as a
// share of what the multiprocessor can hold. The rules are those of NVIDIA's occupancy calculator.
#pragma once

#include <cstdint>

namespace trainprof {

// What one multiprocessor of a device can hold.
struct MultiprocessorLimits {
  int32_t compute_major = 0;
  int32_t compute_minor = 0;
  int64_t warps = 0;
  int64_t blocks = 0;
  int64_t registers = 0;
  int64_t shared_bytes = 0;
};

// What one block of a kernel needs.
struct BlockNeeds {
  int64_t threads = 0;
  int64_t registers_per_thread = 0;
  int64_t shared_bytes = 0;  // static and dynamic
};

// Blocks that a multiprocessor can hold at once; 0: the block does not fit, or a limit is unknown.
int64_t BlocksPerMultiprocessor(const MultiprocessorLimits& limits, const BlockNeeds& needs);

// 0..1; 0 as above.
double TheoreticalOccupancy(const MultiprocessorLimits& limits, const BlockNeeds& needs);

// What share of a device a kernel's blocks take when each multiprocessor holds as many as fit; above 1
// they come in waves. `occupancy` as above. 0: something is not known.
double ShareOfDevice(const MultiprocessorLimits& compute, int64_t multiprocessors, double occupancy,
                     int64_t blocks, int64_t threads_per_block);

}  // namespace trainprof
