// What an operation waited for, moment by moment: the way back from it along the edges that were the last
// to let each node begin.
#pragma once

#include <vector>

#include "analysis/graph/graph.h"

namespace trainprof {

// What held an operation at a time before it began.
enum class Holder : uint8_t {
  kHost,          // a thread of the host, whatever it did
  kIssue,         // the host in the call that issued it, as long as that may take until it begins
  kOtherDevice,   // an operation of another device, or the moment between two
  kHostFunction,  // a host function in a stream
  kHandOver,      // the device's moment between two queued operations
  kUnrecorded,    // it was queued, and nothing recorded held it: nodes of a graph are missing
  kUnknown,
};

struct Held {
  Interval interval{};
  Holder by = Holder::kUnknown;
  TrackId thread = kNoTrack;  // of kHost and kIssue
  TraceTime since{};          // of kHost: its thread was last seen at something else
  Row wait = kNoRow;  // of those: the last call before in which the host waited for a device
  bool is_long_call = false;  // of kIssue: it set something up, or loaded it
};

class WaitedFor {
 public:
  // Keeps references. O(V + E); 33 bits a node.
  WaitedFor(const Trace& trace, const Graph& graph, TrackId stepping);

  // Whether somebody waits for what its stream does: the stepping thread, which issues work there, or goes
  // on behind it, be it over other streams and threads. True where that thread is not known.
  bool IsNeeded(Row op) const;

  // Fills `held` with [from, begin of op), in time order, without holes. O(nodes in between).
  void Find(Row op, TraceTime from, std::vector<Held>& held) const;

 private:
  class Way;

  void FindWaits();
  void FindFirstGraph();
  void FindNeeded();
  template <class Add>
  void AddFed(TrackId stream, Add add) const;
  TraceTime BeginOf(NodeId node) const {
    return TraceTime{graph_.ends[node] - graph_.recorded.Duration(node)};
  }
  bool IsOfHost(NodeId node) const;
  TrackId ThreadOf(NodeId node) const;  // of the host
  TrackId TrackOf(NodeId node) const;
  bool IsSyncWait(NodeId node) const;
  NodeId WaitBefore(NodeId call) const;

  const Trace& trace_;
  const Graph& graph_;
  TrackId stepping_;
  std::vector<NodeId> wait_before_;  // by node of the host: the last wait up to its end; 0: none
  std::vector<bool> is_residual_;    // by node, see Residual
  std::vector<bool> is_needed_;      // by track
  TraceTime first_graph_{
      INT64_MAX};  // when the first graph was launched of which nodes may be missing
};

}  // namespace trainprof
