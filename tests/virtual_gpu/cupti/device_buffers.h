// The memory in which the library keeps the times of device work until it has looked at them:
// buffers of the GPU's own memory, in each context. Where all are in use, work leaves no times.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "tests/virtual_gpu/model/machine.h"

namespace vgpu {

class DeviceBuffers {
 public:
  // In one context.
  struct Pool {
    std::atomic<int64_t> operations = 0;  // whose times stand in it
    std::atomic<int64_t> buffers = 0;
  };

  // What the library takes when a context comes into being.
  void PreAllocate(const Context& context);
  // A place for the times of one operation; null where there is none. Leave() gives it back.
  Pool* Enter(const Context& context);
  static void Leave(Pool* pool) { pool->operations.fetch_sub(1, std::memory_order_relaxed); }

  // Attributes.
  std::atomic<size_t> bytes = 3'200'000;
  std::atomic<size_t> limit = 250;
  std::atomic<size_t> ahead = 3;
  std::atomic<bool> pinned = false;  // the host's memory instead

 private:
  Pool& PoolOf(const Context& context) { return pools_[context.uid % kPools]; }
  bool Grow(const Context& context, Pool& pool, int64_t buffers);

  static constexpr size_t kPools = 256;
  std::mutex lock_;  // growing
  Pool pools_[kPools];
};

}  // namespace vgpu
