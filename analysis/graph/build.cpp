// Nodes in the order of their recorded times, then their edges, one function a kind.
#include "analysis/graph/build.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "analysis/graph/graph_launches.h"
#include "analysis/graph/hand_overs.h"
#include "analysis/graph/host_items.h"
#include "analysis/graph/latencies.h"
#include "analysis/graph/node_order.h"
#include "analysis/graph/other_streams.h"
#include "analysis/graph/step_nodes.h"
#include "analysis/graph/streams.h"
#include "analysis/graph/usual_times.h"
#include "analysis/host/timeline.h"
#include "trace/base/cancel.h"
#include "trace/base/large_columns.h"
#include "trace/base/parallel.h"

namespace trainprof {
namespace {

// What a node may have waited for.
struct Cause {
  NodeId from = 0;
  EdgeKind kind = EdgeKind::kStream;
  TraceTime usual;  // when the node would have begun for this alone, as such things go
  TraceTime until;  // up to here this explains a later begin, too
  Row sync = kNoRow;
};

struct StreamState {
  NodeId last = 0;
  size_t next_wait = 0;
  std::vector<uint32_t> ordered;  // by stream: its first item that this one need not wait for
};

class Builder {
 public:
  Builder(const Trace& trace, const Steps& steps, const std::vector<bool>& blocking)
      : trace_(trace),
        steps_(steps),
        streams_(trace),
        graph_launches_(trace),
        others_(trace_, streams_, waits_, node_of_stream_item_) {
    const auto find_host = [&] {
      items_ = FindHostItems(trace, steps.thread, MarksOf(steps), blocking, streams_);
      hand_overs_ = HandOvers(trace, items_);
    };
    const auto find_usual = [&] {
      waits_ = FindEventWaits(trace, streams_);
      times_ = LearnDeviceTimes(trace, streams_, waits_);
      functions_ = UnansweredFunctions(trace);
    };
    const std::function<void()> both[] = {find_host, find_usual};
    RunAll(both);
  }

  Graph Build() && {
    const size_t streams = streams_.streams().size();
    states_.assign(streams, {.ordered = std::vector<uint32_t>(streams, 0)});
    NodeOrder order(trace_, streams_, items_);
    MakeRoom(order.size() + 1);
    AddNode(NodeKind::kStart, 0, 0, 0);
    order.Visit([&](const Pending& pending) {
      CancelPoint(graph_.size());
      Add(pending);
    });
    graph_.first_edge.push_back(static_cast<EdgeId>(graph_.from.size()));
    for (size_t call = 0; call < trace_.api.size(); ++call) {
      graph_.node_of_call[call] = graph_.node_of_call[items_.outer_call[call]];
    }
    graph_.last_of_step = LastOfSteps(trace_, steps_, streams_, node_of_stream_item_);
    FindStepNodes();
    std::sort(graph_.wait_of_call.begin(), graph_.wait_of_call.end());
    graph_.ReturnRoom();
    return std::move(graph_);
  }

 private:
  // -- What is usual on each device, and what streams wait for.
  const DeviceTimes& TimesOf(DeviceId device) const {
    return times_[std::min(Index(device), times_.size() - 1)];
  }

  StreamState& StateOf(const Streams::Stream& stream) { return states_[IndexOf(stream)]; }
  size_t IndexOf(const Streams::Stream& stream) const {
    return static_cast<size_t>(&stream - streams_.streams().data());
  }

  // -- Nodes.

  void MakeRoom(size_t nodes) {
    graph_.Reserve(nodes);
    AssignLarge(graph_.node_of_op, trace_.device_ops.size());
    AssignLarge(graph_.node_of_call, trace_.api.size());
    for (const HostThread& thread : items_.threads) {
      AssignLarge(node_of_item_.emplace_back(), thread.items.size());
    }
    AssignLarge(node_of_stream_item_, streams_.size());
    last_of_thread_.assign(items_.threads.size(), 0);
    node_of_mark_.assign(items_.marks.size(), 0);
  }

  NodeId AddNode(NodeKind kind, uint32_t row, int64_t duration_ns, int64_t end_ns) {
    const NodeId node = graph_.size();
    graph_.kind.push_back(kind);
    graph_.row.push_back(row);
    graph_.first_edge.push_back(static_cast<EdgeId>(graph_.from.size()));
    graph_.recorded.duration.push_back(0);
    graph_.recorded.SetDuration(node, duration_ns);
    graph_.ends.push_back(end_ns);
    return node;
  }

