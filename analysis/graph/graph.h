// What waited for what: the run as nodes in time order with edges that point back. A node begins when
// all that it depends on has ended, plus the edge's lag, and lasts for its own time. Replaying the graph
// as it is gives the recording; replaying it with other costs (what_if.h) tells what a change is worth.
//
//   thread   ──[call]──host work──[call][wait]──host work──[input]──[call]──
//                 │launch                ▲sync                         │
//   stream        └────▶[kernel][kernel]─┘                             └▶[kernel]
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "trace/tables/trace.h"

namespace trainprof {

enum class NodeKind : uint8_t {
  kStart,     // node 0: the trace's time 0, of which nothing is waited for
  kCall,      // a call of the host, without what it waits for; row of api
  kWait,      // the rest of a call that waits, for a device or for room in its queue; row of api
  kInput,     // the host waits for its loader; row of ranges
  kStep,      // a step's begin on the thread that steps, which takes no time; index of its span
  kDeviceOp,  // row of device_ops
  kHostFunction,      // a stream waits while the host runs a function; row of syncs
  kInferredFunction,  // the same, as it seems, where no row tells of it; row of api: who asked for it
};

enum class EdgeKind : uint8_t {
  kBegin,    // the first of a track: when it began
  kProgram,  // what stood before it on its thread; the lag is the host's own work between the two
  kLaunch,   // the call that issued it
  kInferredLaunch,  // what the host did last before; of an operation whose call is not recorded
  kStream,          // what stood before it in its stream
  kNullStream,
  kEvent,          // the stream waited for an event that another one recorded
  kInferredEvent,  // as it seems: within a graph launch, or where no waits of streams are recorded
  kEngine,         // the copy before it in the same direction
  kInferredRoom,   // as it seems, another stream's operation left it no room on the device
  kSync,           // what the host waited for
  kQueueRoom,      // whose end made room in a queue that was full
  kHandOver,       // inferred: another thread's call, behind which a thread goes on
  kLoader,  // the time at which a loader delivered; only a replay with a rate-limited loader uses it
};

using NodeId = uint32_t;
using EdgeId = uint32_t;

// Of nodes, or of calls: so many that a thread is worth its start.
inline constexpr size_t kNodesOfAThread = size_t{1} << 17;

// A duration or a lag that the 32 bits of its column do not hold stands beside them.
inline constexpr int32_t kLong = INT32_MAX;
inline constexpr int32_t kNever = INT32_MIN;  // a lag: the edge is none

// What a replay takes from a graph, and a change alters: how long nodes and edges last, in ns.
struct Costs {
  std::vector<int32_t> duration;  // by node
  std::vector<int32_t> lag;       // by edge; may be negative: two clocks, or a call that goes on
  std::unordered_map<NodeId, int64_t> long_durations;
  std::unordered_map<EdgeId, int64_t> long_lags;

  int64_t Duration(NodeId node) const {
    return duration[node] == kLong ? long_durations.at(node) : duration[node];
  }
  // Of an edge that is one.
  int64_t Lag(EdgeId edge) const { return lag[edge] == kLong ? long_lags.at(edge) : lag[edge]; }
  // What is not made longer several threads may set at once, each for others.
  void SetDuration(NodeId node, int64_t ns) { Set(ns, node, duration, long_durations); }
  void SetLag(EdgeId edge, int64_t ns) { Set(ns, edge, lag, long_lags); }
  void Drop(EdgeId edge) { lag[edge] = kNever; }
  // Into the room of the last time.
  void Assign(const Costs& other);

 private:
  static void Set(int64_t ns, uint32_t at, std::vector<int32_t>& column,
                  std::unordered_map<uint32_t, int64_t>& long_ones) {
    if (ns > kNever && ns < kLong) {
      column[at] = static_cast<int32_t>(ns);
    } else {
      SetLong(ns, at, column, long_ones);
    }
  }
  static void SetLong(int64_t ns, uint32_t at, std::vector<int32_t>& column,
                      std::unordered_map<uint32_t, int64_t>& long_ones);
};

// Of a node's begin, what none of its edges explains: it began that much later than it could have.
struct Residual {
  NodeId node = 0;
  EdgeId edge = 0;  // whose lag holds it
  int64_t ns = 0;
  // It stands behind a graph's launch, of which nodes may have run then that the trace misses.
  bool is_behind_graph = false;
};

struct Graph {
  // Nodes, each behind all that it depends on.
  std::vector<NodeKind> kind;
  std::vector<uint32_t> row;
  std::vector<EdgeId> first_edge;  // of node n: [first_edge[n], first_edge[n + 1])
  // Edges into nodes.
  std::vector<NodeId> from;
  std::vector<EdgeKind> edge_kind;
  Costs recorded;
  std::vector<int64_t> ends;        // of nodes, as recorded: what a replay of those costs gives
  std::vector<Residual> residuals;  // by node
  // Of edges that a row of syncs made, by edge; inferred ones have none.
  std::vector<std::pair<EdgeId, Row>> sync_of;
  // By span of the steps that the graph was made for: the nodes that may end it, one a stream.
  std::vector<std::vector<NodeId>> last_of_step;
  // Of each span the nodes at its begin and end on the thread that steps; 0: that thread has none.
  std::vector<NodeId> step_begin;
  std::vector<NodeId> step_end;
  std::vector<NodeId> node_of_op;  // by row of device_ops; 0: none
  std::vector<NodeId>
      node_of_call;  // by row of api; its kCall; 0: none. A call within another: that one's
  // Of calls that wait: their kWait, by row of api.
  std::vector<std::pair<uint32_t, NodeId>> wait_of_call;
  int64_t dropped_edges = 0;      // pointed forwards: the recorded times contradict them
  int64_t unexplained_waits = 0;  // calls that wait, with nothing recorded that ended meanwhile

  // Room for so many nodes, and for twice as many edges.
  void Reserve(size_t nodes);
  // No more will be added.
  void ReturnRoom();
  // 0: it waits for nothing. O(log waits).
  NodeId WaitOf(Row call) const;
  NodeId size() const { return static_cast<NodeId>(kind.size()); }
};

// The thread of the host that a node is on: of calls, waits and waits for input; kNoTrack of all others.
inline TrackId HostThreadOf(const Trace& trace, const Graph& graph, NodeId node) {
  switch (graph.kind[node]) {
    case NodeKind::kCall:
    case NodeKind::kWait:
      return trace.api.track[graph.row[node]];
    case NodeKind::kInput:
      return trace.ranges.track[graph.row[node]];
    default:
      return kNoTrack;
  }
}

// The end of each node, in ns since time 0. `costs` are the graph's own or an edit of them. O(V + E),
// some 3 ns an edge. Can be cancelled.
std::vector<int64_t> Replay(const Graph& graph, const Costs& costs);
// The same into room that may be there from the last time.
void Replay(const Graph& graph, const Costs& costs, std::vector<int64_t>& ends);

// The edge on which a node waited longest, given all ends; of several the first. Undefined for node 0.
inline EdgeId BindingEdge(const Graph& graph, const Costs& costs, const std::vector<int64_t>& ends,
                          NodeId node) {
  EdgeId binding = graph.first_edge[node];
  const EdgeId last = graph.first_edge[node + 1];
  if (last - binding <= 1) return binding;
  int64_t latest = INT64_MIN;
  for (EdgeId edge = binding; edge < last; ++edge) {
    if (costs.lag[edge] == kNever) continue;
    const int64_t at = ends[graph.from[edge]] + costs.Lag(edge);
    if (at > latest) {
      latest = at;
      binding = edge;
    }
  }
  return binding;
}

}  // namespace trainprof
