#include "analysis/graph/recording_cost.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "trace/base/cancel.h"
#include "trace/base/parallel.h"
#include "trace/recording/wire/facts.h"
#include "trace/tables/environment.h"

namespace trainprof {
namespace {

// Of a launch in a row of launches: 0.8 us on the virtual GPU (cupti_overhead_benchmark), 1.8 us on an H200
// (docs/gpu_results.md). Where a thread does something else meanwhile it may be ten times as much.
constexpr Duration kCall = Microseconds(1);
// Where the recording does not tell what one took: what a walk costs some programs.
constexpr Duration kStack = Microseconds(10);
// AtLeast, AtMost.
constexpr double kDoubtOfMeasured = 0.25;
constexpr double kLeastOfAssumed = 0.5;
constexpr double kMostOfAssumed = 7;

// The slowed time that `at` lies in; nullptr where there is none.
const SlowedTime* SlowedAt(const RecordingCost& cost, TraceTime at) {
  auto it = std::upper_bound(
      cost.measured.begin(), cost.measured.end(), at,
      [](TraceTime time, const SlowedTime& slowed) { return time < slowed.interval.begin; });
  if (it == cost.measured.begin()) return nullptr;
  --it;
  return at < it->interval.end ? &*it : nullptr;
}

// What is left of the host's own time that began at `at` and was of `recorded`, of which `lag` is left: only as far
// as it lies in slowed times it was slower.
int64_t WithoutSlowness(const RecordingCost& cost, TraceTime at, int64_t recorded, int64_t lag) {
  const Interval span{at, at + Duration{std::max(recorded, lag)}};
  auto slowed =
      std::partition_point(cost.measured.begin(), cost.measured.end(),
                           [&](const SlowedTime& time) { return time.interval.end <= at; });
  double gone = 0;
  for (; slowed != cost.measured.end() && slowed->interval.begin < span.end; ++slowed) {
    gone +=
        static_cast<double>(Intersect(slowed->interval, span).Length().ns) * (1 - slowed->share);
  }
  if (gone == 0) return lag;
  return std::llround(static_cast<double>(lag) *
                      (1 - gone / static_cast<double>(span.Length().ns)));
}

int64_t Part(int64_t ns, double share) {
  return static_cast<int64_t>(std::llround(static_cast<double>(ns) * share));
}

// Of all calls of the host, and of its own work behind them.
void LeaveOutMeasured(const RecordingCost& cost, const Trace& trace, const Graph& graph,
                      Costs& costs) {
  if (cost.measured.empty()) return;
  for (NodeId node = 1; node < graph.size(); ++node) {
    CancelPoint(node);
    if (graph.kind[node] != NodeKind::kCall) continue;
    const SlowedTime* slowed = SlowedAt(cost, trace.api.begin[graph.row[node]]);
    if (slowed != nullptr) costs.SetDuration(node, Part(costs.Duration(node), slowed->share));
  }
  for (EdgeId edge = 0; edge < graph.from.size(); ++edge) {
    CancelPoint(edge);
    if (graph.edge_kind[edge] != EdgeKind::kProgram || costs.lag[edge] == kNever) continue;
    const int64_t lag = costs.Lag(edge);
    if (lag <= 0) continue;
    costs.SetLag(edge, WithoutSlowness(cost, TraceTime{graph.ends[graph.from[edge]]},
                                       graph.recorded.Lag(edge), lag));
  }
}

// What recording a call takes of the times of its nodes.
struct Taken {
  int64_t of_call = 0;
  NodeId last = 0;      // the call, or its wait where a stack is taken; 0: nothing
  int64_t of_last = 0;  // beside of_call
  int64_t behind = 0;   // the rest, of the thread's own time behind `last`
};

// Nothing of a node that is no call, or that is measured.
Taken TakenOf(NodeId node, const RecordingCost& cost, const Trace& trace, const Graph& graph,
              const Costs& costs) {
  if (graph.kind[node] != NodeKind::kCall) return {};
  const uint32_t row = graph.row[node];
  if (!cost.measured.empty() && SlowedAt(cost, trace.api.begin[row]) != nullptr) return {};
  Taken taken{std::min(cost.call.ns, costs.Duration(node)), node, 0, 0};
  taken.behind = cost.call.ns - taken.of_call;
  if (trace.api.stack[row] == kNoStack) return taken;
  const NodeId wait = graph.WaitOf(Row{row});
  if (wait != 0) taken.last = wait;
  const int64_t rest = costs.Duration(taken.last) - (wait != 0 ? 0 : taken.of_call);
  const int64_t wanted = taken.behind + cost.stack.ns;
  taken.of_last = std::min(wanted, rest);
  taken.behind = wanted - taken.of_last;
  return taken;
}

// The node of the call that a node is of.
NodeId CallOf(const Graph& graph, NodeId node) {
  return graph.kind[node] == NodeKind::kWait ? graph.node_of_call[graph.row[node]] : node;
}

}  // namespace

RecordingCost RecordingCostOf(const Trace& trace) {
  if (trace.source != SourceKind::kRecording) return {};
  RecordingCost cost{kCall, kStack};
  const std::string_view text = EnvironmentValue(trace.environment, fact::kCuptiStackCostNs);
  int64_t ns = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), ns).ec == std::errc()) {
    cost.stack = Nanoseconds(std::clamp<int64_t>(ns, 0, Milliseconds(1).ns));
    cost.stack_is_measured = true;
  }
  return cost;
}

