#include "tests/virtual_gpu/cupti/device_buffers.h"

#include <algorithm>

#include "tests/virtual_gpu/model/faults.h"
#include "tests/virtual_gpu/model/memory.h"
#include "tests/virtual_gpu/model/settings.h"

namespace vgpu {

void DeviceBuffers::PreAllocate(const Context& context) {
  Grow(context, PoolOf(context), static_cast<int64_t>(ahead));
}

DeviceBuffers::Pool* DeviceBuffers::Enter(const Context& context) {
  Pool& pool = PoolOf(context);
  const auto room =
      static_cast<int64_t>(bytes) / static_cast<int64_t>(Least(Setting::operation_bytes));
  const int64_t operations = pool.operations.fetch_add(1, std::memory_order_relaxed) + 1;
  if (operations <= pool.buffers.load(std::memory_order_relaxed) * room) return &pool;
  if (Grow(context, pool, (operations + room - 1) / room)) return &pool;
  Leave(&pool);
  return nullptr;
}

bool DeviceBuffers::Grow(const Context& context, Pool& pool, int64_t buffers) {
  const std::lock_guard guard(lock_);
  const int64_t most = std::min(static_cast<int64_t>(limit),
                                FaultNumber(Fault::device_buffers, static_cast<int64_t>(limit)));
  while (pool.buffers < std::min(buffers, most)) {
    if (!pinned && !ChargeDevice(*context.device, bytes)) return false;
    ++pool.buffers;
  }
  return pool.buffers >= buffers;
}

}  // namespace vgpu
