// Memory: what an address is (device, pinned, managed, else pageable) and whether there is room for
// more. Device addresses are numbers only: nothing stands behind them.
#pragma once

#include <cstdint>

#include "tests/virtual_gpu/model/tool.h"

namespace vgpu {

struct Allocation {
  uint64_t address = 0;
  uint64_t bytes = 0;
  MemoryKind kind = MemoryKind::kPageable;
  Context* context = nullptr;
  bool registered = false;  // the program's own pages, pinned by cudaHostRegister
};

// What the address lies in; an unknown address is pageable memory of the host (address 0 of the
// result).
Allocation FindAllocation(uint64_t address);

// The address, 0 when the device's memory is full or the process's when it is the host's.
uint64_t AllocateDevice(Context& context, uint64_t bytes);
uint64_t AllocateHost(Context& context, uint64_t bytes, MemoryKind kind);  // pinned or managed
// False when it is registered already.
bool RegisterHost(Context& context, uint64_t address, uint64_t bytes);

// Forgets (and frees) what begins at the address; kind kUnknown: any. bytes 0 in the result when
// nothing of the kind does.
Allocation Release(uint64_t address, MemoryKind kind);

// Takes memory of the device for the driver's own use, without an address, for good. False: full.
bool ChargeDevice(Device& device, uint64_t bytes);

struct MemoryRoom {
  uint64_t free_bytes;
  uint64_t total_bytes;
};
MemoryRoom RoomOf(const Device& device);

}  // namespace vgpu
