#include "analysis/graph/waited_for.h"

#include <algorithm>
#include <functional>

#include "analysis/graph/graph_launches.h"
#include "analysis/graph/latencies.h"
#include "analysis/host/timeline.h"
#include "trace/base/cancel.h"
#include "trace/base/large_columns.h"
#include "trace/base/parallel.h"

namespace trainprof {
namespace {

// Edges by which one track waits for another.
bool IsWait(EdgeKind kind) {
  return kind == EdgeKind::kNullStream || kind == EdgeKind::kEvent || kind == EdgeKind::kSync ||
         kind == EdgeKind::kHandOver;
}

// How long after its call began a copy may start on the device while the host still prepares it.
Duration Staging(const Trace& trace, Row op) {
  const size_t i = Index(op);
  if (trace.device_ops.direction[i] != CopyDirection::kHostToDevice) return {};
  const int64_t bytes = std::min(trace.device_ops.bytes[i], kStagingBytes);
  return Microseconds(bytes / kStagingBytesPerMicrosecond);
}

}  // namespace

WaitedFor::WaitedFor(const Trace& trace, const Graph& graph, TrackId stepping)
    : trace_(trace),
      graph_(graph),
      stepping_(stepping),
      is_residual_(graph.size()),
      is_needed_(trace.tracks.size(), stepping == kNoTrack) {
  for (const Residual& residual : graph.residuals) is_residual_[residual.node] = true;
  AssignLarge(wait_before_, graph.size());
  const std::function<void()> finds[] = {
      [&] {
        FindWaits();
        FindFirstGraph();
      },
      [&] {
        if (stepping != kNoTrack) FindNeeded();
      },
  };
  RunAll(finds);
}

bool WaitedFor::IsOfHost(NodeId node) const {
  switch (graph_.kind[node]) {
    case NodeKind::kCall:
    case NodeKind::kWait:
    case NodeKind::kInput:
    case NodeKind::kStep:
      return true;
    default:
      return false;
  }
}

TrackId WaitedFor::ThreadOf(NodeId node) const {
  return graph_.kind[node] == NodeKind::kStep ? stepping_ : HostThreadOf(trace_, graph_, node);
}

// Of a call that waits for a device; one that returned at once found nothing to wait for. For room in a
// queue a host that is ahead waits.
bool WaitedFor::IsSyncWait(NodeId node) const {
  const bool is_call = graph_.kind[node] == NodeKind::kCall || graph_.kind[node] == NodeKind::kWait;
  if (!is_call || trace_.api.duration[graph_.row[node]] <= kHandOver.ns) return false;
  if (graph_.kind[node] == NodeKind::kCall) {
    const Row call{graph_.row[node]};
    const NodeId wait = graph_.WaitOf(call);
    if (wait != 0) return IsSyncWait(wait);
    const ApiKind kind = trace_.api.kind[Index(call)];
    if (kind != ApiKind::kSync && kind != ApiKind::kFree) return false;
    return HostWaitOf(trace_.Text(trace_.api.name[Index(call)])) == HostWait::kContext;
  }
  for (EdgeId edge = graph_.first_edge[node]; edge < graph_.first_edge[node + 1]; ++edge) {
    if (graph_.edge_kind[edge] == EdgeKind::kQueueRoom) return false;
  }
  return true;
}

// A call's own wait is not before it.
NodeId WaitedFor::WaitBefore(NodeId call) const {
  if (call == 0) return 0;
  return wait_before_[graph_.from[BindingEdge(graph_, graph_.recorded, graph_.ends, call)]];
}

void WaitedFor::FindWaits() {
  for (NodeId node = 1; node < graph_.size(); ++node) {
    CancelPoint(node);
    if (!IsOfHost(node)) continue;
    if (IsSyncWait(node)) {
      wait_before_[node] = node;
      continue;
    }
    const NodeId from = graph_.from[BindingEdge(graph_, graph_.recorded, graph_.ends, node)];
    wait_before_[node] = wait_before_[from];  // 0 of operations
  }
}

void WaitedFor::FindFirstGraph() {
  if (!MayLackNodes(trace_)) return;
  for (uint32_t call = 0; call < trace_.api.size(); ++call) {
    CancelPoint(call);
    if (trace_.api.kind[call] != ApiKind::kGraphLaunch) continue;
    first_graph_ = std::min(first_graph_, trace_.api.begin[call]);
  }
}

TrackId WaitedFor::TrackOf(NodeId node) const {
  switch (graph_.kind[node]) {
    case NodeKind::kStart:
      return kNoTrack;
    case NodeKind::kDeviceOp:
      return trace_.device_ops.track[graph_.row[node]];
    case NodeKind::kHostFunction:
      return trace_.syncs.track[graph_.row[node]];
    case NodeKind::kInferredFunction:
      return kNoTrack;
    default:
      return ThreadOf(node);
  }
}

// By tracks, not by operations: that one of them has lost its launch changes nothing for the others. Each pass goes
// on until all streams are found, mostly by the first launch of each.
void WaitedFor::FindNeeded() {
  is_needed_[Index(stepping_)] = true;
  size_t others = 0;  // streams not found yet
  for (uint32_t track = 0; track < trace_.tracks.size(); ++track) {
    const auto [first, last] = trace_.device_ops.rows_of(TrackId{track});
    if (first < last && !is_needed_[track]) ++others;
  }
  bool changes = true;
  const auto add = [&](TrackId from, TrackId to) {
    if (from == kNoTrack || to == kNoTrack || !is_needed_[Index(to)] || is_needed_[Index(from)])
      return;
    is_needed_[Index(from)] = changes = true;
    const auto [first, last] = trace_.device_ops.rows_of(from);
    if (first < last) --others;
  };
  while (changes && others > 0) {
    changes = false;
    for (uint32_t track = 0; track < trace_.tracks.size(); ++track) AddFed(TrackId{track}, add);
    for (NodeId node = 1; node < graph_.size() && others > 0; ++node) {
      CancelPoint(node);
      for (EdgeId edge = graph_.first_edge[node]; edge < graph_.first_edge[node + 1]; ++edge) {
        if (IsWait(graph_.edge_kind[edge])) add(TrackOf(graph_.from[edge]), TrackOf(node));
      }
    }
  }
}

// What a thread feeds it waits for, sooner or later.
template <class Add>
void WaitedFor::AddFed(TrackId stream, Add add) const {
  const auto [first, last] = trace_.device_ops.rows_of(stream);
  for (uint32_t op = first; op < last && !is_needed_[Index(stream)]; ++op) {
    CancelPoint(op);
    const Row launch = trace_.device_ops.launch[op];
    if (launch == kNoRow || graph_.node_of_op[op] == 0) continue;
    add(stream, trace_.api.track[Index(launch)]);
  }
}

bool WaitedFor::IsNeeded(Row op) const {
  return is_needed_[Index(trace_.device_ops.track[Index(op)])];
}

// The way back from one operation, from late to early.
class WaitedFor::Way {
 public:
  Way(const WaitedFor& all, Row op, TraceTime until, std::vector<Held>& held)
      : all_(all),
        trace_(all.trace_),
        graph_(all.graph_),
        node_(graph_.node_of_op[Index(op)]),
        at_(trace_.device_ops.begin[Index(op)]),
        until_(until),
        device_(DeviceOf(op)),
        held_(held) {}

