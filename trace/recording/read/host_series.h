// From the samples of one entity of the host to counters: totals become rates, families of metrics
// become one counter with a series each, repeated values are left out.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trace/build/trace_builder.h"
#include "trace/recording/files/host_file.h"

namespace trainprof::recording {

// How many counters these values of one sample belong to.
int64_t FamiliesAmong(HostEntityKind kind, std::span<const HostSink::Value> values);

class EntitySeries {
 public:
  // Adds rows on `track`, every `stride`-th sample's, at times since `base_ns` of CLOCK_MONOTONIC.
  // `builder` outlives this.
  EntitySeries(const HostEntity& entity, const HostHeader& header, TrackId track, int64_t stride,
               int64_t base_ns, TraceBuilder& builder);

  void Add(int64_t monotonic_ns, std::span<const HostSink::Value> values);
  // No more samples: `ended` when the entity itself is gone, so that its counters go to 0.
  void Finish(bool ended);

 private:
  struct Series {
    StringId key;
    HostUnit unit;
    bool seen = false;
    uint64_t raw = 0;  // of the last sample
  };
  struct Family {
    StringId name;
    bool is_total = false;
    uint32_t first_metric = 0;
    std::vector<Series> series;  // by metric, from first_metric
    int64_t observations = 0;
    int64_t last_ns = 0;  // of the last sample that was taken
    int64_t row_ns = 0;   // of the last row
    std::vector<Arg> shown;
  };
  size_t FamilyOf(uint32_t metric);  // index in families_, where it is added if need be
  void AddFamily(uint32_t metric);
  static int64_t LeastDuration(const Family& family);
  void AddSample(Family& family, int64_t monotonic_ns, std::span<const HostSink::Value> values);
  double RateOf(const Series& series, uint64_t raw, int64_t duration_ns) const;
  void AppendValue(const Series& series, uint64_t raw);
  void Show(Family& family, int64_t monotonic_ns);
  void AddRow(Family& family, int64_t monotonic_ns);

  HostEntity entity_;
  uint32_t ticks_per_second_;
  uint32_t cores_;
  TrackId track_;
  int64_t stride_;
  int64_t base_ns_;
  TraceBuilder* builder_;
  std::vector<Family> families_;
  std::vector<Arg> args_;
};

}  // namespace trainprof::recording
