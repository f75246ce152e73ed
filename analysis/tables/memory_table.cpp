#include "analysis/tables/memory_table.h"

#include <algorithm>
#include <map>

#include "analysis/tables/name_table.h"
#include "trace/base/cancel.h"

namespace trainprof {
namespace {

void Add(DeviceMemory& device, int64_t bytes) {
  if (bytes < 0) {
    ++device.releases;
    return;
  }
  ++device.allocations;
  device.allocated_bytes += std::min(bytes, INT64_MAX - device.allocated_bytes);
  device.largest_bytes = std::max(device.largest_bytes, bytes);
}

}  // namespace

MemoryTable MakeMemoryTable(const Trace& trace, const IntervalSet& window) {
  MemoryTable table;
  if (trace.allocations.empty()) return table;
  const Cutter cutter(window);
  std::map<int64_t, DeviceMemory> devices;
  std::vector<LargeAllocation>& all = table.largest;
  const auto larger = [](const LargeAllocation& a, const LargeAllocation& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.row < b.row;
  };
  for (uint32_t row = 0; row < trace.instants.size(); ++row) {
    CancelPoint(row);
    Duration none;
    const Allocation* const allocation = trace.AllocationOf(Row{row});
    if (allocation == nullptr || allocation->bytes == Allocation::kUnknown) continue;
    if (!cutter.Cut(trace.instants.interval(Row{row}), &none)) continue;
    DeviceMemory& device = devices[allocation->device_id];
    device.device_id = allocation->device_id;
    Add(device, allocation->bytes);
    if (allocation->bytes <= 0) continue;
    all.push_back({Row{row}, allocation->bytes});
    if (all.size() < 2 * kMostAllocations) continue;
    std::sort(all.begin(), all.end(), larger);
    all.resize(kMostAllocations);
  }
  std::sort(all.begin(), all.end(), larger);
  if (all.size() > kMostAllocations) all.resize(kMostAllocations);
  for (const auto& [id, device] : devices) table.devices.push_back(device);
  return table;
}

}  // namespace trainprof
