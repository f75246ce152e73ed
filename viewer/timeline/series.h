// Values over time: counters and allocated memory. A value holds until the next one.
#pragma once

#include <vector>

#include "trace/tables/trace.h"
#include "viewer/timeline/pieces.h"

namespace trainprof {

struct SeriesId {
  TrackId track = kNoTrack;      // of a counter; kNoTrack: memory, of all tracks
  StringId name = kEmptyString;  // of a counter
  StringId key = kEmptyString;   // of its argument that holds the value
  int64_t device_id = 0;         // memory: as in Allocation, < 0 for the host
  MemoryTotal total{};

  bool operator==(const SeriesId&) const = default;
};

// Counters by track, name and key, then memory by device and total. O(counters + instants).
std::vector<SeriesId> FindSeries(const Trace& trace);

class Series {
 public:
  // In time order; among equal times the last counts.
  void Add(TraceTime time, double value);
  // After the last Add.
  void Finish();

  size_t size() const { return time_.size(); }
  TraceTime time(size_t i) const { return time_[i]; }
  double value(size_t i) const { return value_[i]; }
  struct Range {
    double low = 0;
    double high = 0;

    bool operator==(const Range&) const = default;
  };
  // Of all values; 0 without any.
  Range Extent() const;
  // Of the values that hold at some moment of `part`; false when it lies before the first one.
  // O(log n).
  bool Within(const Interval& part, Range& range) const;
  size_t size_bytes() const;

 private:
  static constexpr size_t kBlock = 32;
  static constexpr size_t kFanOut = 8;
  void Widen(size_t level, size_t first, size_t last, Range& range) const;

  std::vector<TraceTime> time_;
  std::vector<double> value_;
  std::vector<std::vector<Range>> blocks_;  // [0]: per kBlock values; each level above: per kFanOut
};

// The values of one series at times + shift. O(counters of the track), for memory O(instants). May
// be cancelled (trace/base/cancel.h).
Series MakeSeries(const Trace& trace, const SeriesId& id, Duration shift);

struct SeriesColumn {
  int32_t pixel = 0;
  Series::Range range;
};

// A line's way through a view: lowest and highest value per pixel, one column each at most.
std::vector<SeriesColumn> ColumnsOf(const Series& series, const Scale& scale);

}  // namespace trainprof
