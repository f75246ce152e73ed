// What an allocator did: memory that was asked for or given back, and how much was held then.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "trace/base/ids.h"
#include "trace/tables/launch_config.h"

namespace trainprof {

enum class AllocationId : uint32_t {};  // index into Trace::allocations
inline constexpr AllocationId kNoAllocation{UINT32_MAX};

// What a total sums up.
enum class MemoryTotal : uint8_t {
  kAllocated,  // in use, of what the framework's allocator holds
  kReserved,   // of a device
  kHost,       // reserved on the host
};
inline constexpr size_t kMemoryTotals = 3;

// All in bytes. What is not known is kUnknown.
struct Allocation {
  static constexpr int64_t kUnknown = INT64_MIN;

  int64_t bytes = kUnknown;  // < 0: given back
  int64_t address = kUnknown;
  int64_t device_id = -1;                                                   // < 0: the host
  std::array<int64_t, kMemoryTotals> totals{kUnknown, kUnknown, kUnknown};  // by MemoryTotal
  int64_t pool_bytes = kUnknown;  // of the memory pool that it came from
  int64_t pool_used_bytes = kUnknown;
  StringId source = kEmptyString;  // the library that asked
  MemoryKind kind = MemoryKind::kUnknown;

  int64_t Total(MemoryTotal total) const { return totals[static_cast<size_t>(total)]; }
  bool operator==(const Allocation&) const = default;
};

}  // namespace trainprof