  void Go() {
    for (size_t steps = 0; at_ > until_ && node_ != 0; ++steps) {
      CancelPoint(steps);
      if (graph_.kind[node_] == NodeKind::kDeviceOp) {
        FromOp(Row{graph_.row[node_]});
      } else if (graph_.kind[node_] == NodeKind::kHostFunction) {
        FromFunction(trace_.syncs.call[graph_.row[node_]]);
      } else if (graph_.kind[node_] == NodeKind::kInferredFunction) {
        FromFunction(Row{graph_.row[node_]});
      } else {
        FromHost();
      }
    }
    Add(until_, {.by = Holder::kUnknown});
  }

 private:
  DeviceId DeviceOf(Row op) const {
    return trace_.tracks[Index(trace_.device_ops.track[Index(op)])].device;
  }

  // What held it from `begin` until what is known so far.
  void Add(TraceTime begin, Held what) {
    begin = std::max(begin, until_);
    if (begin >= at_) return;
    what.interval = {begin, at_};
    at_ = begin;
    held_.push_back(what);
  }

  void AddHost(TraceTime begin, TrackId thread, TraceTime since, NodeId wait) {
    Add(begin, {.by = Holder::kHost, .thread = thread, .since = since, .wait = RowOf(wait)});
  }

  Row RowOf(NodeId wait) const { return wait == 0 ? kNoRow : Row{graph_.row[wait]}; }

  void End() { node_ = 0; }

  // On to the node at the begin of the edge: its own time, of a stream.
  void Follow(EdgeId edge) { node_ = graph_.from[edge]; }

  EdgeId Binding() const { return BindingEdge(graph_, graph_.recorded, graph_.ends, node_); }

