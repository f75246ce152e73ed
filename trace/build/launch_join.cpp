// One pass with a table of the calls by their ids; files in which several host processes use the
// same ids take a second, slower path that collects evidence for each operation's process.
#include "trace/build/launch_join.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "trace/base/cancel.h"
#include "trace/base/large_columns.h"
#include "trace/base/parallel.h"

namespace trainprof {
namespace {

// A device's times are interpolated: some microseconds of difference are the rule.
constexpr Duration kClocksAgreeWithin = Milliseconds(1);

Duration WidthOf(const Trace& trace, uint32_t call) {
  return trace.api.end(call) - trace.api.begin[call];
}

// Calls f(track, first row, row behind the last) for each track.
template <class F>
void ForEachRun(const EventColumns& table, F f) {
  for (uint32_t track = 0; track + 1 < table.track_begin.size(); ++track) {
    f(TrackId{track}, table.track_begin[track], table.track_begin[track + 1]);
  }
}

// Of ids that follow one another so many are kept together: correlation ids of a process, which counts them up.
constexpr int kPageBits = 10;
constexpr size_t kPage = size_t{1} << kPageBits;

// The ids that a process, or several, gave to its calls.
struct IdRange {
  int64_t lowest = INT64_MAX;
  int64_t highest = INT64_MIN;
  size_t ids = 0;
  size_t pages = 0;  // at most
  int64_t last_page = INT64_MIN;

  void Add(int64_t id) {
    if (id == kNoCorrelation) return;
    lowest = std::min(lowest, id);
    highest = std::max(highest, id);
    ++ids;
    pages += id >> kPageBits == last_page ? 0 : 1;
    last_page = id >> kPageBits;
  }
};

// Correlation id -> call. Pages of ids, found by their number, unless the ids lie too far apart for that: then they
// stand in a hash table.
class CallsById {
 public:
  // No others will be added.
  explicit CallsById(const IdRange& range) {
    constexpr size_t kMostBytesPerId = 32;  // a slot takes 16, one in five is free
    if (range.ids == 0) return;
    first_page_ = range.lowest >> kPageBits;
    const uint64_t numbers =
        static_cast<uint64_t>(range.highest >> kPageBits) - static_cast<uint64_t>(first_page_) + 1;
    const size_t most = kMostBytesPerId * std::max(range.ids, kPage);
    if (numbers <= most / 8 &&
        4 * (numbers + kPage * std::min<size_t>(numbers, range.pages)) <= most) {
      AssignLarge(page_of_, numbers);
      ReserveLarge(calls_, kPage * (1 + std::min<size_t>(numbers, range.pages)));
      calls_.resize(kPage, kNone);
    } else {
      const size_t slots = std::bit_ceil(range.ids + range.ids / 4 + 1);  // one is always free
      ReserveLarge(sparse_, slots);
      sparse_.resize(slots);
    }
  }

  // The call of that id, kNone for a new one: to be assigned then.
  uint32_t& At(int64_t id) {
    if (page_of_.empty()) {
      Slot& slot = sparse_[SlotOf(id)];
      slot.id = id;
      return slot.call;
    }
    uint32_t& page = page_of_[PageNumber(id)];
    if (page == 0) {
      page = static_cast<uint32_t>(calls_.size() >> kPageBits);
      calls_.resize(calls_.size() + kPage, kNone);
    }
    return calls_[PlaceIn(page, id)];
  }
  Row Find(int64_t id) const {
    if (!page_of_.empty()) {
      const uint64_t number = PageNumber(id);
      return number < page_of_.size() ? Row{calls_[PlaceIn(page_of_[number], id)]} : kNoRow;
    }
    return sparse_.empty() ? kNoRow : Row{sparse_[SlotOf(id)].call};
  }

  static constexpr uint32_t kNone = static_cast<uint32_t>(kNoRow);

 private:
  struct Slot {
    int64_t id = 0;
    uint32_t call = kNone;  // the slot is free
  };

