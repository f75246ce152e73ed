// Runs work in a forked copy of the supervisor, within a time and a memory limit: whatever that
// work does (crash, hang, eat memory), the supervisor still returns the program's exit code.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "profiler/process/signals.h"

namespace trainprof {

struct IsolatedLimits {
  std::chrono::milliseconds time;
  uint64_t memory_bytes = UINT64_MAX;  // address space; UINT64_MAX: none
  int interrupts = 1;                  // as many SIGINTs end the work early
};

struct IsolatedResult {
  bool ok = false;
  bool interrupted = false;
  std::string text;  // what the work returned, cut at kMaxIsolatedText; when not ok, why
};

inline constexpr size_t kMaxIsolatedText =
    48 * 1024;  // below a pipe's 64 KiB: writing never blocks

// `work` may throw. It runs without other threads and its changes of memory are lost.
IsolatedResult RunIsolated(const std::function<std::string()>& work, const IsolatedLimits& limits,
                           SignalInbox& inbox);

}  // namespace trainprof