RecordingCost RecordingCost::AtLeast() const {
  return Scaled(1 - kDoubtOfMeasured, kLeastOfAssumed);
}

RecordingCost RecordingCost::AtMost() const { return Scaled(1 + kDoubtOfMeasured, kMostOfAssumed); }

RecordingCost RecordingCost::Scaled(double of_measured, double of_assumed) const {
  RecordingCost cost = *this;
  if (!measured.empty()) of_assumed = of_measured;
  cost.call.ns = Part(call.ns, of_assumed);
  cost.stack.ns = Part(stack.ns, stack_is_measured ? of_measured : of_assumed);
  for (SlowedTime& slowed : cost.measured) {
    slowed.share = std::max(0.0, 1 - (1 - slowed.share) * of_measured);
  }
  return cost;
}

// A part of what recording takes is within a call's times, the rest behind it, in the thread's own time.
void LeaveOut(const RecordingCost& cost, const Trace& trace, const Graph& graph, Costs& costs) {
  if (!cost.Any()) return;
  LeaveOutMeasured(cost, trace, graph, costs);
  // The lags first: what goes of them follows from the nodes' times as they still are.
  RunParts(graph.size(), kNodesOfAThread, [&](size_t first, size_t last) {
    for (auto node = static_cast<NodeId>(first); node < last; ++node) {
      CancelPoint(node);
      for (EdgeId edge = graph.first_edge[node]; edge < graph.first_edge[node + 1]; ++edge) {
        if (graph.edge_kind[edge] != EdgeKind::kProgram || costs.lag[edge] == kNever) continue;
        const int64_t lag = costs.Lag(edge);
        if (lag <= 0) continue;
        const NodeId from = graph.from[edge];
        const Taken taken = TakenOf(CallOf(graph, from), cost, trace, graph, costs);
        if (taken.last == from && taken.behind > 0) {
          costs.SetLag(edge, std::max<int64_t>(0, lag - taken.behind));
        }
      }
    }
  });
  RunParts(graph.size(), kNodesOfAThread, [&](size_t first, size_t last) {
    for (auto node = static_cast<NodeId>(first); node < last; ++node) {
      CancelPoint(node);
      const Taken taken = TakenOf(node, cost, trace, graph, costs);
      if (taken.of_call > 0) costs.SetDuration(node, costs.Duration(node) - taken.of_call);
      if (taken.of_last > 0) {
        costs.SetDuration(taken.last, costs.Duration(taken.last) - taken.of_last);
      }
    }
  });
}

}  // namespace trainprof