  uint64_t PageNumber(int64_t id) const {
    return static_cast<uint64_t>(id >> kPageBits) - static_cast<uint64_t>(first_page_);
  }
  static size_t PlaceIn(uint32_t page, int64_t id) {
    return size_t{page} << kPageBits | (static_cast<uint64_t>(id) & (kPage - 1));
  }
  // Where the id is, or the free slot where it belongs. Ids that follow one another stand so.
  size_t SlotOf(int64_t id) const {
    const size_t mask = sparse_.size() - 1;
    const uint64_t mix = static_cast<uint64_t>(id) / kIdsTogether * 0x9E3779B97F4A7C15ull;
    size_t at = (mix ^ mix >> 32) * kIdsTogether + static_cast<uint64_t>(id) % kIdsTogether;
    for (at &= mask; sparse_[at].call != kNone && sparse_[at].id != id;) at = (at + 1) & mask;
    return at;
  }

  static constexpr uint64_t kIdsTogether = 4;  // in one line of a cache
  int64_t first_page_ = 0;
  std::vector<uint32_t> page_of_;  // by number from first_page_; 0: none of its ids is known
  std::vector<uint32_t> calls_;    // by page, the first of which is nobody's
  std::vector<Slot> sparse_;       // a power of two
};

// `calls_of(row)`: the calls of which one may have launched that operation.
template <class CallsOf>
void FindLaunches(DeviceOpTable& ops, const CallsOf& calls_of) {
  constexpr size_t kAtOnce = size_t{1} << 17;  // rows that are worth the start of a thread
  RunParts(ops.size(), kAtOnce, [&](size_t first, size_t last) {
    for (size_t row = first; row < last; ++row) {
      CancelPoint(row);
      if (ops.correlation[row] == kNoCorrelation) continue;
      ops.launch[row] = calls_of(row).Find(ops.correlation[row]);
    }
  });
}

// Joins by the id alone. Runtime calls win over the driver calls that they make (same id, nested):
// the widest call is the launch. False: an id occurs in two processes, nothing was joined.
bool JoinByIdAlone(Trace& trace) {
  const ApiTable& api = trace.api;
  IdRange range;
  for (size_t row = 0; row < api.size(); ++row) range.Add(api.correlation[row]);
  CallsById calls(range);
  for (uint32_t row = 0; row < api.size(); ++row) {
    CancelPoint(row);
    if (api.correlation[row] == kNoCorrelation) continue;
    uint32_t& call = calls.At(api.correlation[row]);
    if (call == CallsById::kNone) {
      call = row;
      continue;
    }
    if (trace.ProcessOf(api.track[row]) != trace.ProcessOf(api.track[call])) return false;
    if (WidthOf(trace, row) > WidthOf(trace, call)) call = row;
  }
  FindLaunches(trace.device_ops, [&](size_t) -> const CallsById& { return calls; });
  return true;
}

// Joins within each process: the operations of a recording stand in the process that issued them.
void JoinByProcess(Trace& trace) {
  const ApiTable& api = trace.api;
  std::vector<IdRange> ranges(trace.processes.size());
  ForEachRun(api, [&](TrackId track, uint32_t first, uint32_t last) {
    IdRange& range = ranges[Index(trace.ProcessOf(track))];
    for (uint32_t row = first; row < last; ++row) range.Add(api.correlation[row]);
  });
  std::vector<CallsById> calls_of;
  for (const IdRange& range : ranges) calls_of.emplace_back(range);
  ForEachRun(api, [&](TrackId track, uint32_t first, uint32_t last) {
    CallsById& calls = calls_of[Index(trace.ProcessOf(track))];
    for (uint32_t row = first; row < last; ++row) {
      CancelPoint(row);
      if (api.correlation[row] == kNoCorrelation) continue;
      uint32_t& call = calls.At(api.correlation[row]);
      if (call == CallsById::kNone || WidthOf(trace, row) > WidthOf(trace, call)) call = row;
    }
  });
  FindLaunches(trace.device_ops, [&](size_t row) -> const CallsById& {
    return calls_of[Index(trace.ProcessOf(trace.device_ops.track[row]))];
  });
}

// Calls that start no work on a device, whatever their id.
bool CannotLaunch(ApiKind kind) {
  switch (kind) {
    case ApiKind::kSync:
    case ApiKind::kAllocate:
    case ApiKind::kFree:
    case ApiKind::kStreamWait:
    case ApiKind::kQuery:
      return true;
    default:
      return false;
  }
}

// Joins where ids collide between processes. An operation's candidates are the calls of its id, one
// a process. What cannot have launched it is struck out, arrows of the source narrow the rest; the
// operations that are then certain say which process drives which device, and that decides others.
class MergedJoin {
 public:
  explicit MergedJoin(Trace& trace) : trace_(trace) {}

