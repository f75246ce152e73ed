#include "analysis/graph/host_work.h"

#include <algorithm>
#include <mutex>
#include <optional>

#include "trace/base/cancel.h"
#include "trace/base/parallel.h"

namespace trainprof {

// What goes of it, edge by edge.
class HostWork {
 public:
  using Cut = HostWorkCut::Cut;

  HostWork(const Trace& trace, const Graph& graph, const TimesOfThreads& gone)
      : trace_(trace), graph_(graph), gone_(gone) {}

  // Calls `visit(cut)` for what goes before the nodes [first, last), each of another edge. `costs`: of which it goes;
  // nullptr: any.
  template <class Visit>
  void Find(size_t first, size_t last, const Costs* costs, Visit visit) const {
    std::vector<std::optional<Readers>> readers(
        trace_.tracks.size());  // of most tracks nothing goes
    for (const auto& [thread, times] : gone_) {
      if (thread != kNoTrack) readers[Index(thread)].emplace(times);
    }
    for (auto node = static_cast<NodeId>(std::max<size_t>(first, 1)); node < last; ++node) {
      CancelPoint(node);
      const TrackId thread = HostThreadOf(trace_, graph_, node);
      if (thread == kNoTrack || !readers[Index(thread)]) continue;
      Readers& reader = *readers[Index(thread)];
      for (EdgeId edge = graph_.first_edge[node]; edge < graph_.first_edge[node + 1]; ++edge) {
        if (graph_.edge_kind[edge] != EdgeKind::kProgram) continue;
        Cut cut{.node = node, .edge = edge};
        const bool is_work = costs != nullptr && IsWork(edge, *costs);
        if (costs == nullptr || is_work) cut.gone_ns = GoneOfWork(edge, reader.work);
        if (costs == nullptr || !is_work) cut.left_ns = LeftOfPause(node, edge, reader.pauses);
        if (cut.gone_ns > 0 || cut.left_ns != HostWorkCut::kWoken) visit(cut);
      }
    }
  }

  // A lag of kProgram; else it is a pause, or no edge any more.
  static bool IsWork(EdgeId edge, const Costs& costs) {
    return costs.lag[edge] != kNever && costs.Lag(edge) > 0;
  }

  static void Make(const Cut& cut, const Graph& graph, Costs& costs) {
    if (IsWork(cut.edge, costs)) {
      if (cut.gone_ns == 0) return;
      costs.SetLag(cut.edge, std::max<int64_t>(0, costs.Lag(cut.edge) - cut.gone_ns));
      return;
    }
    if (cut.left_ns == HostWorkCut::kWoken) return;
    costs.SetLag(cut.edge, cut.left_ns);
    for (EdgeId edge = graph.first_edge[cut.node]; edge < graph.first_edge[cut.node + 1]; ++edge) {
      if (graph.edge_kind[edge] == EdgeKind::kHandOver) costs.Drop(edge);
    }
  }

 private:
  struct Readers {
    explicit Readers(const IntervalSet& set) : work(set), pauses(set) {}
    IntervalReader work;
    IntervalReader pauses;
  };

  int64_t GoneOfWork(EdgeId edge, IntervalReader& gone) const {
    const TraceTime begin{graph_.ends[graph_.from[edge]]};
    return gone.TotalWithin({begin, begin + Duration{graph_.recorded.Lag(edge)}}).ns;
  }

  int64_t LeftOfPause(NodeId node, EdgeId edge, IntervalReader& worked) const {
    const Interval pause{TraceTime{graph_.ends[graph_.from[edge]]},
                         TraceTime{graph_.ends[node] - graph_.recorded.Duration(node)}};
    const Duration at_work = pause.Empty() ? Duration{} : worked.TotalWithin(pause);
    if (at_work.ns == 0 || at_work.ns * 2 < pause.Length().ns) return HostWorkCut::kWoken;
    return (pause.Length() - at_work).ns;
  }

  const Trace& trace_;
  const Graph& graph_;
  const TimesOfThreads& gone_;
};

void DropHostWork(const Trace& trace, const Graph& graph, const TimesOfThreads& gone,
                  Costs& costs) {
  const HostWork work(trace, graph, gone);
  std::mutex mutex;
  std::vector<HostWork::Cut> pauses;  // a lag gets longer by them: one at a time
  RunParts(graph.size(), kNodesOfAThread, [&](size_t first, size_t last) {
    std::vector<HostWork::Cut> of_part;
    work.Find(first, last, &costs, [&](const HostWork::Cut& cut) {
      if (HostWork::IsWork(cut.edge, costs)) {
        HostWork::Make(cut, graph, costs);
      } else {
        of_part.push_back(cut);
      }
    });
    const std::lock_guard lock(mutex);
    pauses.insert(pauses.end(), of_part.begin(), of_part.end());
  });
  for (const HostWork::Cut& cut : pauses) HostWork::Make(cut, graph, costs);
}

HostWorkCut::HostWorkCut(const Trace& trace, const Graph& graph, const TimesOfThreads& gone) {
  const HostWork work(trace, graph, gone);
  std::mutex mutex;
  RunParts(graph.size(), kNodesOfAThread, [&](size_t first, size_t last) {
    std::vector<Cut> of_part;
    work.Find(first, last, nullptr, [&](const Cut& cut) { of_part.push_back(cut); });
    const std::lock_guard lock(mutex);
    cuts_.insert(cuts_.end(), of_part.begin(), of_part.end());
  });
}

void HostWorkCut::Make(const Graph& graph, Costs& costs) const {
  for (size_t i = 0; i < cuts_.size(); ++i) {
    CancelPoint(i);
    HostWork::Make(cuts_[i], graph, costs);
  }
}

}  // namespace trainprof
