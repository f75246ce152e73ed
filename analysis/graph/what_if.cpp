#include "analysis/graph/what_if.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "analysis/graph/host_work.h"
#include "analysis/graph/latencies.h"
#include "analysis/graph/pinned_copies.h"
#include "analysis/graph/residual_costs.h"
#include "analysis/host/timeline.h"
#include "trace/base/cancel.h"
#include "trace/base/parallel.h"
#include "trace/base/sort_runs.h"

namespace trainprof {
namespace {

// A batch that is there is taken from the queue within this time.
constexpr int64_t kTakeBatchNs = 15'000;
// What a copy costs beside its bytes.
constexpr int64_t kCopySetupNs = 2'000;
// A host that pauses so long between two launches does something else.
constexpr Duration kLongPause = Milliseconds(1);

class Editor {
 public:
  Editor(const Trace& trace, const Graph& graph, const Assumption& assumption, Costs& costs)
      : trace_(trace), graph_(graph), assumption_(assumption), costs_(costs) {
    costs_.Assign(graph.recorded);
  }

  void Make(std::span<const Change* const> changes) && {
    if (assumption_.has_all_graph_nodes) DropResiduals(graph_, true, costs_);
    for (const Change* change : changes) Make(*change);
    if (assumption_.loader_is_limited) LimitLoader();
    if (assumption_.contention != 1) SlowHost();
    if (assumption_.without_recording != nullptr) {
      LeaveOut(*assumption_.without_recording, trace_, graph_, costs_);
    }
    if (assumption_.silence != nullptr) assumption_.silence->Make(graph_, costs_);
  }

 private:
  void Make(const Change& change) {
    if (change.edit != Edit::kDropDependencies) {
      for (const Row call : change.calls) DropWait(call);
    }
    switch (change.edit) {
      case Edit::kRemoveWaits:
        for (const Row call : change.rows) DropWait(call);
        return;
      case Edit::kDropCalls:
        for (const Row call : change.rows) DropCall(call);
        return;
      case Edit::kOverlapCopies:
        for (const Row op : change.rows) DetachOp(op);
        return;
      case Edit::kPinCopies:
        return PinCopies(change.rows);
      case Edit::kUseTensorCores:
        for (const Row op : change.rows) SpeedUp(op);
        return;
      case Edit::kDropWork:
        for (const Row op : change.rows) DropOp(op);
        return;
      case Edit::kFeedInput:
        return FeedInput(change);
      case Edit::kDropHostWork:
        for (const Row op : change.ops) {
          if (assumption_.saved_copies_overlap) DetachOp(op);
        }
        return DropHostWork(trace_, graph_, TimesOf(change), costs_);
      case Edit::kLaunchAsGraph:
        return LaunchAsGraph(change.rows);
      case Edit::kOverlapCommunication:
        return OverlapCommunication(change.rows);
      case Edit::kDropDependencies:
        return DropDependencies(change);
      case Edit::kKeepReplicas:
        for (const Row op : change.rows) DropOp(op);
        if (assumption_.exchange_is_exposed) return;
        for (const Row op : change.ops) DropOp(op);
        return;
      case Edit::kFillIdle:
        return;
    }
  }

  template <class Visit>
  void ForEachEdge(NodeId node, Visit visit) {
    for (EdgeId edge = graph_.first_edge[node]; edge < graph_.first_edge[node + 1]; ++edge) {
      visit(edge);
    }
  }

  bool HasLag(EdgeId edge, EdgeKind kind) const {
    return graph_.edge_kind[edge] == kind && costs_.lag[edge] != kNever && costs_.Lag(edge) > 0;
  }

  void DropLags(NodeId node, EdgeKind kind) {
    ForEachEdge(node, [&](EdgeId edge) {
      if (HasLag(edge, kind)) costs_.SetLag(edge, 0);
    });
  }

  void DropWait(Row call) {
    const NodeId wait = graph_.WaitOf(call);
    if (wait == 0) return;
    ForEachEdge(wait, [&](EdgeId edge) {
      if (graph_.edge_kind[edge] == EdgeKind::kSync) costs_.Drop(edge);
    });
  }

  void DropCall(Row call) {
    DropWait(call);
    const NodeId node = graph_.node_of_call[Index(call)];
    if (node == 0 || graph_.row[node] != static_cast<uint32_t>(call)) return;
    costs_.SetDuration(node, 0);
    if (const NodeId wait = graph_.WaitOf(call); wait != 0) costs_.SetDuration(wait, 0);
  }

  // Beside its stream: what stands behind it there does not wait for it, and follows what stands before it.
  void DetachOp(Row op) {
    const NodeId node = graph_.node_of_op[Index(op)];
    if (node == 0) return;
    costs_.SetDuration(node, 0);
    DropLags(node, EdgeKind::kStream);
    if (const Row call = trace_.device_ops.launch[Index(op)]; call != kNoRow) DropWait(call);
  }

