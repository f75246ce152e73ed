#include "trace/build/queue_full.h"

#include <algorithm>
#include <map>

#include "trace/base/cancel.h"

namespace trainprof {
namespace {

// The outermost call of a track that `wait` lies within, or kNoRow. The clocks are one, read twice.
Row CallAround(const ApiTable& api, TrackId track, Interval wait) {
  constexpr Duration kReadTwice = Microseconds(1);
  constexpr uint32_t kMostNested = 4;  // a runtime call, the driver's within it
  const auto [first, last] = api.rows_of(track);
  const auto behind = std::upper_bound(api.begin.begin() + first, api.begin.begin() + last,
                                       wait.begin + kReadTwice);
  const auto end = static_cast<uint32_t>(behind - api.begin.begin());
  Row found = kNoRow;
  for (uint32_t row = end; row > first && end - row < kMostNested; --row) {
    if (api.end(row - 1) + kReadTwice >= wait.end) found = Row{row - 1};
  }
  return found;
}

Row CallOf(const Trace& trace, uint32_t range) {
  const Interval wait = trace.ranges.interval(Row{range});
  const TrackId own = trace.ranges.track[range];
  const auto [first, last] = trace.api.rows_of(own);
  if (first != last) return CallAround(trace.api, own, wait);
  Row found = kNoRow;
  for (uint32_t track = 0; track < trace.tracks.size(); ++track) {
    const Row call = CallAround(trace.api, TrackId{track}, wait);
    if (call == kNoRow || !StartsWork(trace.api.kind[Index(call)])) continue;
    if (found != kNoRow) return kNoRow;  // one of two
    found = call;
  }
  return found;
}

}  // namespace

void JoinQueueFull(Trace& trace) {
  const RangeTable& ranges = trace.ranges;
  std::map<uint32_t, int64_t> waited_ns;
  int64_t alone = 0;
  for (uint32_t row = 0; row < ranges.size(); ++row) {
    CancelPoint(row);
    if (ranges.kind[row] != RangeKind::kOverhead) continue;
    if (trace.Text(ranges.name[row]) != kQueueFull) continue;
    const Row call = CallOf(trace, row);
    if (call == kNoRow) {
      ++alone;
    } else {
      waited_ns[static_cast<uint32_t>(call)] += ranges.interval(Row{row}).Length().ns;
    }
  }
  auto& column = trace.api.queue_full_ns;
  column = {};
  for (const auto& [row, ns] : waited_ns) {
    column.resize(row);
    column.push_back(ns);
  }
  column.resize(trace.api.size());
  trace.quality.Count(
      "queue_full_without_call", QualitySeverity::kInfo, alone,
      "waits for room in a device's queue that lie within no call, or within several");
}

}  // namespace trainprof
