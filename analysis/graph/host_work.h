// What is left of the host's own work when what it did at some times goes.
#pragma once

#include <map>
#include <vector>

#include "analysis/graph/graph.h"
#include "trace/base/interval_set.h"

namespace trainprof {

// By thread, when what it did goes. Of kNoTrack nothing does.
using TimesOfThreads = std::map<TrackId, IntervalSet>;

// Takes such times out of the lags of a graph's own costs, or of an edit of them. Who worked for most of a pause was not
// woken behind it by another thread, as it seemed: that edge goes, and what is left of the pause is its own.
// O(V + E), on several cores.
void DropHostWork(const Trace& trace, const Graph& graph, const TimesOfThreads& gone, Costs& costs);

// The same for times that go again and again: found once, and then taken out in O(edges that it changes).
class HostWorkCut {
 public:
  HostWorkCut() = default;
  // O(V + E), on several cores.
  HostWorkCut(const Trace& trace, const Graph& graph, const TimesOfThreads& gone);

  // `graph`: the same.
  void Make(const Graph& graph, Costs& costs) const;

 private:
  // Of the host's own work, or of its pause, before a node.
  struct Cut {
    NodeId node = 0;
    EdgeId edge = 0;
    int64_t gone_ns = 0;       // of work
    int64_t left_ns = kWoken;  // of a pause
  };
  static constexpr int64_t kWoken = -1;  // another thread ended the pause, as it seemed
  friend class HostWork;

  std::vector<Cut> cuts_;  // each of another edge
};

}  // namespace trainprof