  void SpeedUp(Row op) {
    const NodeId node = graph_.node_of_op[Index(op)];
    if (node == 0) return;
    const auto ns = static_cast<double>(costs_.Duration(node));
    costs_.SetDuration(node, static_cast<int64_t>(ns / assumption_.tensor_core_speedup));
  }

  void DropOp(Row op) {
    DetachOp(op);
    const Row call = trace_.device_ops.launch[Index(op)];
    if (call == kNoRow) return;
    DropCall(call);
    const NodeId node = graph_.node_of_call[Index(call)];
    if (assumption_.drops_preparation && node != 0) DropLags(node, EdgeKind::kProgram);
  }

  void PinCopies(const std::vector<Row>& ops) {
    const int64_t measured = PinnedBytesPerMicrosecond(trace_);
    const int64_t rate = measured > 0 ? measured : assumption_.pinned_bytes_per_us;
    for (const Row op : ops) {
      const NodeId node = graph_.node_of_op[Index(op)];
      if (node == 0) continue;
      const int64_t pinned = trace_.device_ops.bytes[Index(op)] * 1000 / rate + kCopySetupNs;
      const bool overlaps = assumption_.pinned_copies_overlap &&
                            trace_.device_ops.direction[Index(op)] == CopyDirection::kHostToDevice;
      costs_.SetDuration(node, overlaps ? 0 : std::min(costs_.Duration(node), pinned));
      // The host waits for what it reads, wherever it lies.
      if (trace_.device_ops.direction[Index(op)] != CopyDirection::kHostToDevice) continue;
      if (const Row call = trace_.device_ops.launch[Index(op)]; call != kNoRow) DropWait(call);
    }
  }

  // By thread the times of the ranges, and those without one, merged.
  TimesOfThreads TimesOf(const Change& change) const {
    std::map<TrackId, std::vector<Interval>> by_thread;
    for (const ThreadSpan& span : change.spans) by_thread[span.thread].push_back(span.interval);
    for (const Row range : change.rows) {
      by_thread[trace_.ranges.track[Index(range)]].push_back(trace_.ranges.interval(range));
    }
    TimesOfThreads times;
    for (auto& [thread, intervals] : by_thread) {
      times[thread] = IntervalSet::Union(std::move(intervals));
    }
    return times;
  }

  TrackId ThreadOf(NodeId node) const { return HostThreadOf(trace_, graph_, node); }

  // Waits within one of the ranges, or around one.
  void FeedInput(const Change& change) {
    const TimesOfThreads fed = TimesOf(change);
    DropSyncsWithin(fed);
    std::set<TrackId> feeders;
    for (NodeId node = 1; node < graph_.size(); ++node) {
      CancelPoint(node);
      if (graph_.kind[node] != NodeKind::kInput) continue;
      const auto times = fed.find(ThreadOf(node));
      if (times == fed.end()) continue;
      const Interval wait = trace_.ranges.interval(Row{graph_.row[node]});
      if (times->second.TotalWithin(wait).ns == 0) continue;
      costs_.SetDuration(node, std::min(costs_.Duration(node), kTakeBatchNs));
      ForEachEdge(node, [&](EdgeId edge) {
        if (graph_.edge_kind[edge] != EdgeKind::kHandOver) return;
        costs_.Drop(edge);
        feeders.insert(ThreadOf(graph_.from[edge]));
      });
    }
    if (feeders.empty()) return;
    // A thread of the program that made the batches has made them in time.
    for (NodeId node = 1; node < graph_.size(); ++node) {
      CancelPoint(node);
      if (!feeders.contains(ThreadOf(node))) continue;
      if (graph_.kind[node] == NodeKind::kInput) costs_.SetDuration(node, 0);
      ForEachEdge(node, [&](EdgeId edge) {
        if (IsOwnWork(edge) || HasLag(edge, EdgeKind::kHandOver)) costs_.SetLag(edge, 0);
      });
    }
  }

  // A wait within a wait for input is for the batch, too.
  void DropSyncsWithin(const TimesOfThreads& fed) {
    for (NodeId node = 1; node < graph_.size(); ++node) {
      CancelPoint(node);
      const NodeKind kind = graph_.kind[node];
      if (kind != NodeKind::kCall && kind != NodeKind::kWait) continue;
      const uint32_t call = graph_.row[node];
      const auto times = fed.find(trace_.api.track[call]);
      if (times == fed.end() || trace_.api.kind[call] != ApiKind::kSync) continue;
      const Interval span = trace_.api.interval(Row{call});
      if (times->second.TotalWithin(span) != span.Length()) continue;
      costs_.SetDuration(node, std::min(costs_.Duration(node), kTakeBatchNs));
    }
  }

