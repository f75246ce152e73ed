#include "tests/analysis/twin_waits.h"

#include <algorithm>

#include "analysis/graph/latencies.h"
#include "analysis/host/timeline.h"

namespace trainprof {

TwinWaits::TwinWaits(const Trace& trace, const Graph& graph, TrackId stepping)
    : trace_(trace), graph_(graph), stepping_(stepping), is_needed_(trace.tracks.size(), false) {
  for (NodeId node = 0; node < graph.size(); ++node) EndOf(node);
  if (stepping == kNoTrack) {
    is_needed_.assign(trace.tracks.size(), true);
    return;
  }
  is_needed_[Index(stepping)] = true;
  const auto track_of = [&](NodeId node) {
    return IsHost(node) ? ThreadOf(node) : trace.device_ops.track[graph.row[node]];
  };
  // Who feeds a needed track is not needed for that; who is fed by one, or waited for, is.
  for (size_t round = 0; round < trace.tracks.size(); ++round) {
    for (NodeId node = 1; node < graph.size(); ++node) {
      if (!IsHost(node)) {
        const Row launch = trace.device_ops.launch[graph.row[node]];
        if (launch != kNoRow && is_needed_[Index(trace.api.track[Index(launch)])]) {
          is_needed_[Index(track_of(node))] = true;
        }
      }
      if (!is_needed_[Index(track_of(node))]) continue;
      for (EdgeId edge = graph.first_edge[node]; edge < graph.first_edge[node + 1]; ++edge) {
        switch (graph.edge_kind[edge]) {
          case EdgeKind::kNullStream:
          case EdgeKind::kEvent:
          case EdgeKind::kSync:
          case EdgeKind::kHandOver:
            is_needed_[Index(track_of(graph.from[edge]))] = true;
            break;
          default:
            break;
        }
      }
    }
  }
}

int64_t TwinWaits::EndOf(NodeId node) {
  const auto known = ends_.find(node);
  if (known != ends_.end()) return known->second;
  int64_t begin = node == 0 ? 0 : INT64_MIN;
  for (EdgeId edge = graph_.first_edge[node]; edge < graph_.first_edge[node + 1]; ++edge) {
    if (graph_.recorded.lag[edge] == kNever) continue;
    begin = std::max(begin, EndOf(graph_.from[edge]) + graph_.recorded.Lag(edge));
  }
  return ends_[node] = begin + graph_.recorded.Duration(node);
}

// The first of those edges that came last.
EdgeId TwinWaits::Last(NodeId node) const {
  for (EdgeId edge = graph_.first_edge[node]; edge < graph_.first_edge[node + 1]; ++edge) {
    if (graph_.recorded.lag[edge] == kNever) continue;
    if (ends_.at(graph_.from[edge]) + graph_.recorded.Lag(edge) == BeginOf(node)) return edge;
  }
  return graph_.first_edge[node];
}

bool TwinWaits::IsHost(NodeId node) const {
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

TrackId TwinWaits::ThreadOf(NodeId node) const {
  if (graph_.kind[node] == NodeKind::kInput) return trace_.ranges.track[graph_.row[node]];
  if (graph_.kind[node] == NodeKind::kStep) return stepping_;
  return trace_.api.track[graph_.row[node]];
}

DeviceId TwinWaits::DeviceOf(NodeId node) const {
  return trace_.tracks[Index(trace_.device_ops.track[graph_.row[node]])].device;
}

bool TwinWaits::IsForRoom(NodeId wait) const {
  bool is_room = false;
  for (EdgeId edge = graph_.first_edge[wait]; edge < graph_.first_edge[wait + 1]; ++edge) {
    is_room |= graph_.edge_kind[edge] == EdgeKind::kQueueRoom;
  }
  return is_room;
}

// Back over what the host did, one thing because of another, to a call in which it waited for a device.
NodeId TwinWaits::WaitUpTo(NodeId node) const {
  while (node != 0 && IsHost(node)) {
    const bool is_call =
        graph_.kind[node] == NodeKind::kCall || graph_.kind[node] == NodeKind::kWait;
    if (!is_call || trace_.api.interval(Row{graph_.row[node]}).Length() <= kHandOver) {
      node = graph_.from[Last(node)];
      continue;
    }
    if (graph_.kind[node] == NodeKind::kCall) {
      const Row call{graph_.row[node]};
      const bool waits =
          HostWaitOf(trace_.Text(trace_.api.name[Index(call)])) == HostWait::kContext;
      NodeId its_wait = 0;
      for (const auto& [row, wait] : graph_.wait_of_call) {
        if (Row{row} == call) its_wait = wait;
      }
      if (its_wait == 0 && waits) return node;
      if (its_wait != 0 && !IsForRoom(its_wait)) return node;
    }
    if (graph_.kind[node] == NodeKind::kWait && !IsForRoom(node)) return node;
    node = graph_.from[Last(node)];
  }
  return 0;
}

// An operation's own call is at work until then.
int64_t TwinWaits::IssuedUntil(NodeId node) const {
  const size_t op = graph_.row[node];
  const size_t call = Index(trace_.device_ops.launch[op]);
  int64_t issued = trace_.api.end(call).ns;
  if (trace_.device_ops.kind[op] == DeviceOpKind::kCopy) {
    issued = trace_.api.begin[call].ns;
    if (trace_.device_ops.direction[op] == CopyDirection::kHostToDevice) {
      issued +=
          std::min(trace_.device_ops.bytes[op], kStagingBytes) / kStagingBytesPerMicrosecond * 1000;
    }
  }
  return issued + kHandOver.ns;
}

Held TwinWaits::OnHost(NodeId node, int64_t since, NodeId last) const {
  const NodeId wait = WaitUpTo(last);
  Held held;
  held.by = Holder::kHost;
  held.thread = ThreadOf(node);
  held.since = TraceTime{since};
  if (wait != 0) held.wait = Row{graph_.row[wait]};
  return held;
}

// A graph was launched before it, or together with it.
Holder TwinWaits::Lost(NodeId node) const {
  const Row launch = trace_.device_ops.launch[graph_.row[node]];
  for (size_t call = 0; call < trace_.api.size(); ++call) {
    if (trace_.api.kind[call] == ApiKind::kGraphLaunch &&
        trace_.api.begin[call] <= trace_.api.begin[Index(launch)]) {
      return Holder::kUnrecorded;
    }
  }
  return Holder::kUnknown;
}

Held TwinWaits::During(NodeId node, DeviceId device) const {
  Held held;
  if (graph_.kind[node] != NodeKind::kDeviceOp) {
    held.by = Holder::kHostFunction;
  } else {
    held.by = DeviceOf(node) == device ? Holder::kHandOver : Holder::kOtherDevice;
  }
  return held;
}

// What the node waited for at a moment before it began; what was from `known` on is told already.
Held TwinWaits::Before(NodeId node, int64_t known, DeviceId device, int64_t from,
                       int64_t moment) const {
  if (node == 0) return {};
  if (!IsHost(node)) return BeforeQueued(node, known, device, from, moment);
  if (moment >= BeginOf(node)) return OnHost(node, from, node);
  known = std::min(known, BeginOf(node));
  const NodeId back = graph_.from[Last(node)];
  if (back == 0) return OnHost(node, from, 0);
  const int64_t end = ends_.at(back);
  if (moment >= end) return OnHost(node, std::min(end, from), IsHost(back) ? back : node);
  known = std::min(known, end);
  if (IsHost(back)) return Before(back, known, device, from, moment);
  if (moment >= BeginOf(back)) return During(back, device);
  return Before(back, std::min(known, BeginOf(back)), device, from, moment);
}

Held TwinWaits::BeforeQueued(NodeId node, int64_t known, DeviceId device, int64_t from,
                             int64_t moment) const {
  const bool is_op = graph_.kind[node] == NodeKind::kDeviceOp;
  const Row launch = trace_.device_ops.launch[graph_.row[node]];
  Held held;
  if (!is_op || launch == kNoRow) return held;  // no host functions are drawn
  held.by = DeviceOf(node) == device ? Holder::kHandOver : Holder::kOtherDevice;
  const EdgeId edge = Last(node);
  const NodeId back = graph_.from[edge];
  const bool is_residual =
      std::any_of(graph_.residuals.begin(), graph_.residuals.end(),
                  [&](const Residual& residual) { return residual.node == node; });
  const int64_t end = ends_.at(back);
  const bool was_issued = trace_.api.end(Index(launch)).ns <= from;
  if (back != 0 && graph_.edge_kind[edge] != EdgeKind::kLaunch && !is_residual &&
      (was_issued || end > from)) {
    if (moment >= end) {
      if (known - std::max(end, from) > kHandOver.ns) held.by = Lost(node);
      return held;
    }
    known = std::min(known, end);
    if (IsHost(back)) return Before(back, known, device, from, moment);
    if (moment >= BeginOf(back)) return During(back, device);
    return Before(back, std::min(known, BeginOf(back)), device, from, moment);
  }
  const size_t call = Index(launch);
  if (trace_.api.end(call).ns <= from) {
    if (known - from > kHandOver.ns) held.by = Lost(node);
    return held;
  }
  const int64_t begin = trace_.api.begin[call].ns;
  if (moment >= std::max(IssuedUntil(node), begin)) {
    const bool to_device =
        trace_.device_ops.direction[graph_.row[node]] == CopyDirection::kHostToDevice;
    held.by = begin < from && !to_device ? Lost(node) : Holder::kUnknown;
    return held;
  }
  const NodeId caller = graph_.node_of_call[call];
  if (moment >= begin) {
    held.by = Holder::kIssue;
    held.thread = trace_.api.track[call];
    const NodeId wait = caller == 0 ? 0 : WaitUpTo(graph_.from[Last(caller)]);
    const bool copies = trace_.device_ops.kind[graph_.row[node]] == DeviceOpKind::kCopy;
    if (wait != 0 && !copies) held.wait = Row{graph_.row[wait]};
    held.is_long_call = trace_.api.kind[call] == ApiKind::kLaunch &&
                        trace_.api.end(call).ns - begin >= kSetupCall.ns;
    return held;
  }
  return Before(caller, std::min(known, begin), device, from, moment);
}

Held TwinWaits::At(size_t op, int64_t from, int64_t moment) const {
  const DeviceId device = trace_.tracks[Index(trace_.device_ops.track[op])].device;
  return Before(node_of(op), trace_.device_ops.begin[op].ns, device, from, moment);
}

std::vector<int64_t> TwinWaits::Cuts() const {
  std::vector<int64_t> cuts;
  for (NodeId node = 1; node < graph_.size(); ++node) {
    cuts.push_back(BeginOf(node));
    cuts.push_back(ends_.at(node));
    if (graph_.kind[node] != NodeKind::kDeviceOp) continue;
    if (trace_.device_ops.launch[graph_.row[node]] != kNoRow) cuts.push_back(IssuedUntil(node));
  }
  return cuts;
}

}  // namespace trainprof