  // Returns how many operations stay undecided.
  int64_t Run() {
    CollectCalls();
    CollectArrows();
    CollectCandidates();
    while (DecideSome()) {
    }
    DropForeign();
    int64_t undecided = 0;
    for (const Operation& op : operations_) undecided += op.candidates.size() > 1 ? 1 : 0;
    return undecided;
  }

 private:
  struct Call {
    int64_t correlation;
    ProcessId process;
    uint32_t row;
  };
  struct Operation {
    uint32_t row = 0;
    std::vector<Call> candidates;
    bool counted = false;      // in votes_ and taken_
    bool by_evidence = false;  // an arrow or the exclusion of others named the process
  };
  using ArrowKey = std::pair<StringId, int64_t>;  // category, id

  void CollectCalls() {
    const ApiTable& api = trace_.api;
    for (uint32_t row = 0; row < api.size(); ++row) {
      if (api.correlation[row] == kNoCorrelation) continue;
      calls_.push_back({api.correlation[row], trace_.ProcessOf(api.track[row]), row});
    }
    size_t asked = 0;
    std::sort(calls_.begin(), calls_.end(), [&](const Call& a, const Call& b) {
      CancelPoint(++asked);
      const Duration wide_a = WidthOf(trace_, a.row);
      const Duration wide_b = WidthOf(trace_, b.row);
      return std::tie(a.correlation, a.process, wide_b, a.row) <
             std::tie(b.correlation, b.process, wide_a, b.row);
    });
    const auto same = [](const Call& a, const Call& b) {
      return a.correlation == b.correlation && a.process == b.process;
    };
    calls_.erase(std::unique(calls_.begin(), calls_.end(), same), calls_.end());
  }

  void CollectArrows() {
    const FlowTable& flows = trace_.flows;
    for (uint32_t row = 0; row < flows.size(); ++row) {
      if (flows.phase[row] != 's') continue;
      starts_.emplace_back(ArrowKey{flows.category[row], flows.id[row]},
                           trace_.ProcessOf(flows.track[row]));
    }
    std::sort(starts_.begin(), starts_.end());
  }

  // The processes from which the arrows that end in an operation come.
  std::vector<ProcessId> ArrowsInto(uint32_t op) const {
    const FlowTable& flows = trace_.flows;
    const DeviceOpTable& ops = trace_.device_ops;
    std::vector<ProcessId> processes;
    const auto [first, last] = flows.rows_of(ops.track[op]);
    auto at =
        std::lower_bound(flows.begin.begin() + first, flows.begin.begin() + last, ops.begin[op]);
    for (; at != flows.begin.begin() + last && *at == ops.begin[op]; ++at) {
      const auto row = static_cast<size_t>(at - flows.begin.begin());
      if (flows.phase[row] != 'f') continue;
      const ArrowKey key{flows.category[row], flows.id[row]};
      auto start = std::lower_bound(starts_.begin(), starts_.end(), std::pair(key, ProcessId{0}));
      for (; start != starts_.end() && start->first == key; ++start) {
        processes.push_back(start->second);
      }
    }
    return processes;
  }

