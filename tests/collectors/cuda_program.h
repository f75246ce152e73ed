// What cuda_program and its tests share: memory that outlives a killed program.
#pragma once

#include <atomic>
#include <cstdint>

namespace cuda_program {

struct Progress {
  static constexpr uint64_t kKept = 1 << 20;
  std::atomic<uint64_t> launches;           // that have returned
  std::atomic<int64_t> launched_ns[kKept];  // when, of launch i; CLOCK_MONOTONIC
};

}  // namespace cuda_program
