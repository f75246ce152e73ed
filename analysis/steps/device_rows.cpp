#include "analysis/steps/device_rows.h"

#include <algorithm>
#include <utility>

#include "trace/base/cancel.h"
#include "trace/base/large_columns.h"
#include "trace/base/tournament.h"
#include "trace/build/missing_rows.h"

namespace trainprof {
namespace {

// Of one device, from its streams' rows, [first, last) each.
std::vector<uint32_t> Merged(const Trace& trace,
                             std::vector<std::pair<uint32_t, uint32_t>> streams) {
  const DeviceOpTable& ops = trace.device_ops;
  size_t count = 0;
  Tournament merge(streams.size(), [&](uint32_t a, uint32_t b) {
    return AskedForBefore(trace, streams[a].first, streams[b].first);
  });
  const auto key_of = [&](const std::pair<uint32_t, uint32_t>& rows) {
    return rows.first < rows.second ? ops.begin[rows.first].ns : Tournament::kDone;
  };
  for (uint32_t i = 0; i < streams.size(); ++i) {
    count += streams[i].second - streams[i].first;
    merge.Set(i, key_of(streams[i]));
  }
  merge.Start();
  std::vector<uint32_t> order;
  ReserveLarge(order, count);
  while (!merge.Done()) {
    CancelPoint(order.size());
    std::pair<uint32_t, uint32_t>& rows = streams[merge.First()];
    order.push_back(rows.first++);
    merge.Advance(key_of(rows));
  }
  return order;
}

}  // namespace

bool AskedForBefore(const Trace& trace, uint32_t a, uint32_t b) {
  const DeviceOpTable& ops = trace.device_ops;
  const auto place = [&](uint32_t op) {
    const Row call = ops.launch[op];
    const TraceTime asked = call == kNoRow ? TraceTime{INT64_MAX} : trace.api.begin[Index(call)];
    return std::pair(asked, ops.end(op));
  };
  return place(a) < place(b);
}

std::vector<std::vector<uint32_t>> OpsByBegin(const Trace& trace) {
  std::vector<std::vector<std::pair<uint32_t, uint32_t>>> streams(trace.devices.size() + 1);
  for (uint32_t track = 0; track < trace.tracks.size(); ++track) {
    const auto rows = trace.device_ops.rows_of(TrackId{track});
    if (rows.first == rows.second) continue;
    streams[std::min(Index(trace.tracks[track].device), trace.devices.size())].push_back(rows);
  }
  std::vector<std::vector<uint32_t>> rows;
  for (auto& of_device : streams) rows.push_back(Merged(trace, std::move(of_device)));
  return rows;
}

const std::vector<std::vector<uint32_t>>& DeviceRows::ops() {
  if (ops_.empty()) ops_ = OpsByBegin(trace_);
  return ops_;
}

const std::vector<Row>& DeviceRows::missing() {
  if (!missing_) missing_ = LaunchesWithoutRow(trace_);
  return *missing_;
}

}  // namespace trainprof