  void CollectCandidates() {
    const DeviceOpTable& ops = trace_.device_ops;
    for (uint32_t row = 0; row < ops.size(); ++row) {
      CancelPoint(row);
      if (ops.correlation[row] == kNoCorrelation) continue;
      Operation op;
      op.row = row;
      const Call probe{ops.correlation[row], ProcessId{0}, 0};
      auto call = std::lower_bound(
          calls_.begin(), calls_.end(), probe,
          [](const Call& a, const Call& b) { return a.correlation < b.correlation; });
      for (; call != calls_.end() && call->correlation == probe.correlation; ++call) {
        op.candidates.push_back(*call);
      }
      if (op.candidates.empty()) continue;
      if (op.candidates.size() > 1) Narrow(op);
      operations_.push_back(std::move(op));
    }
  }

  // Strikes out what cannot have launched the operation, unless that leaves nothing.
  void Narrow(Operation& op) const {
    const auto keep = [&](auto holds) {
      std::vector<Call> kept;
      std::copy_if(op.candidates.begin(), op.candidates.end(), std::back_inserter(kept), holds);
      if (!kept.empty()) op.candidates = std::move(kept);
    };
    const TraceTime end = trace_.device_ops.end(op.row);
    keep([&](const Call& call) {
      return !CannotLaunch(trace_.api.kind[call.row]) && trace_.api.begin[call.row] <= end;
    });
    const std::vector<ProcessId> arrows = ArrowsInto(op.row);
    keep([&](const Call& call) {
      return std::find(arrows.begin(), arrows.end(), call.process) != arrows.end();
    });
    op.by_evidence = op.candidates.size() == 1;
  }

  ProcessId DeviceOf(const Operation& op) const {
    return trace_.ProcessOf(trace_.device_ops.track[op.row]);
  }

  // The process that launched nearly all that is certain on a device, or kNoProcess.
  ProcessId DriverOf(ProcessId device) const {
    constexpr int64_t kNearlyAll = 10;  // nine in ten
    int64_t all = 0;
    std::pair<int64_t, ProcessId> most{0, kNoProcess};
    for (auto it = votes_.lower_bound({device, ProcessId{0}});
         it != votes_.end() && it->first.first == device; ++it) {
      all += it->second;
      most = std::max(most, std::pair(it->second, it->first.second));
    }
    return (all - most.first) * kNearlyAll <= all ? most.second : kNoProcess;
  }

  // Counts what has become certain, then decides by it. False when nothing changed.
  bool DecideSome() {
    size_t asked = 0;
    for (Operation& op : operations_) {
      CancelPoint(asked++);
      if (op.counted || op.candidates.size() != 1) continue;
      op.counted = true;
      ++votes_[{DeviceOf(op), op.candidates[0].process}];
      taken_.emplace(op.candidates[0].row, DeviceOf(op));
    }
    bool changed = false;
    std::map<ProcessId, ProcessId> driver_of;
    for (Operation& op : operations_) {
      CancelPoint(asked++);
      if (op.candidates.size() == 1) continue;
      const ProcessId device = DeviceOf(op);
      const auto [driver, is_new] = driver_of.try_emplace(device, kNoProcess);
      if (is_new) driver->second = DriverOf(device);
      std::vector<Call> left;
      for (const Call& call : op.candidates) {
        if (driver->second == kNoProcess ? !TakenElsewhere(call.row, device)
                                         : call.process == driver->second) {
          left.push_back(call);
        }
      }
      if (left.empty() || left.size() == op.candidates.size()) continue;
      op.candidates = std::move(left);
      changed = true;
    }
    return changed;
  }

  // One call does not launch on two devices.
  bool TakenElsewhere(uint32_t call, ProcessId device) const {
    const auto it = taken_.lower_bound({call, ProcessId{0}});
    return it != taken_.end() && it->first == call && !taken_.contains(std::pair(call, device));
  }

