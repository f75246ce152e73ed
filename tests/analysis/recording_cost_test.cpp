// What recording took goes from a call's own time, from its wait's, and from what its thread does behind it.
#include "analysis/graph/recording_cost.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "analysis/graph/build.h"
#include "analysis/host/timeline.h"
#include "analysis/steps/steps.h"
#include "tests/analysis/random_program.h"
#include "tests/support/sanitized.h"
#include "tests/support/trace_script.h"

namespace trainprof {
namespace {

// Takes `ns` of a node's time, as far as it has some; what is left.
int64_t TakeFrom(NodeId node, int64_t ns, Costs& costs) {
  const int64_t taken = std::min(ns, costs.Duration(node));
  costs.SetDuration(node, costs.Duration(node) - taken);
  return ns - taken;
}

// The same, call by call, and what is left of each looked for on all edges.
void LeaveOutInTurn(const RecordingCost& cost, const Trace& trace, const Graph& graph,
                    Costs& costs) {
  std::map<NodeId, int64_t> behind;
  for (NodeId node = 1; node < graph.size(); ++node) {
    if (graph.kind[node] != NodeKind::kCall) continue;
    const uint32_t row = graph.row[node];
    const auto is_within = [&](const SlowedTime& slowed) {
      return slowed.interval.begin <= trace.api.begin[row] &&
             trace.api.begin[row] < slowed.interval.end;
    };
    const auto slowed = std::find_if(cost.measured.begin(), cost.measured.end(), is_within);
    if (slowed != cost.measured.end()) {
      const double left = static_cast<double>(costs.Duration(node)) * slowed->share;
      costs.SetDuration(node, std::llround(left));
      continue;
    }
    int64_t left = TakeFrom(node, cost.call.ns, costs);
    NodeId last = node;
    if (trace.api.stack[row] != kNoStack) {
      if (const NodeId wait = graph.WaitOf(Row{row}); wait != 0) last = wait;
      left = TakeFrom(last, left + cost.stack.ns, costs);
    }
    behind[last] = left;
  }
  for (EdgeId edge = 0; edge < graph.from.size(); ++edge) {
    if (graph.edge_kind[edge] != EdgeKind::kProgram || costs.lag[edge] == kNever) continue;
    if (costs.Lag(edge) <= 0) continue;
    const int64_t at = graph.ends[graph.from[edge]];
    const int64_t length = std::max(graph.recorded.Lag(edge), costs.Lag(edge));
    double gone = 0;
    for (const SlowedTime& slowed : cost.measured) {
      const int64_t within =
          std::min(slowed.interval.end.ns, at + length) - std::max(slowed.interval.begin.ns, at);
      if (within > 0) gone += static_cast<double>(within) * (1 - slowed.share);
    }
    const double share = 1 - gone / static_cast<double>(length);
    if (gone > 0) {
      costs.SetLag(edge, std::llround(static_cast<double>(costs.Lag(edge)) * share));
    }
    costs.SetLag(edge, std::max<int64_t>(0, costs.Lag(edge) - behind[graph.from[edge]]));
  }
}

TEST(RecordingCost, IsTakenAsCallByCall) {
  int64_t stacks_of_waits = 0;
  for (uint64_t seed = 0; seed < testing::Rounds<uint64_t>(300); ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Trace trace = Simulate(DrawProgram(random)).trace;
    trace.api.stack.resize(0);
    for (size_t call = 0; call < trace.api.size(); ++call) {
      trace.api.stack.push_back(random.Chance(40) ? StackId{1} : kNoStack);
    }
    const Graph graph = BuildGraph(trace, FindSteps(trace), FindBlockingCalls(trace));
    RecordingCost cost{
        Nanoseconds(random.Between(0, 6000)), Nanoseconds(random.Between(0, 20'000)), {}};
    if (random.Chance(50)) {
      const int64_t end = graph.ends.back();
      const int64_t middle = random.Between(0, end);
      cost.measured.push_back({{{middle / 2}, {middle}}, 0.25});
      cost.measured.push_back({{{middle}, {random.Between(middle, end)}}, 0.75});
    }
    Costs costs = graph.recorded;
    for (EdgeId edge = 0; edge < graph.from.size(); ++edge) {
      if (random.Chance(5)) costs.Drop(edge);
    }
    for (NodeId node = 1; node < graph.size(); ++node) {
      if (random.Chance(10)) costs.SetDuration(node, random.Between(0, 3000));
      if (graph.kind[node] == NodeKind::kCall) {
        const Row call{graph.row[node]};
        stacks_of_waits += trace.api.stack[Index(call)] != kNoStack && graph.WaitOf(call) != 0;
      }
    }
    Costs expected = costs;
    LeaveOutInTurn(cost, trace, graph, expected);
    LeaveOut(cost, trace, graph, costs);
    for (NodeId node = 0; node < graph.size(); ++node) {
      ASSERT_EQ(costs.Duration(node), expected.Duration(node)) << "node " << node;
    }
    for (EdgeId edge = 0; edge < graph.from.size(); ++edge) {
      ASSERT_EQ(costs.lag[edge] == kNever, expected.lag[edge] == kNever) << "edge " << edge;
      if (costs.lag[edge] == kNever) continue;
      ASSERT_EQ(costs.Lag(edge), expected.Lag(edge)) << "edge " << edge;
    }
  }
  EXPECT_GT(stacks_of_waits, 100);
}

// The forward pass was slower for being recorded; what the host did behind it, before its next call, was not.
TEST(RecordingCost, OfAPauseOnlyThePartInASlowedTimeIsLess) {
  const Trace trace = TraceFromScript(R"(
    thread 1
    repeat 2 every 2000
      step 0 2000 step
      annotation 0 100 forward
      call 80 90 cudaLaunchKernel | corr=1
      annotation 100 1090 tokenize
      call 1090 1100 cudaLaunchKernel | corr=2
    end
    stream 0 7
    repeat 2 every 2000
      kernel 95 200 a | corr=1
      kernel 1110 1200 b | corr=2
    end)");
  const Graph graph = BuildGraph(trace, FindSteps(trace), FindBlockingCalls(trace));
  const NodeId call = graph.node_of_call[Index(Row{1})];
  const EdgeId pause = graph.first_edge[call];
  ASSERT_EQ(graph.recorded.Lag(pause), 1'000'000);
  const TraceTime begin = trace.ranges.begin[0];
  const RecordingCost cost{{}, {}, {{{begin, begin + Microseconds(100)}, 0.5}}};
  Costs costs = graph.recorded;
  LeaveOut(cost, trace, graph, costs);
  EXPECT_EQ(costs.Lag(pause), 995'000) << "half of the 10 us until the forward pass ended";
}

}  // namespace
}  // namespace trainprof
