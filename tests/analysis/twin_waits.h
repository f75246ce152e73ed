// What an operation waited for at a moment, by plain recursion over a graph's nodes: the twin of
// analysis/graph/waited_for.h.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "analysis/graph/waited_for.h"

namespace trainprof {

class TwinWaits {
 public:
  TwinWaits(const Trace& trace, const Graph& graph, TrackId stepping);

  bool IsNeeded(size_t op) const { return is_needed_[Index(trace_.device_ops.track[op])]; }
  // At `moment` (from <= moment < begin of op); `from`: nobody asks what was before. The interval stays
  // empty.
  Held At(size_t op, int64_t from, int64_t moment) const;
  // Moments at which that may change.
  std::vector<int64_t> Cuts() const;

 private:
  NodeId node_of(size_t op) const { return graph_.node_of_op[op]; }
  int64_t EndOf(NodeId node);
  int64_t BeginOf(NodeId node) const { return ends_.at(node) - graph_.recorded.Duration(node); }
  EdgeId Last(NodeId node) const;
  bool IsHost(NodeId node) const;
  TrackId ThreadOf(NodeId node) const;
  DeviceId DeviceOf(NodeId node) const;
  bool IsForRoom(NodeId wait) const;
  NodeId WaitUpTo(NodeId node) const;
  int64_t IssuedUntil(NodeId op) const;
  Held OnHost(NodeId node, int64_t since, NodeId last) const;
  Held Before(NodeId node, int64_t known, DeviceId device, int64_t from, int64_t moment) const;
  Held BeforeQueued(NodeId node, int64_t known, DeviceId device, int64_t from,
                    int64_t moment) const;
  Holder Lost(NodeId node) const;
  Held During(NodeId node, DeviceId device) const;

  const Trace& trace_;
  const Graph& graph_;
  TrackId stepping_;
  std::map<NodeId, int64_t> ends_;
  std::vector<bool> is_needed_;
};

}  // namespace trainprof