  // An id that only one process has may still be another's whose own call was not recorded.
  void DropForeign() {
    std::map<ProcessId, ProcessId> driver_of;
    for (const Operation& op : operations_) {
      if (op.candidates.size() != 1) continue;
      const ProcessId device = DeviceOf(op);
      const auto [driver, is_new] = driver_of.try_emplace(device, kNoProcess);
      if (is_new) driver->second = DriverOf(device);
      const Call& call = op.candidates[0];
      if (!op.by_evidence && driver->second != kNoProcess && call.process != driver->second) {
        continue;
      }
      trace_.device_ops.launch[op.row] = Row{call.row};
    }
  }

  Trace& trace_;
  std::vector<Call> calls_;  // by (correlation, process)
  std::vector<std::pair<ArrowKey, ProcessId>> starts_;
  std::vector<Operation> operations_;                         // that have candidates
  std::map<std::pair<ProcessId, ProcessId>, int64_t> votes_;  // device's process, host process
  std::set<std::pair<uint32_t, ProcessId>> taken_;            // call, the process of the device
};

// A node that seems to be another call's has that call's number by mistake.
int64_t DropNodesOfOtherCalls(Trace& trace) {
  DeviceOpTable& ops = trace.device_ops;
  int64_t dropped = 0;
  for (uint32_t row = 0; row < ops.size(); ++row) {
    if (ops.launch[row] == kNoRow) continue;
    const LaunchConfig* const config = trace.ConfigOf(Row{row});
    if (config == nullptr || config->graph_node == LaunchConfig::kUnknown) continue;
    const ApiKind kind = trace.api.kind[Index(ops.launch[row])];
    if (!StartsWork(kind) || kind == ApiKind::kGraphLaunch) continue;
    ops.launch[row] = kNoRow;
    ++dropped;
  }
  return dropped;
}

}  // namespace

void JoinLaunches(Trace& trace) {
  DeviceOpTable& ops = trace.device_ops;
  ReserveLarge(ops.launch, ops.size());
  ops.launch.assign(ops.size(), kNoRow);
  int64_t ambiguous = 0;
  if (trace.source == SourceKind::kRecording) {
    JoinByProcess(trace);
  } else if (!JoinByIdAlone(trace)) {
    ambiguous = MergedJoin(trace).Run();
  }
  const int64_t others = DropNodesOfOtherCalls(trace);
  int64_t kernels_alone = 0;
  int64_t copies_alone = 0;
  int64_t too_early = 0;
  for (uint32_t row = 0; row < ops.size(); ++row) {
    if (ops.launch[row] == kNoRow) {
      ++(ops.kind[row] == DeviceOpKind::kKernel ? kernels_alone : copies_alone);
    } else if (ops.begin[row] + kClocksAgreeWithin < trace.api.begin[Index(ops.launch[row])]) {
      ++too_early;
    }
  }
  trace.quality.Count("kernel_without_launch", QualitySeverity::kInfo, kernels_alone,
                      "kernels whose launching call is not in the trace");
  trace.quality.Count("copy_without_launch", QualitySeverity::kInfo, copies_alone,
                      "copies and memsets whose launching call is not in the trace");
  trace.quality.Count(
      "graph_nodes_of_other_calls", QualitySeverity::kWarning, others,
      "nodes of CUDA graphs with the number of a call that launches no graph, as CUPTI before "
      "13.1 update 1 may give them; left without a launch");
  const bool ours = trace.source == SourceKind::kRecording;
  trace.quality.Count(
      "device_before_launch", ours ? QualitySeverity::kDataLoss : QualitySeverity::kWarning,
      too_early,
      "device operations that begin more than 1 ms before the call that launched them: "
      "the clocks of host and device do not agree");
  trace.quality.Count("ambiguous_correlation", QualitySeverity::kWarning, ambiguous,
                      "device operations whose correlation id occurs in several processes, any of "
                      "which may have launched them; left without a launch");
}

}  // namespace trainprof
