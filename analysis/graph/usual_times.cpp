#include "analysis/graph/usual_times.h"

#include <algorithm>

#include "analysis/graph/latencies.h"
#include "analysis/graph/thinned.h"
#include "trace/base/cancel.h"

namespace trainprof {

EventWaits FindEventWaits(const Trace& trace, const Streams& streams) {
  EventWaits waits;
  waits.of_stream.resize(streams.streams().size());
  waits.lacks_some.resize(streams.streams().size());
  const SyncTable& syncs = trace.syncs;
  for (uint32_t row = 0; row < syncs.size(); ++row) {
    CancelPoint(row);
    if (syncs.kind[row] != SyncKind::kStreamWaits) continue;
    waits.are_recorded = true;
    const Streams::Stream* const waiting = streams.Of(syncs.track[row]);
    const Streams::Stream* const awaited = streams.Of(syncs.awaited[row]);
    if (waiting == nullptr || waiting == awaited) continue;
    const auto index = static_cast<size_t>(waiting - streams.streams().data());
    if (awaited == nullptr || syncs.call[row] == kNoRow || syncs.record[row] == kNoRow) {
      waits.lacks_some[index] = true;
      continue;
    }
    const TraceTime recorded = trace.api.begin[Index(syncs.record[row])];
    const auto target = streams.LastIssuedBefore(*awaited, recorded);
    if (!target) continue;
    waits.of_stream[index].push_back({trace.api.begin[Index(syncs.call[row])], *target, Row{row}});
  }
  for (std::vector<EventWait>& of_stream : waits.of_stream) {
    std::stable_sort(of_stream.begin(), of_stream.end(),
                     [](const EventWait& a, const EventWait& b) { return a.issued < b.issued; });
  }
  return waits;
}

std::vector<DeviceTimes> LearnDeviceTimes(const Trace& trace, const Streams& streams,
                                          const EventWaits& waits) {
  std::vector<Thinned> gaps(trace.devices.size() + 1);
  std::vector<std::array<Thinned, 2>> launches(trace.devices.size() + 1);
  for (size_t i = 0; i < streams.streams().size(); ++i) {
    const Streams::Stream& stream = streams.streams()[i];
    const size_t device = std::min(Index(stream.device), trace.devices.size());
    auto wait = waits.of_stream[i].begin();
    const auto last_wait = waits.of_stream[i].end();
    for (uint32_t item = stream.first; item < stream.last; ++item) {
      CancelPoint(item);
      const auto before = wait;
      while (wait != last_wait && wait->issued < streams.issued(item)) ++wait;
      const Row call = streams.call(item);
      if (call == kNoRow || streams.kind(item) != NodeKind::kDeviceOp || wait != before) continue;
      const bool is_first = item == stream.first;
      const TraceTime begin = streams.begin(item);
      const TraceTime free = is_first ? TraceTime{INT64_MIN} : streams.end(item - 1);
      if (free <= trace.api.begin[Index(call)]) {
        const bool copies = trace.device_ops.kind[streams.row(item)] == DeviceOpKind::kCopy;
        const Duration took = begin - trace.api.begin[Index(call)];
        if (took <= kLongestLaunch) launches[device][copies ? 1 : 0].Add(took.ns);
      } else if (trace.api.end(Index(call)) <= free && free <= begin && begin - free <= kHandOver) {
        gaps[device].Add((begin - free).ns);
      }
    }
  }
  std::vector<DeviceTimes> times(gaps.size());
  for (size_t device = 0; device < gaps.size(); ++device) {
    times[device].gap = Nanoseconds(gaps[device].Quantile(0.5, 1000));
    for (size_t copies = 0; copies < 2; ++copies) {
      times[device].launch[copies] =
          Nanoseconds(std::max<int64_t>(0, launches[device][copies].Quantile(0.5, kIssue.ns)));
    }
  }
  return times;
}

}  // namespace trainprof
