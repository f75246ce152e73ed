#include "analysis/account/missing_work.h"

#include <algorithm>
#include <map>

#include "trace/base/cancel.h"
#include "trace/base/large_columns.h"
#include "trace/base/sort_runs.h"
#include "trace/build/missing_rows.h"

namespace trainprof {
namespace {

using Period = MissingWork::Period;

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
  std::vector<Row> missing;  // in order of begin
  size_t shown = 0;          // launches that have rows
  // What shows on a device, of those that the thread drives, that a missing launch is done, by `missing`.
  struct Device {
    size_t streams = 0;              // of the thread's
    std::vector<size_t> went_on;     // so many began something that was launched later
    std::vector<TraceTime> until{};  // the last of them did
  };
  std::map<DeviceId, Device> devices;
  std::vector<Interval> waits;  // for the whole device
};

using Threads = std::map<TrackId, Thread>;

// What a thread launched on one stream: when, and when that began there.
using Launches = std::vector<std::pair<TraceTime, TraceTime>>;

void AddStream(const Trace& trace, Launches launches, Thread& thread, Thread::Device& device) {
  SortRuns(launches, [](const auto& launch) { return launch; });
  ++device.streams;
  device.went_on.resize(thread.missing.size());
  device.until.resize(thread.missing.size(), TraceTime{INT64_MIN});
  auto next = launches.end();  // what was launched behind the missing one
  for (size_t i = thread.missing.size(); i-- > 0;) {
    CancelPoint(i);
    const TraceTime begin = trace.api.begin[Index(thread.missing[i])];
    while (next != launches.begin() && begin < (next - 1)->first) --next;
    if (next == launches.end()) continue;
    ++device.went_on[i];
    device.until[i] = std::max(device.until[i], next->second);
  }
}

void AddShown(const Trace& trace, Threads& threads) {
  std::vector<Thread*> of_track(trace.tracks.size(), nullptr);
  for (auto& [track, thread] : threads) of_track[Index(track)] = &thread;
  std::vector<bool> seen(trace.api.size(), false);
  const DeviceOpTable& ops = trace.device_ops;
  for (uint32_t stream = 0; stream < trace.tracks.size(); ++stream) {
    const auto [first, last] = ops.rows_of(TrackId{stream});
    const DeviceId device = trace.tracks[stream].device;
    if (first == last || device == kNoDevice) continue;
    std::map<Thread*, Launches> launches;
    Launches* of_thread = nullptr;  // of the thread that launched last
    Thread* last_thread = nullptr;
    for (uint32_t op = first; op < last; ++op) {
      CancelPoint(op);
      if (ops.launch[op] == kNoRow) continue;
      const size_t call = Index(ops.launch[op]);
      Thread* const thread = of_track[Index(trace.api.track[call])];
      if (thread == nullptr) continue;
      thread->shown += seen[call] ? 0 : 1;
      seen[call] = true;
      if (thread != last_thread) of_thread = &launches[thread];
      last_thread = thread;
      AddLarge(*of_thread, {trace.api.begin[call], ops.begin[op]});
    }
    for (auto& [thread, of] : launches) {
      AddStream(trace, std::move(of), *thread, thread->devices[device]);
    }
  }
}

void AddWaits(const Trace& trace, TrackId track, Thread& thread) {
  std::map<StringId, bool> waits;
  const auto [first, last] = trace.api.rows_of(track);
  for (uint32_t call = first; call < last; ++call) {
    CancelPoint(call);
    if (trace.api.kind[call] != ApiKind::kSync) continue;
    const StringId name = trace.api.name[call];
    const auto [it, is_new] = waits.try_emplace(name, false);
    if (is_new) it->second = WaitsForDevice(trace.Text(name));
    if (it->second) thread.waits.push_back(trace.api.interval(Row{call}));
  }
}

Threads ThreadsWithMissing(const Trace& trace, const std::vector<Row>& missing) {
  Threads threads;
  for (const Row call : missing) {
    threads[trace.api.track[Index(call)]].missing.push_back(call);
  }
  if (threads.empty()) return threads;
  AddShown(trace, threads);
  for (auto& [track, thread] : threads) AddWaits(trace, track, thread);
  return threads;
}

// When the thread's wait for the device ends that it began at `begin` or later. Waits of one thread
// come one after the other; of several devices it is not known for which one it waited.
TraceTime WaitedFor(const Thread& thread, TraceTime begin) {
  if (thread.devices.size() > 1) return TraceTime{INT64_MAX};
  const auto wait = std::lower_bound(thread.waits.begin(), thread.waits.end(), begin,
                                     [](const Interval& w, TraceTime t) { return w.begin < t; });
  return wait == thread.waits.end() ? TraceTime{INT64_MAX} : wait->end;
}

// The thread's missing launches, as far as a device may have run them; nullptr: its others tell of none.
void AddPeriods(const Trace& trace, TrackId track, const Thread& thread,
                const Thread::Device* device, std::vector<Period>& out) {
  const size_t all = thread.shown + thread.missing.size();
  const bool order_proves = thread.missing.size() * kMostMissing <= all && device != nullptr;
  for (size_t i = 0; i < thread.missing.size(); ++i) {
    CancelPoint(i);
    const TraceTime begin = trace.api.begin[Index(thread.missing[i])];
    TraceTime done = WaitedFor(thread, begin);
    if (order_proves && device->went_on[i] == device->streams) {
      done = std::min(done, device->until[i]);
    }
    out.push_back({{begin, done}, track});
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

MissingWork::MissingWork(const Trace& trace, const std::vector<Row>& missing)
    : on_device_(trace.devices.size()) {
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
    for (const auto& [id, device] : thread.devices) {
      AddPeriods(trace, track, thread, &device, on_device_[Index(id)]);
    }
    if (!thread.devices.empty()) continue;
    for (auto& periods : on_device_) AddPeriods(trace, track, thread, nullptr, periods);
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
