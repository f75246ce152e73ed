#include "analysis/account/drain.h"

#include <algorithm>
#include <unordered_map>

#include "trace/base/cancel.h"

namespace trainprof {

Duration DrainOf(const Graph& graph, std::span<const Row> calls,
                 std::span<const DeviceAccount> devices, const IntervalSet& window) {
  // By the node of the outermost call around each.
  std::unordered_map<NodeId, Duration> most;
  for (const Row call : calls) most.try_emplace(graph.node_of_call[Index(call)]);
  for (const DeviceAccount& device : devices) {
    std::unordered_map<NodeId, Duration> here;
    for (size_t i = 0; i < device.drains.size(); ++i) {
      CancelPoint(i);
      const NodeId node = graph.node_of_call[Index(device.drains[i].wait)];
      if (most.contains(node)) here[node] += window.TotalWithin(device.drains[i].interval);
    }
    for (const auto& [node, drain] : here) most[node] = std::max(most[node], drain);
  }
  Duration sum;
  for (const auto& [node, drain] : most) sum += drain;
  return sum;
}

}  // namespace trainprof
