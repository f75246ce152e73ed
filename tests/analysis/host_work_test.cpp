// What goes of the host's own work, at once and found beforehand, against the law edge by edge.
#include "analysis/graph/host_work.h"

#include <gtest/gtest.h>

#include "analysis/graph/build.h"
#include "analysis/host/timeline.h"
#include "analysis/steps/steps.h"
#include "tests/support/random_trace.h"
#include "tests/support/sanitized.h"

namespace trainprof {
namespace {

// The law, with what is dropped of hand-overs as well.
void DropByForce(const Trace& trace, const Graph& graph, const TimesOfThreads& gone, Costs& costs) {
  const Costs before = costs;
  for (NodeId node = 1; node < graph.size(); ++node) {
    const auto times = gone.find(HostThreadOf(trace, graph, node));
    if (times == gone.end() || times->first == kNoTrack) continue;
    for (EdgeId edge = graph.first_edge[node]; edge < graph.first_edge[node + 1]; ++edge) {
      if (graph.edge_kind[edge] != EdgeKind::kProgram) continue;
      const TraceTime from{graph.ends[graph.from[edge]]};
      if (before.lag[edge] != kNever && before.Lag(edge) > 0) {
        const Interval work{from, from + Duration{graph.recorded.Lag(edge)}};
        const int64_t left = before.Lag(edge) - times->second.TotalWithin(work).ns;
        if (!work.Empty()) costs.SetLag(edge, std::max<int64_t>(0, left));
        continue;
      }
      const Interval pause{from, TraceTime{graph.ends[node] - graph.recorded.Duration(node)}};
      if (pause.Empty()) continue;
      const Duration at_work = times->second.TotalWithin(pause);
      if (at_work.ns == 0 || 2 * at_work.ns < pause.Length().ns) continue;
      costs.SetLag(edge, (pause.Length() - at_work).ns);
      for (EdgeId other = graph.first_edge[node]; other < graph.first_edge[node + 1]; ++other) {
        if (graph.edge_kind[other] == EdgeKind::kHandOver) costs.Drop(other);
      }
    }
  }
}

TEST(HostWorkCut, GoesAsTheLawSaysAtOnceAndFoundBeforehand) {
  size_t shorter = 0;
  size_t longer = 0;
  size_t dropped = 0;
  for (uint64_t seed = 0; seed < testing::Rounds<uint64_t>(2000); ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Trace trace = BuildTrace(DrawTrace(seed));
    Graph graph = BuildGraph(trace, FindSteps(trace), FindBlockingCalls(trace));
    // Random threads hardly ever hand over.
    for (EdgeKind& kind : graph.edge_kind) {
      if (kind == EdgeKind::kSync && random.Chance(50)) kind = EdgeKind::kHandOver;
    }
    TimesOfThreads gone;
    for (uint32_t track = 0; track < trace.tracks.size(); ++track) {
      if (random.Chance(30)) continue;
      std::vector<Interval> times;
      for (int64_t i = random.Between(0, 5); i > 0; --i) {
        const int64_t begin = random.Between(trace.extent.begin.ns, trace.extent.end.ns);
        const int64_t length = random.Between(1, trace.extent.Length().ns / 2 + 1);
        times.push_back({TraceTime{begin}, TraceTime{begin + length}});
      }
      gone[TrackId{track}] = IntervalSet::Union(std::move(times));
    }
    Costs costs = graph.recorded;  // of some change
    for (EdgeId edge = 0; edge < graph.from.size(); ++edge) {
      if (random.Chance(20)) costs.SetLag(edge, 0);
      if (random.Chance(20)) costs.SetLag(edge, random.Between(0, 50'000));
      if (random.Chance(5)) costs.Drop(edge);
    }
    Costs expected = costs;
    DropByForce(trace, graph, gone, expected);
    Costs at_once = costs;
    DropHostWork(trace, graph, gone, at_once);
    ASSERT_EQ(at_once.lag, expected.lag);
    ASSERT_EQ(at_once.long_lags, expected.long_lags);
    Costs found = costs;
    HostWorkCut(trace, graph, gone).Make(graph, found);
    ASSERT_EQ(found.lag, expected.lag);
    ASSERT_EQ(found.long_lags, expected.long_lags);
    ASSERT_EQ(found.duration, costs.duration);
    for (EdgeId edge = 0; edge < graph.from.size(); ++edge) {
      if (costs.lag[edge] == kNever) continue;
      if (expected.lag[edge] == kNever) {
        ++dropped;
        continue;
      }
      shorter += expected.Lag(edge) < costs.Lag(edge) ? 1 : 0;
      longer += expected.Lag(edge) > costs.Lag(edge) ? 1 : 0;
    }
  }
  EXPECT_GT(shorter, 100u);
  EXPECT_GT(longer, 20u);
  EXPECT_GT(dropped, 2u);
}

}  // namespace
}  // namespace trainprof
