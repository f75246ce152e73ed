// The one clock of the virtual GPU: host and device times are CLOCK_MONOTONIC nanoseconds.
#pragma once

#include <time.h>

#include <algorithm>
#include <cstdint>

namespace vgpu {

inline int64_t NowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

// Sleeps while there is time, spins at the end: a wake-up of the kernel is late by tens of
// microseconds.
inline void WaitUntil(int64_t deadline_ns) {
  constexpr int64_t kSpinNs = 80'000;
  for (int64_t now = NowNs(); now < deadline_ns; now = NowNs()) {
    if (deadline_ns - now <= kSpinNs) continue;
    const int64_t nap = deadline_ns - now - kSpinNs;
    const timespec request = {nap / 1'000'000'000, nap % 1'000'000'000};
    nanosleep(&request, nullptr);
  }
}

// Uses the processor for so long. While another thread has it the clock goes on and the work does not: what passes between
// two readings counts as far as one takes, an interrupt included.
inline void UseProcessor(int64_t left_ns) {
  constexpr int64_t kMostNs = 5'000;
  for (int64_t last = NowNs(); left_ns > 0;) {
    const int64_t now = NowNs();
    left_ns -= std::min(now - last, kMostNs);
    last = now;
  }
}

}  // namespace vgpu