  EdgeId AddEdge(NodeId from, EdgeKind kind, int64_t lag_ns) {
    const auto edge = static_cast<EdgeId>(graph_.from.size());
    graph_.from.push_back(from);
    graph_.edge_kind.push_back(kind);
    graph_.recorded.lag.push_back(kNever);
    graph_.recorded.SetLag(edge, lag_ns);
    return edge;
  }

  void Add(const Pending& pending) {
    switch (pending.kind) {
      case NodeKind::kCall:
      case NodeKind::kInput:
        return AddHostItem(pending);
      case NodeKind::kWait:
        return AddWait(pending);
      case NodeKind::kStep:
        return AddStep(pending);
      default:
        return AddStreamItem(pending.index);
    }
  }

  // -- Of the host.

  // Behind what its thread did before: the lag is the host's own work.
  void AddProgram(uint32_t thread, TraceTime begin, bool is_woken) {
    const NodeId last = last_of_thread_[thread];
    const int64_t lag = begin.ns - graph_.ends[last];
    // A pause that another thread ended was no work.
    AddEdge(last, last == 0 ? EdgeKind::kBegin : EdgeKind::kProgram,
            is_woken ? std::min<int64_t>(lag, 0) : lag);
  }

  void AddHostItem(const Pending& pending) {
    const HostItem& item = items_.threads[pending.thread].items[pending.index];
    const Interval times = items_.Times(trace_, item);
    const bool is_call = item.kind == NodeKind::kCall;
    const HandOver* woken = hand_overs_.Of(pending.thread, pending.index);
    if (woken != nullptr && node_of_item_[woken->thread][woken->item] == 0) woken = nullptr;
    const TraceTime own_end = item.wait != 0 ? items_.waits[item.wait].from : times.end;
    // Of a wait for input that another thread ended nothing is its own time.
    const bool lasts = is_call || woken == nullptr;
    const NodeId node = AddNode(item.kind, is_call ? item.index : items_.inputs[item.index].range,
                                lasts ? (own_end - times.begin).ns : 0, own_end.ns);
    AddProgram(pending.thread, times.begin, is_call && woken != nullptr);
    if (woken != nullptr) {
      const NodeId from = node_of_item_[woken->thread][woken->item];
      AddEdge(from, EdgeKind::kHandOver,
              (is_call ? times.begin : times.end).ns - graph_.ends[from]);
    }
    if (!is_call) graph_.recorded.Drop(AddEdge(0, EdgeKind::kLoader, 0));
    if (is_call) graph_.node_of_call[item.index] = node;
    SetLast(pending.thread, node);
    // What waits for this item waits for its end.
    if (item.wait == 0) node_of_item_[pending.thread][pending.index] = node;
  }

  void AddWait(const Pending& pending) {
    const HostItem& item = items_.threads[pending.thread].items[pending.index];
    const CallWait& wait = items_.waits[item.wait];
    const int64_t end = trace_.api.end(item.index).ns;
    const NodeId call = graph_.node_of_call[item.index];
    const NodeId node = AddNode(NodeKind::kWait, item.index, 0, end);
    AddEdge(call, EdgeKind::kProgram, 0);
    bool is_explained = false;
    // It returned so long after what it waited for; less than that after the rest.
    int64_t wake = 0;
    for (const uint32_t target : wait.targets) {
      const NodeId from = node_of_stream_item_[target];
      if (from == 0) {
        ++graph_.dropped_edges;
        continue;
      }
      const int64_t since = end - graph_.ends[from];
      const bool is_first = !is_explained;
      if (is_first && graph_.ends[from] > graph_.ends[call]) wake = since;
      is_explained = true;
      const EdgeId edge = AddEdge(from, wait.kind, std::min(wake, since));
      if (wait.sync != kNoRow) graph_.sync_of.emplace_back(edge, wait.sync);
    }
    if (!wait.is_explained) ++graph_.unexplained_waits;
    graph_.wait_of_call.emplace_back(item.index, node);
    if (wait.kind == EdgeKind::kQueueRoom) held_[item.index] = node;
    // What is left, where nothing it waited for came last.
    int64_t begin = graph_.ends[call];
    for (EdgeId edge = graph_.first_edge[node]; edge < graph_.from.size(); ++edge) {
      begin = std::max(begin, graph_.ends[graph_.from[edge]] + graph_.recorded.Lag(edge));
    }
    if (begin < end) graph_.recorded.SetDuration(node, end - begin);
    SetLast(pending.thread, node);
    node_of_item_[pending.thread][pending.index] = node;
  }

  void SetLast(uint32_t thread, NodeId node) {
    last_of_thread_[thread] = node;
    if (items_.threads[thread].issues) last_issuing_ = node;
  }

