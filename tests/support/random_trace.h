// Random training traces: threads that step, load, launch, copy, allocate, wait and run Python, and
// devices that follow them, queued or late. A trace is drawn as a list of plain events, so that a
// test can delete some of them, or shrink a failing trace, and build what is left.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "trace/tables/trace.h"

namespace trainprof {

// Draws from a seed; the same with every library, unlike the distributions of <random>. Where
// several are drawn for one call the compiler chooses their order: Clang's traces are others than
// GCC's.
class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  int64_t Between(int64_t low, int64_t high) {  // both included
    return low + static_cast<int64_t>(engine_() % static_cast<uint64_t>(high - low + 1));
  }
  bool Chance(int percent) { return Between(0, 99) < percent; }
  template <class T, size_t N>
  const T& Of(const T (&choices)[N]) {
    return choices[Between(0, N - 1)];
  }

 private:
  std::mt19937_64 engine_;
};

struct RangeEvent {
  int thread = 0;
  Interval interval{};
  RangeKind kind{};
  std::string name{};
};

struct CallEvent {
  int thread = 0;
  Interval interval{};
  std::string name{};  // its kind is ApiKindOf(name)
  int64_t correlation = kNoCorrelation;
};

struct OpEvent {
  int device = 0;
  int stream = 0;
  Interval interval{};
  DeviceOpKind kind{};
  std::string name{};
  CopyDirection direction = CopyDirection::kUnknown;
  int64_t bytes = 0;
  int64_t correlation = kNoCorrelation;
};

struct TraceEvents {
  int threads = 1;
  int devices = 1;
  int streams = 1;  // of each device
  std::vector<RangeEvent> ranges;
  std::vector<CallEvent> calls;
  std::vector<OpEvent> ops;

  size_t size() const { return ranges.size() + calls.size() + ops.size(); }
};

struct RandomTraceOptions {
  int most_events = 150;
  int most_threads = 3;
  bool whole_microseconds = true;
  bool nested = true;  // else some host events overlap without nesting
  int most_steps = 8;  // explicit ones
  int least_steps = 0;
  bool python = true;    // Python functions occur
  bool disorder = true;  // operations moved, launches lost
  int most_devices = 2;
  bool in_order = false;  // each operation of a stream begins behind the one launched before it
};

TraceEvents DrawTrace(uint64_t seed, const RandomTraceOptions& options = {});

// Track ids do not depend on the events: they stay the same when some are deleted.
Trace BuildTrace(const TraceEvents& events);

// The smallest sub-list of events that still `fails`, by greedy deletion.
TraceEvents Shrink(TraceEvents events, const std::function<bool(const TraceEvents&)>& fails);

// One line an event, times in nanoseconds.
std::string ToText(const TraceEvents& events);

}  // namespace trainprof
