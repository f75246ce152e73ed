#include "analysis/host/stream_waits.h"

#include <algorithm>

#include "trace/base/cancel.h"

namespace trainprof {
namespace {

struct Launched {
  TraceTime at;  // begin of the call
  Row op;

  auto operator<=>(const Launched&) const = default;
};

// The operations of each track whose launch is known, in the order of their launch.
std::vector<std::vector<Launched>> LaunchedOn(const Trace& trace) {
  std::vector<std::vector<Launched>> launched(trace.tracks.size());
  const DeviceOpTable& ops = trace.device_ops;
  for (uint32_t op = 0; op < ops.size(); ++op) {
    CancelPoint(op);
    if (ops.launch[op] == kNoRow) continue;
    launched[Index(ops.track[op])].push_back({trace.api.begin[Index(ops.launch[op])], Row{op}});
  }
  for (auto& track : launched) std::sort(track.begin(), track.end());
  return launched;
}

}  // namespace

std::vector<StreamWait> FindStreamWaits(const Trace& trace) {
  const SyncTable& syncs = trace.syncs;
  if (std::find(syncs.kind.begin(), syncs.kind.end(), SyncKind::kStreamWaits) == syncs.kind.end()) {
    return {};
  }
  const std::vector<std::vector<Launched>> launched = LaunchedOn(trace);
  std::vector<StreamWait> waits;
  for (uint32_t row = 0; row < syncs.size(); ++row) {
    CancelPoint(row);
    if (syncs.kind[row] != SyncKind::kStreamWaits || syncs.awaited[row] == kNoTrack) continue;
    if (syncs.call[row] == kNoRow || syncs.record[row] == kNoRow) continue;
    if (syncs.awaited[row] == syncs.track[row]) continue;
    const auto behind = [&](TrackId track, TraceTime at) {
      const std::vector<Launched>& there = launched[Index(track)];
      return std::pair(&there, std::lower_bound(there.begin(), there.end(), Launched{at, Row{0}}));
    };
    const auto [on_awaited, recorded] =
        behind(syncs.awaited[row], trace.api.begin[Index(syncs.record[row])]);
    const auto [on_waiting, asked] =
        behind(syncs.track[row], trace.api.begin[Index(syncs.call[row])]);
    if (recorded == on_awaited->begin() || asked == on_waiting->end()) continue;
    waits.push_back({Row{row}, (recorded - 1)->op,
                     asked == on_waiting->begin() ? kNoRow : (asked - 1)->op, asked->op});
  }
  return waits;
}

std::vector<Row> FindHostFunctions(const Trace& trace, DeviceId device) {
  std::vector<Row> rows;
  for (uint32_t row = 0; row < trace.syncs.size(); ++row) {
    CancelPoint(row);
    if (trace.syncs.kind[row] != SyncKind::kHostFunction) continue;
    if (trace.tracks[Index(trace.syncs.track[row])].device == device) rows.push_back(Row{row});
  }
  return rows;
}

bool MissesStreamWaits(const Trace& trace) {
  const auto& kinds = trace.syncs.kind;
  if (std::find(kinds.begin(), kinds.end(), SyncKind::kStreamWaits) != kinds.end()) return false;
  const auto& calls = trace.api.kind;
  return std::find(calls.begin(), calls.end(), ApiKind::kStreamWait) != calls.end();
}

Interval TimeOfSync(const Trace& trace, Row sync) { return trace.syncs.interval(sync); }

}  // namespace trainprof
