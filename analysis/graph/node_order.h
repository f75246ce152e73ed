// The order of a graph's nodes: by recorded time, each behind what it may depend on.
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "analysis/graph/host_items.h"
#include "trace/base/parallel.h"
#include "trace/base/tournament.h"

namespace trainprof {

// A node to be: of a stream's item, or of a thread's.
struct Pending {
  int64_t at = 0;  // its place in the order
  uint32_t index = 0;
  uint32_t thread = 0;
  NodeKind kind = NodeKind::kStart;
};

// Merges what threads and streams did, node by node: a list of them all would be half as large as the graph.
class NodeOrder {
 public:
  // Keeps references.
  NodeOrder(const Trace& trace, const Streams& streams, const HostItems& items);
  NodeOrder(const NodeOrder&) = delete;  // its merge asks this one
  NodeOrder& operator=(const NodeOrder&) = delete;

  // How many there will be.
  size_t size() const { return size_; }
  // Calls `visit(pending)` for each, in their order, once; while it does the nodes to come are merged on another
  // core. O(log(threads + streams)) each.
  template <class Visitor>
  void Visit(Visitor visit) {
    std::vector<Pending> part;
    std::vector<Pending> next;
    const auto visit_part = [&] {
      for (const Pending& pending : part) visit(pending);
    };
    const std::array<std::function<void()>, 2> stages{visit_part, [&] { FindNext(next); }};
    for (FindNext(part); !part.empty(); part.swap(next)) {
      next.clear();
      if (merge_.Done()) {
        visit_part();
      } else {
        RunAll(stages);
      }
    }
  }

 private:
  // So many that a thread is worth its start, and few enough for a cache.
  static constexpr size_t kAtOnce = size_t{1} << 15;

  // Of a thread: items stand in the order of their begin, but some nodes belong where theirs ended.
  struct OfThread {
    uint32_t next = 0;
    std::vector<Pending> waiting;  // in their order, the first one last
  };
  struct OfStream {
    uint32_t next = 0;
    int64_t at = INT64_MIN;
  };

  bool ComesBefore(const Pending& a, const Pending& b) const;
  // The next kAtOnce, or what is left.
  void FindNext(std::vector<Pending>& nodes);
  bool PullThread(uint32_t thread, Pending& pending);
  bool PullStream(uint32_t stream, Pending& pending);
  // The place of the track's next node, which stands in next_ then.
  int64_t Pull(uint32_t track);

  const Trace& trace_;
  const Streams& streams_;
  const HostItems& items_;
  size_t size_ = 0;
  // By track: all threads, behind them all streams.
  std::vector<OfThread> threads_;
  std::vector<OfStream> of_streams_;
  std::vector<Pending> next_;
  Tournament merge_;
};

}  // namespace trainprof
