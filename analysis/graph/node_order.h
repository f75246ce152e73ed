// The order of a graph's nodes: by recorded time, each behind what it may depend on.
#pragma once

#include <vector>

#include "analysis/graph/host_items.h"

namespace trainprof {

// A node to be: of a stream's item, or of a thread's. 16 bytes.
struct Pending {
  int64_t at = 0;  // its place in the order
  uint32_t index = 0;
  uint32_t thread : 24 = 0;
  uint32_t kind : 8 = 0;

  NodeKind Kind() const { return static_cast<NodeKind>(kind); }
};

// O(n log(threads + streams)).
std::vector<Pending> OrderOfNodes(const Trace& trace, const Streams& streams,
                                  const HostItems& items);

}  // namespace trainprof
