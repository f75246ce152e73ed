#include "analysis/host/stream_waits.h"

#include <algorithm>
#include <utility>

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

namespace {

// One device's streams that the null stream orders, as one process drives them.
class NullStream {
 public:
  NullStream(const Trace& trace, const std::vector<std::vector<Launched>>& launched, TrackId null)
      : ops_(trace.device_ops), launched_(launched), null_(null) {
    for (uint32_t id = 0; id < trace.tracks.size(); ++id) {
      const Track& track = trace.tracks[id];
      if (track.order != StreamOrder::kBlocking || launched[id].empty()) continue;
      const bool is_same = track.device == trace.tracks[Index(null)].device &&
                           DriverOf(trace, TrackId{id}) == DriverOf(trace, null);
      if (is_same) others_.push_back({TrackId{id}});
    }
  }

  void FindWaits(std::vector<StreamWait>& waits) {
    const std::vector<Launched>& works = launched_[Index(null_)];
    for (size_t i = 0; !others_.empty() && i < works.size(); ++i) {
      CancelPoint(i);
      const bool is_last = i + 1 == works.size();
      FindAround(works[i], i == 0 ? kNoRow : works[i - 1].op,
                 is_last ? TraceTime{INT64_MAX} : works[i + 1].at, waits);
    }
  }

 private:
  struct Other {
    TrackId track;
    size_t next = 0;  // of its operations: the first that was not asked for before the work at hand
    Row before = kNoRow;  // asked for between the work before that and that
  };

  ProcessId DriverOf(const Trace& trace, TrackId track) const {
    const Row call = trace.device_ops.launch[Index(launched_[Index(track)].front().op)];
    return trace.ProcessOf(trace.api.track[Index(call)]);
  }

  TraceTime EndOf(Row op) const {
    return op == kNoRow ? TraceTime{INT64_MIN} : ops_.end(Index(op));
  }

  void FindAround(const Launched& work, Row work_before, TraceTime until,
                  std::vector<StreamWait>& waits) {
    const Other* last = nullptr;    // of those before the work, which ended last
    const Other* second = nullptr;  // and which before that
    for (Other& other : others_) {
      const std::vector<Launched>& there = launched_[Index(other.track)];
      other.before = kNoRow;
      while (other.next < there.size() && there[other.next].at < work.at) {
        other.before = there[other.next++].op;
      }
      if (other.before == kNoRow) continue;
      waits.push_back({kNoRow, other.before, work_before, work.op, work.op});
      if (last == nullptr || EndOf(other.before) > EndOf(last->before)) {
        second = std::exchange(last, &other);
      } else if (second == nullptr || EndOf(other.before) > EndOf(second->before)) {
        second = &other;
      }
    }
    for (const Other& other : others_) {
      const std::vector<Launched>& there = launched_[Index(other.track)];
      if (other.next == there.size() || there[other.next].at >= until) continue;
      const Row after = there[other.next].op;
      const Row behind = other.next == 0 ? kNoRow : there[other.next - 1].op;
      waits.push_back({kNoRow, work.op, behind, after, work.op});
      const Other* const before = last == &other ? second : last;
      if (before != nullptr) waits.push_back({kNoRow, before->before, behind, after, work.op});
    }
  }

  const DeviceOpTable& ops_;
  const std::vector<std::vector<Launched>>& launched_;
  const TrackId null_;
  std::vector<Other> others_;
};

}  // namespace

std::vector<StreamWait> FindNullStreamWaits(const Trace& trace) {
  std::vector<StreamWait> waits;
  const auto is_null = [](const Track& track) { return track.order == StreamOrder::kNull; };
  if (std::none_of(trace.tracks.begin(), trace.tracks.end(), is_null)) return waits;
  const std::vector<std::vector<Launched>> launched = LaunchedOn(trace);
  for (uint32_t id = 0; id < trace.tracks.size(); ++id) {
    if (!is_null(trace.tracks[id]) || launched[id].empty()) continue;
    NullStream(trace, launched, TrackId{id}).FindWaits(waits);
  }
  return waits;
}

Site SiteOf(const StreamWait& wait, const Trace& trace, const SiteFinder& sites) {
  Site asked;
  if (wait.sync != kNoRow && sites.FindInStacks(trace.syncs.call[Index(wait.sync)], asked)) {
    return asked;
  }
  const Row launched = wait.null == kNoRow ? wait.after : wait.null;
  return sites.FindCall(trace.device_ops.launch[Index(launched)]);
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