  // Beside the thread's chain: a step may begin within a call.
  void AddStep(const Pending& pending) {
    const HostItem& item = items_.threads[pending.thread].items[pending.index];
    const int64_t at = items_.marks[item.index].ns;
    node_of_mark_[item.index] = AddNode(NodeKind::kStep, item.index, 0, at);
    AddProgram(pending.thread, TraceTime{at}, false);
  }

  // -- Of streams.

  void AddStreamItem(uint32_t item) {
    const bool is_op = streams_.kind(item) == NodeKind::kDeviceOp;
    const Streams::Stream& stream = StreamOf(item);
    StreamState& state = StateOf(stream);
    causes_.clear();
    AddLaunch(item, stream);
    AddPredecessor(item, state, stream);
    AddEvents(item, stream, state);
    AddNullStream(item, stream, state);
    if (is_op) AddEngine(item, stream);

    if (is_op) AddFunctionBefore(item, stream);
    const TraceTime end = streams_.end(item);
    const NodeId node =
        AddNode(streams_.kind(item), streams_.row(item), (end - streams_.begin(item)).ns, end.ns);
    SetCauses(node, item, stream);
    node_of_stream_item_[item] = node;
    state.last = node;
    if (!is_op) return;
    const uint32_t row = streams_.row(item);
    graph_.node_of_op[row] = node;
    if (trace_.device_ops.kind[row] == DeviceOpKind::kCopy) {
      engines_[{stream.device, trace_.device_ops.direction[row]}] = node;
    }
  }

  const Streams::Stream& StreamOf(uint32_t item) const {
    const TrackId track = streams_.kind(item) == NodeKind::kDeviceOp
                              ? trace_.device_ops.track[streams_.row(item)]
                              : trace_.syncs.track[streams_.row(item)];
    return *streams_.Of(track);
  }

  void AddCause(NodeId from, EdgeKind kind, Duration usual, Row sync = kNoRow) {
    const TraceTime end{graph_.ends[from]};
    causes_.push_back({from, kind, end + usual, end + kHandOver, sync});
  }

  void AddLaunch(uint32_t item, const Streams::Stream& stream) {
    const Row call = streams_.call(item);
    if (call == kNoRow) return AddUnknownLaunch(item);
    const uint32_t outer = items_.outer_call[Index(call)];
    NodeId from = graph_.node_of_call[outer];
    if (from == 0) {
      ++graph_.dropped_edges;
      return;
    }
    // A launch that waited for room in the queue was put there behind its wait.
    if (const auto held = held_.find(outer); held != held_.end()) from = held->second;
    const bool is_op = streams_.kind(item) == NodeKind::kDeviceOp;
    const bool copies = is_op && trace_.device_ops.kind[streams_.row(item)] == DeviceOpKind::kCopy;
    const Interval times = trace_.api.interval(call);
    TraceTime usual = times.begin;
    if (graph_.kind[from] == NodeKind::kWait) usual = std::max(usual, TraceTime{graph_.ends[from]});
    usual = usual + TimesOf(stream.device).launch[copies ? 1 : 0];
    // A copy to the device may begin as late as its call ends, which prepares it; what is longer than
    // staging takes explains no idle time (idle.h). Other copies' calls wait for them.
    const bool prepares =
        copies && trace_.device_ops.direction[streams_.row(item)] == CopyDirection::kHostToDevice;
    const TraceTime issued = copies && !prepares ? times.begin : times.end;
    causes_.push_back(
        {from, EdgeKind::kLaunch, usual, std::max(usual, issued) + kHandOver, kNoRow});
  }

  // Somebody asked for it, and most likely who did something last of those that ask for any.
  void AddUnknownLaunch(uint32_t item) {
    if (last_issuing_ == 0) return;
    const TraceTime begin = streams_.begin(item);
    const TraceTime asked = std::min(begin, TraceTime{graph_.ends[last_issuing_]});
    causes_.push_back({last_issuing_, EdgeKind::kInferredLaunch, asked, begin, kNoRow});
  }

  void AddPredecessor(uint32_t item, const StreamState& state, const Streams::Stream& stream) {
    if (state.last == 0) return;
    AddCause(state.last, EdgeKind::kStream, TimesOf(stream.device).gap);
    // What lies between two nodes of one launch of a graph no host can change.
    const Row call = streams_.call(item);
    const bool in_graph = call != kNoRow && item > stream.first &&
                          trace_.api.kind[Index(call)] == ApiKind::kGraphLaunch &&
                          streams_.call(item - 1) == call;
    if (in_graph) causes_.back().until = std::max(causes_.back().until, streams_.begin(item));
  }

