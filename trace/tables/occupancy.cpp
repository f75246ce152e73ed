// Source of the rules and of the table: cuda_occupancy.h of the CUDA toolkit (11.8 to 13.0), and
// "Technical Specifications per Compute Capability" in the CUDA C++ Programming Guide.
#include "trace/tables/occupancy.h"

#include <algorithm>

namespace trainprof {
namespace {

constexpr int64_t kWarpThreads = 32;
// Registers are given to a warp in units of this many, since compute capability 3.0.
constexpr int64_t kRegisterUnit = 256;

// How an architecture hands out what its multiprocessor has. The last row that is not newer than
// the device holds.
struct Architecture {
  int32_t major;
  int32_t minor;
  int64_t partitions;           // of the register file; each warp lives in one
  int64_t shared_unit;          // bytes
  int64_t shared_system_bytes;  // taken by the system in each block
};
constexpr Architecture kArchitectures[] = {
    {3, 0, 4, 256, 0},     // Kepler, Maxwell
    {6, 0, 2, 256, 0},     // Pascal: P100
    {6, 1, 4, 256, 0},     // Pascal: others; Volta, Turing
    {8, 0, 4, 128, 1024},  // Ampere and later
};

const Architecture& ArchitectureOf(const MultiprocessorLimits& limits) {
  const Architecture* found = &kArchitectures[0];
  for (const Architecture& row : kArchitectures) {
    const bool newer = row.major > limits.compute_major ||
                       (row.major == limits.compute_major && row.minor > limits.compute_minor);
    if (!newer) found = &row;
  }
  return *found;
}

int64_t RoundUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

// Of a device whose limits were not recorded; 0: not known.
int64_t WarpsOf(int32_t major, int32_t minor) {
  if (major < 3) return 0;
  if (major == 7 && minor == 5) return 32;
  if ((major == 8 && minor != 0) || major == 11 || major == 12) return 48;
  return 64;
}

}  // namespace

int64_t BlocksPerMultiprocessor(const MultiprocessorLimits& limits, const BlockNeeds& needs) {
  if (limits.warps <= 0 || limits.blocks <= 0 || limits.registers <= 0 || needs.threads <= 0) {
    return 0;
  }
  const Architecture& arch = ArchitectureOf(limits);
  const int64_t warps = RoundUp(needs.threads, kWarpThreads) / kWarpThreads;
  int64_t blocks = std::min(limits.blocks, limits.warps / warps);
  if (needs.registers_per_thread > 0) {
    const int64_t per_warp = RoundUp(needs.registers_per_thread * kWarpThreads, kRegisterUnit);
    const int64_t resident = limits.registers / arch.partitions / per_warp * arch.partitions;
    const bool fits = per_warp * RoundUp(warps, arch.partitions) <= limits.registers;
    blocks = std::min(blocks, fits ? resident / warps : 0);
  }
  const int64_t shared = RoundUp(
      std::max<int64_t>(needs.shared_bytes, 0) + arch.shared_system_bytes, arch.shared_unit);
  if (shared > 0 && limits.shared_bytes > 0)
    blocks = std::min(blocks, limits.shared_bytes / shared);
  return blocks;
}

double TheoreticalOccupancy(const MultiprocessorLimits& limits, const BlockNeeds& needs) {
  const int64_t blocks = BlocksPerMultiprocessor(limits, needs);
  if (blocks == 0) return 0;
  const int64_t warps = RoundUp(needs.threads, kWarpThreads) / kWarpThreads;
  return static_cast<double>(blocks * warps) / static_cast<double>(limits.warps);
}

double ShareOfDevice(const MultiprocessorLimits& compute, int64_t multiprocessors, double occupancy,
                     int64_t blocks, int64_t threads_per_block) {
  const int64_t most =
      compute.warps > 0 ? compute.warps : WarpsOf(compute.compute_major, compute.compute_minor);
  if (most == 0 || multiprocessors <= 0 || occupancy <= 0 || threads_per_block <= 0) return 0;
  const int64_t warps = RoundUp(threads_per_block, kWarpThreads) / kWarpThreads;
  const double resident = occupancy * static_cast<double>(most) / static_cast<double>(warps);
  return static_cast<double>(blocks) / (resident * static_cast<double>(multiprocessors));
}

}  // namespace trainprof
