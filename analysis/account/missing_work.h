// When devices may have done what the trace does not show: between a launch without a device row
// and the moment that proves it done, and while rows of unknown kinds last.
#pragma once

#include <vector>

#include "trace/tables/trace.h"

namespace trainprof {

// The law. A launch L on thread T whose row is missing may have run on each device that T drives
// (any device, where T's other launches do not tell), from L's begin until
//  - a wait for the whole device ends that T began after L, or
//  - an operation began on each of T's streams there that T launched after L: streams keep their
//    order. It proves nothing where more than 1 in kMostMissing of T's launches lack rows, since a
//    stream of T's may then be missing whole.
// A row of an unknown kind: from its launch (its own begin, where that is not known) to its end.
// Always, since any row may be missing: where the input ended early, and where more than 1 in
// kMostMissing of all launches lack rows.
class MissingWork {
 public:
  // May the device have worked then, and for which thread? kNoTrack: several, or not known.
  struct Period {
    Interval interval;
    TrackId thread = kNoTrack;
  };

  // O(n log n) in calls and operations of threads whose launches lack rows, O(n) otherwise.
  // `missing`: LaunchesWithoutRow().
  MissingWork(const Trace& trace, const std::vector<Row>& missing);

  // Sorted, disjoint.
  const std::vector<Period>& On(DeviceId device) const { return on_device_[Index(device)]; }

 private:
  void AddLaunches(const Trace& trace, const std::vector<Row>& missing);
  void AddUnknownRows(const Trace& trace);

  std::vector<std::vector<Period>> on_device_;  // by device
};

inline constexpr size_t kMostMissing = 4;

}  // namespace trainprof