  void AddEvents(uint32_t item, const Streams::Stream& stream, StreamState& state) {
    const std::vector<EventWait>& waits = waits_.of_stream[IndexOf(stream)];
    while (state.next_wait < waits.size() &&
           waits[state.next_wait].issued < streams_.issued(item)) {
      const EventWait& wait = waits[state.next_wait++];
      AddStreamTarget(wait.target, EdgeKind::kEvent, stream, wait.sync);
    }
  }

  void AddStreamTarget(uint32_t target, EdgeKind kind, const Streams::Stream& stream, Row sync) {
    const NodeId from = node_of_stream_item_[target];
    if (from == 0) {
      ++graph_.dropped_edges;
      return;
    }
    AddCause(from, kind, TimesOf(stream.device).gap, sync);
  }

  // Work of the null stream waits for what blocking streams were asked for before it, and theirs for it.
  void AddNullStream(uint32_t item, const Streams::Stream& stream, StreamState& state) {
    const StreamOrder order = trace_.tracks[Index(stream.track)].order;
    if (order != StreamOrder::kNull && order != StreamOrder::kBlocking) return;
    const auto others = streams_.streams();
    for (size_t i = 0; i < others.size(); ++i) {
      const Streams::Stream& other = others[i];
      if (other.device != stream.device || other.driver != stream.driver) continue;
      const StreamOrder of_other = trace_.tracks[Index(other.track)].order;
      const bool is_ordered = order == StreamOrder::kNull ? of_other == StreamOrder::kBlocking
                                                          : of_other == StreamOrder::kNull;
      if (!is_ordered) continue;
      uint32_t next = std::max(state.ordered[i], other.first);
      const uint32_t seen = next;
      while (next < other.last && streams_.issued(next) < streams_.issued(item)) ++next;
      state.ordered[i] = next;
      if (next > seen) AddStreamTarget(next - 1, EdgeKind::kNullStream, stream, kNoRow);
    }
  }

  // One engine copies in each direction, or more: where two copies did so at once. Of two threads either may
  // come first another time: what held nothing up binds nothing.
  void AddEngine(uint32_t item, const Streams::Stream& stream) {
    const uint32_t row = streams_.row(item);
    if (trace_.device_ops.kind[row] != DeviceOpKind::kCopy) return;
    const CopyDirection direction = trace_.device_ops.direction[row];
    if (direction != CopyDirection::kHostToDevice && direction != CopyDirection::kDeviceToHost) {
      return;
    }
    const auto engine = engines_.find({stream.device, direction});
    if (engine == engines_.end() || graph_.ends[engine->second] > streams_.begin(item).ns) return;
    const bool held = TraceTime{graph_.ends[engine->second]} > ExplainedUntil(streams_.begin(item));
    if (held || CallerOf(Row{graph_.row[engine->second]}) == CallerOf(Row{row})) {
      AddCause(engine->second, EdgeKind::kEngine, {});
    }
  }

  TrackId CallerOf(Row op) const {
    const Row call = trace_.device_ops.launch[Index(op)];
    return call == kNoRow ? kNoTrack : trace_.api.track[Index(call)];
  }

  // As an item would begin for what is known of it.
  TraceTime ExplainedUntil(TraceTime begin) const {
    TraceTime explained{INT64_MIN};
    for (const Cause& cause : causes_) {
      explained = std::max(explained, std::min(cause.usual, begin));
    }
    return explained;
  }

  bool IsExplained(TraceTime begin) const {
    return std::any_of(causes_.begin(), causes_.end(),
                       [&](const Cause& cause) { return cause.until >= begin; });
  }

  // A queued item that nothing recorded held up waited for a host function that was asked for in between:
  // CUPTI tells of none before 13.1.
  void AddFunctionBefore(uint32_t item, const Streams::Stream& stream) {
    const TraceTime begin = streams_.begin(item);
    if (functions_.empty() || item == stream.first || IsExplained(begin)) return;
    const Row behind = streams_.call(item - 1);
    const Row before = streams_.call(item);
    if (behind == kNoRow || before == kNoRow || causes_.empty()) return;
    if (trace_.api.track[Index(behind)] != trace_.api.track[Index(before)]) return;
    const auto call = functions_.upper_bound(behind);
    if (call == functions_.end() || *call >= before) return;
    const TraceTime from = ExplainedUntil(begin);
    const NodeId function =
        AddNode(NodeKind::kInferredFunction, Index(*call), (begin - from).ns, begin.ns);
    for (const Cause& cause : causes_) {
      AddEdge(cause.from, cause.kind, std::min(cause.usual, begin).ns - graph_.ends[cause.from]);
    }
    functions_.erase(call);
    causes_.push_back({function, EdgeKind::kStream, begin, begin, kNoRow});
  }

