// What a thread used of the CPU, from one of its THREAD_TIME records to the next.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "trace/build/trace_builder.h"

namespace trainprof::recording {

class ThreadTime {
 public:
  explicit ThreadTime(TraceBuilder& builder) : builder_(builder) {}

  // The next record is another thread's.
  void Forget() { last_.reset(); }
  // A record's words behind its ticks; they count from the thread's begin.
  void Take(TrackId thread, TraceTime at, std::span<const uint64_t> words);

 private:
  struct Reading {
    TraceTime at;
    int64_t cpu_ns;
    uint32_t waits;
    uint32_t interruptions;
  };

  TraceBuilder& builder_;
  std::optional<Reading> last_;
};

}  // namespace trainprof::recording
