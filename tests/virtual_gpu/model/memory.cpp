#include "tests/virtual_gpu/model/memory.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "tests/virtual_gpu/model/faults.h"
#include "tests/virtual_gpu/model/machine.h"
#include "tests/virtual_gpu/model/shared_state.h"

namespace vgpu {
namespace {

constexpr uint64_t kAlignment = 512;
// No kernel maps user memory there unasked, and no sanitizer keeps its shadow there.
constexpr uint64_t kDeviceAddresses = 0x3000'0000'0000;
constexpr uint64_t kAddressesPerDevice = uint64_t{1} << 42;

struct AddressSpace {
  std::mutex lock;
  std::map<uint64_t, Allocation> allocations;  // by begin
  std::map<int, uint64_t> next_address;        // by device
  int64_t device_allocations = 0;
};

AddressSpace& TheAddressSpace() {
  static AddressSpace* const space = new AddressSpace;
  return *space;
}

uint64_t CapacityBytes() { return static_cast<uint64_t>(Least(Setting::memory_mib)) << 20; }

}  // namespace

Allocation FindAllocation(uint64_t address) {
  AddressSpace& space = TheAddressSpace();
  const std::lock_guard guard(space.lock);
  auto after = space.allocations.upper_bound(address);
  if (after == space.allocations.begin()) return {};
  const Allocation& candidate = std::prev(after)->second;
  return address < candidate.address + candidate.bytes ? candidate : Allocation{};
}

uint64_t AllocateDevice(Context& context, uint64_t bytes) {
  AddressSpace& space = TheAddressSpace();
  const std::lock_guard guard(space.lock);
  const int64_t full_at = FaultNumber(Fault::oom_at, 0);
  if (full_at > 0 && ++space.device_allocations >= full_at) return 0;
  const uint64_t size = (std::max<uint64_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
  Device& device = *context.device;
  if (size > CapacityBytes() - device.memory_used_bytes) return 0;
  uint64_t& next = space.next_address[device.ordinal];
  if (next == 0)
    next = kDeviceAddresses + static_cast<uint64_t>(device.ordinal) * kAddressesPerDevice;
  const uint64_t address = next;
  next += size;
  device.memory_used_bytes += size;
  NoteMemory(device.ordinal, device.memory_used_bytes);
  space.allocations[address] = {address, size, MemoryKind::kDevice, &context, false};
  return address;
}

bool ChargeDevice(Device& device, uint64_t bytes) {
  const std::lock_guard guard(TheAddressSpace().lock);
  if (bytes > CapacityBytes() - device.memory_used_bytes) return false;
  device.memory_used_bytes += bytes;
  NoteMemory(device.ordinal, device.memory_used_bytes);
  return true;
}

uint64_t AllocateHost(Context& context, uint64_t bytes, MemoryKind kind) {
  void* pages = nullptr;
  if (posix_memalign(&pages, 4096, std::max<uint64_t>(bytes, 1)) != 0) return 0;
  const uint64_t address = reinterpret_cast<uint64_t>(pages);
  AddressSpace& space = TheAddressSpace();
  const std::lock_guard guard(space.lock);
  space.allocations[address] = {address, std::max<uint64_t>(bytes, 1), kind, &context, false};
  return address;
}

bool RegisterHost(Context& context, uint64_t address, uint64_t bytes) {
  AddressSpace& space = TheAddressSpace();
  const std::lock_guard guard(space.lock);
  return space.allocations
      .try_emplace(address, Allocation{address, bytes, MemoryKind::kPinned, &context, true})
      .second;
}

Allocation Release(uint64_t address, MemoryKind kind) {
  AddressSpace& space = TheAddressSpace();
  const std::lock_guard guard(space.lock);
  const auto found = space.allocations.find(address);
  if (found == space.allocations.end()) return {};
  const Allocation released = found->second;
  if (kind != MemoryKind::kUnknown && released.kind != kind) return {};
  space.allocations.erase(found);
  if (released.kind == MemoryKind::kDevice) {
    Device& device = *released.context->device;
    device.memory_used_bytes -= released.bytes;
    NoteMemory(device.ordinal, device.memory_used_bytes);
  } else if (!released.registered) {
    free(reinterpret_cast<void*>(released.address));
  }
  return released;
}

MemoryRoom RoomOf(const Device& device) {
  const std::lock_guard guard(TheAddressSpace().lock);
  return {CapacityBytes() - device.memory_used_bytes, CapacityBytes()};
}

}  // namespace vgpu