  // The edges of a stream's item, with the lags that give its recorded begin.
  void SetCauses(NodeId node, uint32_t item, const Streams::Stream& stream) {
    const TraceTime begin = streams_.begin(item);
    const TraceTime explained = ExplainedUntil(begin);
    // Where none would have held it up so long, the one that may have.
    const Cause* late = nullptr;
    bool is_residual = false;
    if (explained < begin) {
      for (const Cause& cause : causes_) {
        if (cause.until >= begin && (late == nullptr || cause.usual > late->usual)) late = &cause;
      }
      if (late == nullptr) {
        if (const auto other = others_.EndedJustBefore(item, stream, explained)) {
          AddStreamTarget(*other, EdgeKind::kInferredEvent, stream, kNoRow);
          late = &causes_.back();
        } else if (const auto holder = others_.HeldDeviceUntil(item, stream, explained)) {
          AddStreamTarget(*holder, EdgeKind::kInferredRoom, stream, kNoRow);
          late = &causes_.back();
        }
      }
      if (late == nullptr && !causes_.empty()) {
        late = &*std::max_element(causes_.begin(), causes_.end(),
                                  [](const Cause& a, const Cause& b) { return a.usual < b.usual; });
        is_residual = !IsBehindGap({explained, begin});
      }
    }
    if (causes_.empty()) AddEdge(0, EdgeKind::kBegin, begin.ns);
    for (const Cause& cause : causes_) {
      const TraceTime at = &cause == late ? begin : std::min(cause.usual, begin);
      const EdgeId edge = AddEdge(cause.from, cause.kind, at.ns - graph_.ends[cause.from]);
      if (cause.sync != kNoRow) graph_.sync_of.emplace_back(edge, cause.sync);
      if (&cause != late || !is_residual) continue;
      graph_.residuals.push_back({node, edge, (begin - explained).ns, IsBehindGraph(item, stream)});
    }
  }

  // Between its call and that of what stands before it.
  bool IsBehindGraph(uint32_t item, const Streams::Stream& stream) const {
    return item > stream.first && streams_.call(item) != kNoRow &&
           graph_launches_.AnyWithin(streams_.issued(item - 1), streams_.issued(item));
  }

  bool IsBehindGap(const Interval& wait) const {
    return std::any_of(trace_.gaps.begin(), trace_.gaps.end(),
                       [&](const Gap& gap) { return !Intersect(gap.interval, wait).Empty(); });
  }

  // -- Steps.

  void FindStepNodes() {
    for (const Step& step : steps_.steps) {
      graph_.step_begin.push_back(NodeOfMark(step.span.begin));
      graph_.step_end.push_back(NodeOfMark(step.span.end));
    }
  }

  NodeId NodeOfMark(TraceTime at) const {
    const auto mark = std::lower_bound(items_.marks.begin(), items_.marks.end(), at);
    if (mark == items_.marks.end() || *mark != at) return 0;
    return node_of_mark_[static_cast<size_t>(mark - items_.marks.begin())];
  }

  const Trace& trace_;
  const Steps& steps_;
  const Streams streams_;
  const GraphLaunches graph_launches_;
  HostItems items_;
  HandOvers hand_overs_;
  EventWaits waits_;
  std::vector<DeviceTimes> times_;  // by device; behind them those of none
  std::vector<StreamState> states_;
  const OtherStreams others_;
  std::set<Row> functions_;  // calls that asked for one of which no row tells; what is found goes

  Graph graph_;
  std::vector<NodeId> last_of_thread_;
  NodeId last_issuing_ = 0;                        // of all threads that ask a device for work
  std::vector<std::vector<NodeId>> node_of_item_;  // by thread and item; its last one
  std::vector<NodeId> node_of_stream_item_;
  std::vector<NodeId> node_of_mark_;
  std::unordered_map<uint32_t, NodeId> held_;  // by call: where it had waited for room in a queue
  std::map<std::pair<DeviceId, CopyDirection>, NodeId> engines_;  // the last copy of each
  std::vector<Cause> causes_;                                     // of the item at hand
};

}  // namespace

Graph BuildGraph(const Trace& trace, const Steps& steps, const std::vector<bool>& blocking_calls) {
  return Builder(trace, steps, blocking_calls).Build();
}

}  // namespace trainprof
