// The clock that events are stamped with: the time stamp counter where the kernel itself trusts it
// across cores, else CLOCK_MONOTONIC. Header-only and free of the C++ runtime, of locks and of
// cancellation points: the in-process library includes it.
#pragma once

#include <fcntl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstring>

#include "trace/recording/wire/layout.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

namespace trainprof::recording {

inline constexpr int64_t kNsPerSecond = 1'000'000'000;

inline timespec ToTimespec(int64_t ns) { return {ns / kNsPerSecond, ns % kNsPerSecond}; }

inline int64_t ReadClock(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return t.tv_sec * kNsPerSecond + t.tv_nsec;
}

inline int64_t MonotonicNs() { return ReadClock(CLOCK_MONOTONIC); }

// The time stamp counter, where ClockKind::kTsc may be; elsewhere 0.
inline uint64_t ReadTsc() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return 0;
#endif
}

inline uint64_t ReadTicks(ClockKind kind) {
#if defined(__x86_64__)
  if (kind == ClockKind::kTsc) [[likely]] {
    return ReadTsc();
  }
#endif
  (void)kind;
  return static_cast<uint64_t>(MonotonicNs());
}

// Invariant (CPUID 0x80000007 EDX bit 8), and the kernel's time of day rests on it: a kernel that
// found the counters of the cores apart has switched to hpet or acpi_pm.
inline bool TscIsTrusted() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(0x80000007, &a, &b, &c, &d) == 0 || (d & (1u << 8)) == 0) return false;
  constexpr char kPath[] = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
  const long fd = syscall(SYS_openat, AT_FDCWD, kPath, O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) return true;  // a container without /sys: the processor's word counts
  char name[64] = {};
  const long n = syscall(SYS_read, fd, name, sizeof name - 1);
  syscall(SYS_close, fd);
  if (n <= 0) return true;
  constexpr const char* kTrusting[] = {"tsc\n", "kvm-clock\n", "hyperv_clocksource_tsc_page\n"};
  for (const char* source : kTrusting) {
    if (strcmp(name, source) == 0) return true;
  }
#endif
  return false;
}

inline ClockKind DetectClockKind() {
  return TscIsTrusted() ? ClockKind::kTsc : ClockKind::kMonotonic;
}

// The three clocks at one instant: of a few tries the one with the narrowest bracket.
inline ClockSample SampleClockTriple(ClockKind kind) {
  constexpr int kTries = 3;
  ClockSample best{0, 0, 0, UINT64_MAX};
  for (int i = 0; i < kTries; ++i) {
    const uint64_t before = ReadTicks(kind);
    const int64_t monotonic = MonotonicNs();
    const int64_t realtime = ReadClock(CLOCK_REALTIME);
    const uint64_t after = ReadTicks(kind);
    if (after - before < best.bracket_ticks) {
      best = {before + (after - before) / 2, monotonic, realtime, after - before};
    }
  }
  // On that clock the two are one and the same: no error at all.
  if (kind == ClockKind::kMonotonic) best.ticks = static_cast<uint64_t>(best.monotonic_ns);
  return best;
}

}  // namespace trainprof::recording