  bool IsOwnWork(EdgeId edge) const { return HasLag(edge, EdgeKind::kProgram); }

  // The first launch of each step stays: it launches all.
  void LaunchAsGraph(const std::vector<Row>& calls) {
    if (assumption_.closes_graph) CloseGaps(calls);
    const auto node_of = [&](Row call) { return graph_.node_of_call[Index(call)]; };
    const auto comes_first = [&](Row a, Row b) { return node_of(a) < node_of(b); };
    if (std::is_sorted(calls.begin(), calls.end(), comes_first)) return LaunchInOrder(calls);
    std::vector<Row> sorted = calls;
    SortRuns(sorted, node_of);
    LaunchInOrder(sorted);
  }

  void LaunchInOrder(const std::vector<Row>& calls) {
    RunParts(calls.size(), kNodesOfAThread,
             [&](size_t first, size_t last) { LaunchInOrder(calls, first, last); });
  }

  // The calls [begin, end).
  void LaunchInOrder(const std::vector<Row>& calls, size_t begin, size_t end) {
    // What calls before them left behind.
    NodeId last = begin == 0 ? 0 : graph_.node_of_call[Index(calls[begin - 1])];  // 0: none has one
    auto step = std::find_if(graph_.step_begin.begin(), graph_.step_begin.end(),
                             [&](NodeId node) { return last <= node; });
    bool is_first = last == 0;
    for (size_t i = begin; i < end; ++i) {
      CancelPoint(i);
      const NodeId node = graph_.node_of_call[Index(calls[i])];
      if (std::exchange(last, node) == node) continue;
      while (step != graph_.step_begin.end() && *step < node) {
        ++step;
        is_first = true;
      }
      if (std::exchange(is_first, false)) continue;
      costs_.SetDuration(node, 0);
      ForEachEdge(node, [&](EdgeId edge) {
        if (IsOwnWork(edge)) costs_.SetLag(edge, WithoutLaunching(node, edge));
      });
    }
  }

  // Of the host's own time before a launch, what is left without it: what takes long is no launching, but
  // for the operators that launch.
  int64_t WithoutLaunching(NodeId node, EdgeId edge) const {
    const int64_t lag = costs_.Lag(edge);
    if (lag < kLongPause.ns) return 0;
    const TraceTime begin{graph_.ends[graph_.from[edge]]};
    return lag - OperatorsWithin(ThreadOf(node), {begin, begin + Duration{lag}}).ns;
  }

  // When a thread was in operators that are no work of their own. O(log n + operators since kOperatorStretch
  // before it).
  Duration OperatorsWithin(TrackId thread, const Interval& within) const {
    Duration total;
    if (thread == kNoTrack) return total;
    const RangeTable& ranges = trace_.ranges;
    const auto [first, last] = ranges.rows_of(thread);
    const TraceTime earliest = within.begin - kOperatorStretch;
    const auto from =
        std::partition_point(ranges.begin.begin() + first, ranges.begin.begin() + last,
                             [&](TraceTime begin) { return begin < earliest; });
    TraceTime at = within.begin;  // all before it is counted
    for (auto row = static_cast<uint32_t>(from - ranges.begin.begin());
         row < last && ranges.begin[row] < within.end; ++row) {
      CancelPoint(row);
      const Interval span = ranges.interval(Row{row});
      if (ranges.kind[row] != RangeKind::kCpuOp || span.Length() >= kOperatorStretch) continue;
      const Interval part = Intersect(span, {at, within.end});
      if (part.Empty()) continue;
      total += part.Length();
      at = part.end;
    }
    return total;
  }

  // Nodes of a graph follow each other faster than launches of a queue.
  void CloseGaps(const std::vector<Row>& calls) {
    std::vector<bool> launched(trace_.api.size(), false);
    for (const Row call : calls) launched[Index(call)] = true;
    for (NodeId node = 1; node < graph_.size(); ++node) {
      CancelPoint(node);
      if (graph_.kind[node] != NodeKind::kDeviceOp) continue;
      const Row call = trace_.device_ops.launch[graph_.row[node]];
      if (call == kNoRow || !launched[Index(call)]) continue;
      DropLags(node, EdgeKind::kStream);
    }
  }