  void FromHost() {
    const TrackId thread = all_.ThreadOf(node_);
    AddHost(all_.BeginOf(node_), thread, until_, all_.wait_before_[node_]);
    const EdgeId edge = Binding();
    const NodeId from = graph_.from[edge];
    if (from == 0) {
      AddHost(until_, thread, until_, 0);
      return End();
    }
    const TraceTime end{graph_.ends[from]};
    // It woke from a wait: that belongs to the wait.
    const NodeId wait = all_.IsOfHost(from) ? from : node_;
    AddHost(end, thread, std::min(end, until_), all_.wait_before_[wait]);
    Follow(edge);
    if (!all_.IsOfHost(from)) AddStreams(from);
  }

  // The time of an operation or a function that something waited for.
  void AddStreams(NodeId node) {
    const bool is_op = graph_.kind[node] == NodeKind::kDeviceOp;
    Add(all_.BeginOf(node),
        {.by = !is_op                                       ? Holder::kHostFunction
               : DeviceOf(Row{graph_.row[node]}) == device_ ? Holder::kHandOver
                                                            : Holder::kOtherDevice});
  }

  void FromFunction(Row launch) {
    FromStream(launch, launch == kNoRow ? TraceTime{} : trace_.api.end(Index(launch)) + kHandOver,
               false, false, Holder::kHandOver);
  }

  void FromOp(Row op) {
    const DeviceOpTable& ops = trace_.device_ops;
    const Row launch = ops.launch[Index(op)];
    TraceTime issued;
    const bool copies = ops.kind[Index(op)] == DeviceOpKind::kCopy;
    if (launch != kNoRow) {
      // A copy's call may last until the copy is done, so only its staging is the host's part.
      issued = (copies ? trace_.api.begin[Index(launch)] + Staging(trace_, op)
                       : trace_.api.end(Index(launch))) +
               kHandOver;
    }
    FromStream(launch, issued, copies, ops.direction[Index(op)] == CopyDirection::kHostToDevice,
               DeviceOf(op) == device_ ? Holder::kHandOver : Holder::kOtherDevice);
  }

  // What was queued, and nothing recorded held. Nodes of a graph that was launched before may be missing
  // though it has others; work of its own launch is known to be missing (account/missing_work.h).
  Holder Lost(Row launch) const {
    const bool behind_graph = all_.first_graph_ <= trace_.api.begin[Index(launch)];
    return behind_graph ? Holder::kUnrecorded : Holder::kUnknown;
  }

  void FromStream(Row launch, TraceTime issued, bool is_copy, bool is_slow, Holder between) {
    if (launch == kNoRow) return End();
    const EdgeId edge = Binding();
    const NodeId from = graph_.from[edge];
    const EdgeKind kind = graph_.edge_kind[edge];
    const Interval call = trace_.api.interval(launch);
    const TraceTime end{graph_.ends[from]};
    // What had ended before held nothing that was not issued yet.
    const bool held = from != 0 && kind != EdgeKind::kLaunch && !all_.is_residual_[node_] &&
                      (end > until_ || call.end <= until_);
    if (held) {
      const bool is_moment = at_ - std::max(end, until_) <= kHandOver;
      Add(end, {.by = is_moment ? between : Lost(launch)});
      Follow(edge);
      return AddStreams(from);
    }
    if (call.end <= until_) {
      // All else was done, too, and nothing recorded held it.
      const bool is_moment = at_ - until_ <= kHandOver;
      Add(until_, {.by = is_moment ? between : Lost(launch)});
      return End();
    }
    // Copies to the device may be slow on the host's side.
    const bool was_queued = call.begin < until_ && !is_slow;
    Add(std::max(issued, call.begin), {.by = was_queued ? Lost(launch) : Holder::kUnknown});
    const NodeId caller = graph_.node_of_call[Index(launch)];
    const bool is_long =
        trace_.api.kind[Index(launch)] == ApiKind::kLaunch && call.Length() >= kSetupCall;
    Add(call.begin, {.by = Holder::kIssue,
                     .thread = trace_.api.track[Index(launch)],
                     .wait = is_copy ? kNoRow : RowOf(all_.WaitBefore(caller)),
                     .is_long_call = is_long});
    node_ = caller;
  }

  const WaitedFor& all_;
  const Trace& trace_;
  const Graph& graph_;
  NodeId node_;
  TraceTime at_;
  const TraceTime until_;
  const DeviceId device_;
  std::vector<Held>& held_;
};

void WaitedFor::Find(Row op, TraceTime from, std::vector<Held>& held) const {
  held.clear();
  Way(*this, op, from, held).Go();
  std::reverse(held.begin(), held.end());
}

}  // namespace trainprof
