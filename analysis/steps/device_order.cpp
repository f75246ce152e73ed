#include "analysis/steps/device_order.h"

#include "trace/base/large_columns.h"
#include "trace/base/sort_runs.h"

namespace trainprof {
namespace {

struct Begin {
  TraceTime at;
  uint32_t row = 0;
};

}  // namespace

std::vector<std::vector<uint32_t>> OpsByBegin(const Trace& trace) {
  const auto device_of = [&](uint32_t track) {
    return std::min(Index(trace.tracks[track].device), trace.devices.size());
  };
  std::vector<size_t> counts(trace.devices.size() + 1, 0);
  for (uint32_t track = 0; track < trace.tracks.size(); ++track) {
    const auto [first, last] = trace.device_ops.rows_of(TrackId{track});
    counts[device_of(track)] += last - first;
  }
  std::vector<std::vector<Begin>> begins(counts.size());
  for (size_t device = 0; device < counts.size(); ++device) {
    ReserveLarge(begins[device], counts[device]);
  }
  for (uint32_t track = 0; track < trace.tracks.size(); ++track) {
    CancelPoint();
    const auto [first, last] = trace.device_ops.rows_of(TrackId{track});
    std::vector<Begin>& of_device = begins[device_of(track)];
    for (uint32_t row = first; row < last; ++row) {
      of_device.push_back({trace.device_ops.begin[row], row});
    }
  }
  std::vector<std::vector<uint32_t>> rows(counts.size());
  for (size_t device = 0; device < counts.size(); ++device) {
    SortRuns(begins[device], [](const Begin& begin) { return begin.at; });
    ReserveLarge(rows[device], counts[device]);
    for (const Begin& begin : begins[device]) rows[device].push_back(begin.row);
    begins[device] = {};
  }
  return rows;
}

const std::vector<std::vector<uint32_t>>& DeviceOrder::ops() {
  if (ops_.empty()) ops_ = OpsByBegin(trace_);
  return ops_;
}

}  // namespace trainprof
