#include "analysis/account/missing_work.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "trace/base/cancel.h"
#include "trace/build/missing_rows.h"

namespace trainprof {
namespace {

using Period = MissingWork::Period;

// A launch of a thread, with the operation that shows it or without.
struct Launch {
  TraceTime begin;
  bool missing = false;
  TrackId stream = kNoTrack;  // of its first operation on the device
  TraceTime runs{};           // when that began
};

// Sorts and merges; where periods of several threads meet, nobody in particular is waited for.
void Merge(std::vector<Period>& periods) {
  std::sort(periods.begin(), periods.end(),
            [](const Period& a, const Period& b) { return a.interval < b.interval; });
  size_t kept = 0;
  for (const Period& period : periods) {
    if (period.interval.Empty()) continue;
    if (kept > 0 && period.interval.begin <= periods[kept - 1].interval.end) {
      Period& last = periods[kept - 1];
      last.interval.end = std::max(last.interval.end, period.interval.end);
      if (last.thread != period.thread) last.thread = kNoTrack;
    } else {
      periods[kept++] = period;
    }
  }
  periods.resize(kept);
}

bool WaitsForDevice(std::string_view name) {
  return name.find("DeviceSynchronize") != std::string_view::npos ||
         name.find("CtxSynchronize") != std::string_view::npos;
}

// What the launches of one thread tell.
struct Thread {
  std::vector<Row> missing;                          // in order of begin
  size_t shown = 0;                                  // launches that have rows
  std::map<DeviceId, std::vector<Launch>> launches;  // that have rows, one a call and device
  std::vector<Interval> waits;                       // for the whole device
};

std::map<TrackId, Thread> ThreadsWithMissing(const Trace& trace, const std::vector<Row>& missing) {
  std::map<TrackId, Thread> threads;
  for (const Row call : missing) {
    threads[trace.api.track[Index(call)]].missing.push_back(call);
  }
  if (threads.empty()) return threads;
  std::vector<Thread*> of_track(trace.tracks.size(), nullptr);
  for (auto& [track, thread] : threads) of_track[Index(track)] = &thread;
  std::vector<bool> seen(trace.api.size(), false);
  const DeviceOpTable& ops = trace.device_ops;
  for (uint32_t op = 0; op < ops.size(); ++op) {
    CancelPoint(op);
    if (ops.launch[op] == kNoRow) continue;
    const size_t call = Index(ops.launch[op]);
    Thread* const thread = of_track[Index(trace.api.track[call])];
    const DeviceId device = trace.tracks[Index(ops.track[op])].device;
    if (thread == nullptr || device == kNoDevice) continue;
    thread->shown += seen[call] ? 0 : 1;
    seen[call] = true;
    thread->launches[device].push_back(
        {trace.api.begin[call], false, ops.track[op], ops.begin[op]});
  }
  std::map<StringId, bool> waits;
  for (uint32_t call = 0; call < trace.api.size(); ++call) {
    CancelPoint(call);
    Thread* const thread = of_track[Index(trace.api.track[call])];
    if (thread == nullptr || trace.api.kind[call] != ApiKind::kSync) continue;
    const StringId name = trace.api.name[call];
    const auto [it, is_new] = waits.try_emplace(name, false);
    if (is_new) it->second = WaitsForDevice(trace.Text(name));
    if (it->second) thread->waits.push_back(trace.api.interval(Row{call}));
  }
  return threads;
}

// When the thread's wait for the device ends that it began at `begin` or later. Waits of one thread
// come one after the other; of several devices it is not known for which one it waited.
TraceTime WaitedFor(const Thread& thread, TraceTime begin) {
  if (thread.launches.size() > 1) return TraceTime{INT64_MAX};
  const auto wait = std::lower_bound(thread.waits.begin(), thread.waits.end(), begin,
                                     [](const Interval& w, TraceTime t) { return w.begin < t; });
  return wait == thread.waits.end() ? TraceTime{INT64_MAX} : wait->end;
}

// The thread's missing launches, as far as a device may have run them. `launches`: its others
// there.
void AddPeriods(const Trace& trace, TrackId track, const Thread& thread,
                std::vector<Launch> launches, std::vector<Period>& out) {
  std::set<TrackId> streams;
  for (const Launch& launch : launches) streams.insert(launch.stream);
  const size_t all = thread.shown + thread.missing.size();
  const bool order_proves = thread.missing.size() * kMostMissing <= all && !streams.empty();
  for (const Row call : thread.missing) launches.push_back({trace.api.begin[Index(call)], true});
  // From the last back; of launches at one moment none is later than another.
  std::sort(launches.begin(), launches.end(), [](const Launch& a, const Launch& b) {
    return std::tuple(b.begin, b.missing, b.runs) < std::tuple(a.begin, a.missing, a.runs);
  });
  std::map<TrackId, TraceTime> next;     // by stream: when what was launched next on it began
  std::multiset<TraceTime> next_begins;  // the same
  size_t asked = 0;
  for (const Launch& launch : launches) {
    CancelPoint(asked++);
    if (!launch.missing) {
      const auto [it, is_new] = next.try_emplace(launch.stream, launch.runs);
      if (!is_new) {
        next_begins.erase(next_begins.find(it->second));
        it->second = launch.runs;
      }
      next_begins.insert(launch.runs);
      continue;
    }
    TraceTime done = WaitedFor(thread, launch.begin);
    if (order_proves && next.size() == streams.size()) done = std::min(done, *next_begins.rbegin());
    out.push_back({{launch.begin, done}, track});
  }
}

// Work whose launches are not in the trace at all is missing then, too: nothing is sure.
bool AnyRowMayBeMissing(const Trace& trace, const std::vector<Row>& missing) {
  if (trace.quality.CountOf(kTruncatedInput) > 0) return true;
  if (missing.empty()) return false;
  std::vector<bool> shown(trace.api.size(), false);
  for (const Row launch : trace.device_ops.launch) {
    if (launch != kNoRow) shown[Index(launch)] = true;
  }
  const auto known = static_cast<size_t>(std::count(shown.begin(), shown.end(), true));
  return missing.size() * kMostMissing > missing.size() + known;
}

}  // namespace

MissingWork::MissingWork(const Trace& trace) : on_device_(trace.devices.size()) {
  const std::vector<Row> missing = LaunchesWithoutRow(trace);
  if (AnyRowMayBeMissing(trace, missing)) {
    for (auto& periods : on_device_) {
      periods.push_back({{TraceTime{INT64_MIN}, TraceTime{INT64_MAX}}, kNoTrack});
    }
    return;
  }
  AddLaunches(trace, missing);
  AddUnknownRows(trace);
  for (auto& periods : on_device_) Merge(periods);
}

void MissingWork::AddLaunches(const Trace& trace, const std::vector<Row>& missing) {
  for (const auto& [track, thread] : ThreadsWithMissing(trace, missing)) {
    for (const auto& [device, launches] : thread.launches) {
      AddPeriods(trace, track, thread, launches, on_device_[Index(device)]);
    }
    if (!thread.launches.empty()) continue;
    for (auto& periods : on_device_) AddPeriods(trace, track, thread, {}, periods);
  }
}

void MissingWork::AddUnknownRows(const Trace& trace) {
  const std::vector<Row> rows = UnknownDeviceRows(trace);
  const std::vector<Row> calls = CallsOfUnknownRows(trace, rows);
  for (size_t i = 0; i < rows.size(); ++i) {
    const DeviceId device = trace.tracks[Index(trace.ranges.track[Index(rows[i])])].device;
    if (device == kNoDevice) continue;
    Period period{trace.ranges.interval(rows[i]), kNoTrack};
    if (calls[i] != kNoRow) {
      period.interval.begin = std::min(period.interval.begin, trace.api.begin[Index(calls[i])]);
      period.thread = trace.api.track[Index(calls[i])];
    }
    on_device_[Index(device)].push_back(period);
  }
}

}  // namespace trainprof
