#include "trace/build/sync_join.h"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "trace/base/cancel.h"

namespace trainprof {
namespace {

// Whether a row of the device's side waits for an event.
bool WaitsForEvent(SyncKind kind) {
  return kind == SyncKind::kEvent || kind == SyncKind::kStreamWaits;
}

bool WaitsForNoStream(SyncKind kind) {
  return kind == SyncKind::kContext || kind == SyncKind::kHostFunction;
}

class SyncJoin {
 public:
  explicit SyncJoin(Trace& trace) : trace_(trace), syncs_(trace.syncs) {}

  void Run() {
    const size_t rows = syncs_.size();
    syncs_.call.assign(rows, kNoRow);
    syncs_.record.assign(rows, kNoRow);
    syncs_.awaited.assign(rows, kNoTrack);
    if (rows == 0) return;
    CollectCalls();
    CollectDrivers();
    CollectStreams();
    for (uint32_t row = 0; row < rows; ++row) {
      CancelPoint(row);
      const ProcessId host = HostOf(trace_.ProcessOf(syncs_.track[row]));
      syncs_.call[row] = CallOf(syncs_.correlation[row], host);
      if (WaitsForEvent(syncs_.kind[row])) {
        syncs_.record[row] = CallOf(syncs_.waited_record[row], host);
        syncs_.awaited[row] = StreamOfEvent(row);
      } else if (!WaitsForNoStream(syncs_.kind[row])) {
        syncs_.awaited[row] = OwnStream(row);
      }
    }
  }

 private:
  struct Call {
    int64_t correlation;
    ProcessId process;
    uint32_t row;
  };

  bool IsRecording() const { return trace_.source == SourceKind::kRecording; }

  // Calls of ids that syncs name; of a runtime call and the driver call within it, the wider one.
  void CollectCalls() {
    // By their lowest bits: some more come along, which nobody will ask for.
    std::vector<bool> wanted(std::bit_ceil(16 * syncs_.size()));
    const auto bit = [&](int64_t id) { return static_cast<uint64_t>(id) & (wanted.size() - 1); };
    for (const int64_t id : syncs_.correlation) wanted[bit(id)] = true;
    for (const int64_t id : syncs_.waited_record) wanted[bit(id)] = true;
    const ApiTable& api = trace_.api;
    for (uint32_t row = 0; row < api.size(); ++row) {
      CancelPoint(row);
      if (!wanted[bit(api.correlation[row])]) continue;
      calls_.push_back({api.correlation[row], trace_.ProcessOf(api.track[row]), row});
    }
    std::sort(calls_.begin(), calls_.end(), [&](const Call& a, const Call& b) {
      const auto width = [&](const Call& call) { return api.end(call.row) - api.begin[call.row]; };
      if (a.correlation != b.correlation) return a.correlation < b.correlation;
      if (a.process != b.process) return a.process < b.process;
      return std::tuple(width(b), a.row) < std::tuple(width(a), b.row);
    });
  }

  // Kineto's devices are processes of their own.
  void CollectDrivers() {
    const DeviceOpTable& ops = trace_.device_ops;
    for (uint32_t row = 0; row < ops.size(); ++row) {
      CancelPoint(row);
      if (ops.launch[row] == kNoRow) continue;
      const ProcessId host = trace_.ProcessOf(trace_.api.track[Index(ops.launch[row])]);
      const auto [driver, is_new] = driver_of_.try_emplace(trace_.ProcessOf(ops.track[row]), host);
      if (!is_new && driver->second != host) driver->second = kNoProcess;
    }
  }

  // kNoProcess: not known, or several.
  ProcessId HostOf(ProcessId device) const {
    if (IsRecording()) return device;
    const auto driver = driver_of_.find(device);
    return driver == driver_of_.end() ? kNoProcess : driver->second;
  }

  Row CallOf(int64_t correlation, ProcessId host) const {
    if (correlation == kNoCorrelation) return kNoRow;
    const auto first = std::partition_point(calls_.begin(), calls_.end(), [&](const Call& call) {
      return call.correlation < correlation;
    });
    bool is_one_process = true;
    auto call = first;
    for (; call != calls_.end() && call->correlation == correlation; ++call) {
      if (call->process == host) return Row{call->row};
      is_one_process = is_one_process && call->process == first->process;
    }
    if (call == first || !is_one_process || IsRecording()) return kNoRow;
    return Row{first->row};
  }

  void CollectStreams() {
    for (uint32_t id = 0; id < trace_.tracks.size(); ++id) {
      const Track& track = trace_.tracks[id];
      if (track.kind != TrackKind::kStream) continue;
      streams_[{track.tid, track.device}].push_back(TrackId{id});
    }
  }

  // Of its process and device alone, or of its device alone: kineto's devices are processes.
  TrackId StreamOn(DeviceId device, int64_t number, ProcessId process) const {
    const auto found = streams_.find({number, device});
    if (found == streams_.end()) return kNoTrack;
    const TrackId only = found->second.size() == 1 ? found->second[0] : kNoTrack;
    for (const TrackId track : found->second) {
      if (trace_.ProcessOf(track) == process) return track;
    }
    return IsRecording() ? kNoTrack : only;
  }

  TrackId StreamOfEvent(uint32_t row) const {
    const int64_t number = syncs_.waited_stream[row];
    if (number == kNoCorrelation) return kNoTrack;
    const Track& own = trace_.tracks[Index(syncs_.track[row])];
    const int64_t device_id = syncs_.waited_device[row];
    if (device_id == kNoCorrelation) {
      // The stream of that number, where one device alone has one.
      const auto first = streams_.lower_bound({number, DeviceId{0}});
      if (first == streams_.end() || first->first.first != number) return kNoTrack;
      const auto second = std::next(first);
      const bool is_only = second == streams_.end() || second->first.first != number;
      return is_only ? StreamOn(first->first.second, number, own.process) : kNoTrack;
    }
    for (uint32_t i = 0; i < trace_.devices.size(); ++i) {
      if (trace_.devices[i].id != device_id) continue;
      return StreamOn(DeviceId{i}, number, own.process);
    }
    return kNoTrack;
  }

  // CUPTI has a stream of its own for waits of the host for no stream in particular.
  TrackId OwnStream(uint32_t row) const {
    const TrackId track = syncs_.track[row];
    const Track& own = trace_.tracks[Index(track)];
    return own.kind == TrackKind::kStream && own.tid >= 0 ? track : kNoTrack;
  }

  Trace& trace_;
  SyncTable& syncs_;
  std::vector<Call> calls_;  // by (correlation, process), the widest first
  std::map<ProcessId, ProcessId> driver_of_;
  std::map<std::pair<int64_t, DeviceId>, std::vector<TrackId>> streams_;
};

}  // namespace

void JoinSyncs(Trace& trace) { SyncJoin(trace).Run(); }

}  // namespace trainprof
