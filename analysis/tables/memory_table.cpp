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

MemoryTable MakeMemoryTable(const Trace& trace, const IntervalSet& window,
                            const std::atomic<bool>* cancel) {
  MemoryTable table;
  const StringId name = trace.strings.Find("[memory]");
  const StringId bytes_key = trace.strings.Find("Bytes");
  const StringId device_key = trace.strings.Find("Device Id");
  if (name == kEmptyString || bytes_key == kEmptyString) return table;
  const Cutter cutter(window);
  std::map<int64_t, DeviceMemory> devices;
  std::vector<Allocation>& all = table.largest;
  const auto larger = [](const Allocation& a, const Allocation& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.row < b.row;
  };
  for (uint32_t row = 0; row < trace.instants.size(); ++row) {
    if (IsCancelled(cancel, row)) return {};
    Duration none;
    if (trace.instants.name[row] != name) continue;
    if (!cutter.Cut(trace.instants.interval(Row{row}), &none)) continue;
    const ArgsId args = trace.instants.args[row];
    const std::optional<ArgValue> bytes = trace.args.Find(args, bytes_key);
    if (!bytes || bytes->type != ArgValue::Type::kInt) continue;
    const std::optional<ArgValue> id = trace.args.Find(args, device_key);
    const int64_t device_id = id ? id->integer : -1;
    DeviceMemory& device = devices[device_id];
    device.device_id = device_id;
    Add(device, bytes->integer);
    if (bytes->integer <= 0) continue;
    all.push_back({Row{row}, bytes->integer});
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
