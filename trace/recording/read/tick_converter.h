// Ticks of a recording to CLOCK_MONOTONIC nanoseconds: linear between clock samples, in exact
// integer arithmetic, never running backwards.
#pragma once

#include <vector>

#include "trace/base/time.h"
#include "trace/recording/wire/layout.h"

namespace trainprof::recording {

class TickConverter {
 public:
  // Any samples of one machine and one clock, in any order: those that contradict the others, or
  // were taken across an interruption, are set aside. O(n log n).
  TickConverter(ClockKind kind, std::vector<ClockSample> samples);

  // O(log samples), O(1) for ticks near the last ones. Beyond the samples the rate of all of them
  // holds.
  HostTime ToHost(uint64_t ticks) const;

  // How far a conversion between two samples may be off: half the widest bracket that is used.
  Duration Error() const { return error_; }
  // False: one sample or none, so that the rate of the ticks is a guess (1 ns).
  bool RateIsKnown() const { return rate_is_known_; }

 private:
  size_t SegmentOf(uint64_t ticks) const;

  ClockKind kind_;
  std::vector<ClockSample> samples_;  // by ticks, and by time
  Duration error_{};
  bool rate_is_known_ = false;
  mutable size_t last_ = 0;  // the segment of the last conversion
};

}  // namespace trainprof::recording
