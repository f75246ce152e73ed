// Typed time. A duration is a count of nanoseconds; a time point belongs to a clock, and points of
// different clocks neither subtract nor compare: only the clock aligner (trace/recording) converts.
#pragma once

#include <compare>
#include <cstdint>

namespace trainprof {

struct Duration {
  int64_t ns = 0;

  constexpr auto operator<=>(const Duration&) const = default;
  constexpr Duration operator+(Duration o) const { return {ns + o.ns}; }
  constexpr Duration operator-(Duration o) const { return {ns - o.ns}; }
  constexpr Duration& operator+=(Duration o) { return ns += o.ns, *this; }
  constexpr Duration& operator-=(Duration o) { return ns -= o.ns, *this; }

  // For printing and ratios only: a double never takes part in time arithmetic.
  constexpr double ToMilliseconds() const { return static_cast<double>(ns) / 1e6; }
  constexpr double ToSeconds() const { return static_cast<double>(ns) / 1e9; }
};

constexpr Duration Nanoseconds(int64_t n) { return {n}; }
constexpr Duration Microseconds(int64_t n) { return {n * 1000}; }
constexpr Duration Milliseconds(int64_t n) { return {n * 1'000'000}; }
constexpr Duration Seconds(int64_t n) { return {n * 1'000'000'000}; }

template <class Clock>
struct TimePoint {
  int64_t ns = 0;  // since the clock's own origin

  constexpr auto operator<=>(const TimePoint&) const = default;
  constexpr Duration operator-(TimePoint o) const { return {ns - o.ns}; }
  constexpr TimePoint operator+(Duration d) const { return {ns + d.ns}; }
  constexpr TimePoint operator-(Duration d) const { return {ns - d.ns}; }
};

struct TraceClock;   // ns since Trace::base_ns; all tables of a Trace use it
struct HostClock;    // CLOCK_MONOTONIC of the recorded host
struct DeviceClock;  // a GPU's own timer

using TraceTime = TimePoint<TraceClock>;
using HostTime = TimePoint<HostClock>;
using DeviceTime = TimePoint<DeviceClock>;

}  // namespace trainprof
