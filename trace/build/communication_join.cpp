#include "trace/build/communication_join.h"

#include <algorithm>
#include <vector>

#include "trace/base/cancel.h"
#include "trace/tables/communication.h"

namespace trainprof {
namespace {

// Sets those calls of a thread that lie within the range and in no operator within it.
void MarkOwnCalls(const Trace& trace, uint32_t range, std::vector<bool>& is_own) {
  const RangeTable& ranges = trace.ranges;
  const ApiTable& api = trace.api;
  const TrackId thread = ranges.track[range];
  const Interval within = ranges.interval(Row{range});
  const uint32_t last_range = ranges.rows_of(thread).second;
  const auto [first, last] = api.rows_of(thread);
  const auto begin =
      std::lower_bound(api.begin.begin() + first, api.begin.begin() + last, within.begin) -
      api.begin.begin();
  TraceTime operator_end = within.begin;
  uint32_t inner = range + 1;
  for (auto call = static_cast<uint32_t>(begin); call < last && api.begin[call] < within.end;
       ++call) {
    for (; inner < last_range && ranges.begin[inner] <= api.begin[call]; ++inner) {
      const bool computes =
          ranges.kind[inner] == RangeKind::kCpuOp && ranges.name[inner] != ranges.name[range];
      if (computes) operator_end = std::max(operator_end, ranges.end(inner));
    }
    if (api.begin[call] >= operator_end) is_own[call] = true;
  }
}

struct KernelTime {
  Duration communication;
  Duration other;
};

class CommunicationJoin {
 public:
  explicit CommunicationJoin(Trace& trace) : trace_(trace), ops_(trace.device_ops) {}

  void Run() {
    FindLaunched();
    FindTimes();
    if (found_.empty()) return;
    std::sort(found_.begin(), found_.end());
    found_.erase(std::unique(found_.begin(), found_.end()), found_.end());
    trace_.collectives.emplace_back();
    const auto unknown = CollectiveId{static_cast<uint32_t>(trace_.collectives.size() - 1)};
    RareColumn<CollectiveId, kNoCollective> collective;
    collective.Expect(ops_.size());
    auto next = found_.begin();
    for (uint32_t op = 0; op < ops_.size(); ++op) {
      const bool is_found = next != found_.end() && *next == op;
      collective.push_back(is_found ? unknown : ops_.collective[op]);
      if (is_found) ++next;
    }
    ops_.collective = std::move(collective);
  }

 private:
  void FindLaunched() {
    const StringId name = trace_.strings.Find("record_param_comms");
    if (name == kEmptyString) return;
    std::vector<bool> is_own(trace_.api.size());
    for (uint32_t row = 0; row < trace_.ranges.size(); ++row) {
      CancelPoint(row);
      if (trace_.ranges.name[row] == name) MarkOwnCalls(trace_, row, is_own);
    }
    for (uint32_t op = 0; op < ops_.size(); ++op) {
      const Row call = ops_.launch[op];
      if (ops_.kind[op] != DeviceOpKind::kKernel || call == kNoRow) continue;
      if (is_own[Index(call)] && !Communicates(trace_, Row{op})) found_.push_back(op);
    }
  }

  KernelTime TimeOf(TrackId stream) const {
    KernelTime time;
    const auto [first, last] = ops_.rows_of(stream);
    auto next = std::lower_bound(found_.begin(), found_.end(), first);
    for (uint32_t op = first; op < last; ++op) {
      CancelPoint(op);
      if (ops_.kind[op] != DeviceOpKind::kKernel) continue;
      while (next != found_.end() && *next < op) ++next;
      const bool is_found = next != found_.end() && *next == op;
      const bool communicates = is_found || Communicates(trace_, Row{op});
      (communicates ? time.communication : time.other) += ops_.interval(Row{op}).Length();
    }
    return time;
  }

  // After FindLaunched().
  void FindTimes() {
    std::vector<int> streams(trace_.devices.size());  // that did anything
    const auto streams_beside = [&](uint32_t track) -> int* {
      const auto [first, last] = ops_.rows_of(TrackId{track});
      const size_t device = Index(trace_.tracks[track].device);
      return first != last && device < streams.size() ? &streams[device] : nullptr;
    };
    std::vector<KernelTime> times(trace_.tracks.size());
    for (uint32_t track = 0; track < times.size(); ++track) {
      if (int* const beside = streams_beside(track)) ++*beside;
    }
    for (uint32_t track = 0; track < times.size(); ++track) {
      const int* const beside = streams_beside(track);
      if (beside != nullptr && *beside >= 2) times[track] = TimeOf(TrackId{track});
    }
    const auto computes_elsewhere = [&](uint32_t stream) {
      for (uint32_t track = 0; track < times.size(); ++track) {
        if (trace_.tracks[track].device == trace_.tracks[stream].device &&
            times[track].other > times[stream].other) {
          return true;
        }
      }
      return false;
    };
    for (uint32_t stream = 0; stream < times.size(); ++stream) {
      const auto [communication, other] = times[stream];
      if (other.ns == 0 || communication < other || !computes_elsewhere(stream)) continue;
      const auto [first, last] = ops_.rows_of(TrackId{stream});
      for (uint32_t op = first; op < last; ++op) {
        if (ops_.kind[op] == DeviceOpKind::kKernel && !Communicates(trace_, Row{op})) {
          found_.push_back(op);
        }
      }
    }
  }

  Trace& trace_;
  DeviceOpTable& ops_;
  std::vector<uint32_t> found_;  // operations
};

}  // namespace

void JoinCommunication(Trace& trace) { CommunicationJoin(trace).Run(); }

}  // namespace trainprof
