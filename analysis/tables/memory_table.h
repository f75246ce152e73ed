// What the allocators reported: the largest blocks that were asked for, and how many there were.
#pragma once

#include <vector>

#include "trace/base/interval_set.h"
#include "trace/tables/trace.h"

namespace trainprof {

struct LargeAllocation {
  Row row = kNoRow;  // of trace.instants
  int64_t bytes = 0;
};

struct DeviceMemory {
  int64_t device_id = 0;  // as in SeriesId: < 0 for the host
  uint64_t allocations = 0;
  uint64_t releases = 0;
  int64_t allocated_bytes = 0;  // asked for in all
  int64_t largest_bytes = 0;

  bool operator==(const DeviceMemory&) const = default;
};

struct MemoryTable {
  std::vector<DeviceMemory> devices;  // by id
  std::vector<LargeAllocation>
      largest;  // largest first, the earlier of two; at most kMostAllocations
};
inline constexpr size_t kMostAllocations = 100;

// Of the allocations in the window. Can be cancelled. O(instants log devices).
MemoryTable MakeMemoryTable(const Trace& trace, const IntervalSet& window);

}  // namespace trainprof
