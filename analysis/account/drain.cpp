#include "analysis/account/drain.h"

#include <algorithm>
#include <numeric>

#include "trace/base/cancel.h"

namespace trainprof {
namespace {

std::vector<Duration> DrainOnDevice(std::span<const Interval> calls, const DeviceAccount& device,
                                    const IntervalSet& window) {
  std::vector<Duration> drains(calls.size());
  TraceTime gap_begin{};
  TraceTime previous_end{INT64_MIN};
  for (size_t i = 0; i < device.idle.size(); ++i) {
    CancelPoint(i);
    const Segment<DeviceClass>& segment = device.idle[i];
    // Segments that touch belong to one gap: the device ran dry at the first one's begin.
    if (segment.interval.begin != previous_end) gap_begin = segment.interval.begin;
    previous_end = segment.interval.end;
    if (segment.value != DeviceClass::kIdleSyncDrain) continue;
    const auto after = std::partition_point(
        calls.begin(), calls.end(), [&](const Interval& call) { return call.begin <= gap_begin; });
    if (after == calls.begin()) continue;
    const auto call = after - 1;
    if (gap_begin > call->end + kRounding) continue;
    drains[static_cast<size_t>(call - calls.begin())] += window.TotalWithin(segment.interval);
  }
  return drains;
}

}  // namespace

Duration DrainOf(std::vector<Interval> calls, std::span<const DeviceAccount> devices,
                 const IntervalSet& window) {
  const IntervalSet waits = IntervalSet::Union(std::move(calls));
  std::vector<Duration> most(waits.intervals().size());
  for (const DeviceAccount& device : devices) {
    const std::vector<Duration> here = DrainOnDevice(waits.intervals(), device, window);
    for (size_t i = 0; i < most.size(); ++i) most[i] = std::max(most[i], here[i]);
  }
  return std::accumulate(most.begin(), most.end(), Duration{});
}

}  // namespace trainprof