  void OverlapCommunication(const std::vector<Row>& ops) {
    std::vector<bool> detached(graph_.size(), false);
    std::vector<NodeId> nodes;
    for (const Row op : ops) {
      if (const NodeId node = graph_.node_of_op[Index(op)]; node != 0) nodes.push_back(node);
    }
    std::sort(nodes.begin(), nodes.end());
    for (size_t i = 0; i < nodes.size(); ++i) {
      const bool is_last = i + 1 == nodes.size() || StepOf(nodes[i]) != StepOf(nodes[i + 1]);
      detached[nodes[i]] = !(is_last && assumption_.waits_for_last_collective);
    }
    for (NodeId node = 1; node < graph_.size(); ++node) {
      CancelPoint(node);
      if (graph_.kind[node] != NodeKind::kDeviceOp) continue;
      ForEachEdge(node, [&](EdgeId edge) {
        if (!detached[graph_.from[edge]]) return;
        const EdgeKind kind = graph_.edge_kind[edge];
        const bool is_wait = kind == EdgeKind::kEvent || kind == EdgeKind::kInferredEvent ||
                             kind == EdgeKind::kNullStream;
        if (is_wait) costs_.Drop(edge);
        // In the stream of what it holds up it would have to leave it.
        if (kind == EdgeKind::kStream && !detached[node]) costs_.SetDuration(graph_.from[edge], 0);
      });
    }
  }

  size_t StepOf(NodeId node) const {
    return static_cast<size_t>(
        std::upper_bound(graph_.step_begin.begin(), graph_.step_begin.end(), node) -
        graph_.step_begin.begin());
  }

  void DropDependencies(const Change& change) {
    std::vector<Row> rows = change.rows;
    std::vector<Row> calls = change.calls;
    std::sort(rows.begin(), rows.end());
    std::sort(calls.begin(), calls.end());
    for (const auto& [edge, sync] : graph_.sync_of) {
      const bool is_dropped = graph_.edge_kind[edge] == EdgeKind::kEvent &&
                              std::binary_search(rows.begin(), rows.end(), sync);
      if (is_dropped) costs_.Drop(edge);
    }
    // A function of the host no longer holds its stream.
    for (NodeId node = 1; node < graph_.size(); ++node) {
      CancelPoint(node);
      const auto is_in = [&](const std::vector<Row>& list) {
        return std::binary_search(list.begin(), list.end(), Row{graph_.row[node]});
      };
      const NodeKind kind = graph_.kind[node];
      const bool is_dropped = kind == NodeKind::kHostFunction       ? is_in(rows)
                              : kind == NodeKind::kInferredFunction ? is_in(calls)
                                                                    : false;
      if (is_dropped) costs_.SetDuration(node, 0);
    }
    if (!change.ops.empty()) LeaveNullStream(change.ops);
  }

  void LeaveNullStream(const std::vector<Row>& ops) {
    std::vector<bool> leaves(graph_.size(), false);
    for (const Row op : ops) leaves[graph_.node_of_op[Index(op)]] = true;
    leaves[0] = false;  // of those without a node
    for (NodeId node = 1; node < graph_.size(); ++node) {
      CancelPoint(node);
      ForEachEdge(node, [&](EdgeId edge) {
        const bool is_of_one = leaves[node] || leaves[graph_.from[edge]];
        if (graph_.edge_kind[edge] == EdgeKind::kNullStream && is_of_one) costs_.Drop(edge);
      });
    }
  }

  void LimitLoader() {
    for (NodeId node = 1; node < graph_.size(); ++node) {
      CancelPoint(node);
      if (graph_.kind[node] != NodeKind::kInput) continue;
      // Sooner nobody is woken: the batch was there.
      if (graph_.recorded.Duration(node) < kThreadPause.ns) continue;
      const auto& own = assumption_.own_input;
      if (std::binary_search(own.begin(), own.end(), Row{graph_.row[node]})) continue;
      ForEachEdge(node, [&](EdgeId edge) {
        if (graph_.edge_kind[edge] != EdgeKind::kLoader) return;
        const int64_t own = std::min(costs_.Duration(node), kTakeBatchNs);
        costs_.SetDuration(node, own);
        costs_.SetLag(edge, graph_.ends[node] - own);
      });
    }
  }

  void SlowHost() {
    for (EdgeId edge = 0; edge < graph_.from.size(); ++edge) {
      CancelPoint(edge);
      if (!IsOwnWork(edge)) continue;
      costs_.SetLag(edge, static_cast<int64_t>(static_cast<double>(costs_.Lag(edge)) *
                                               assumption_.contention));
    }
  }

  const Trace& trace_;
  const Graph& graph_;
  const Assumption& assumption_;
  Costs& costs_;
};

}  // namespace

void CostsAfter(const Trace& trace, const Graph& graph, std::span<const Change* const> changes,
                const Assumption& assumption, Costs& costs) {
  Editor(trace, graph, assumption, costs).Make(changes);
}

Costs CostsAfter(const Trace& trace, const Graph& graph, std::span<const Change* const> changes,
                 const Assumption& assumption) {
  Costs costs;
  CostsAfter(trace, graph, changes, assumption, costs);
  return costs;
}

}  // namespace trainprof
