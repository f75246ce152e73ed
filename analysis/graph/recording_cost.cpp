#include "analysis/graph/recording_cost.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

#include "trace/base/cancel.h"
#include "trace/recording/wire/facts.h"
#include "trace/tables/environment.h"

namespace trainprof {
namespace {

// Of a launch in a row of launches: 0.8 us on the virtual GPU (cupti_overhead_benchmark), 1.8 us on an H200
// (docs/gpu_results.md). Where a thread does something else meanwhile it may be ten times as much.
constexpr Duration kCall = Microseconds(1);
// Where the recording does not tell what one took: what a walk costs some programs.
constexpr Duration kStack = Microseconds(10);

// Takes `ns` of the node's time, as far as it has some; what is left.
int64_t TakeFrom(NodeId node, int64_t ns, Costs& costs) {
  const int64_t taken = std::min(ns, costs.Duration(node));
  if (taken > 0) costs.SetDuration(node, costs.Duration(node) - taken);
  return ns - taken;
}

// The slowed time that `at` lies in; nullptr where there is none.
const SlowedTime* SlowedAt(const RecordingCost& cost, TraceTime at) {
  auto it = std::upper_bound(
      cost.measured.begin(), cost.measured.end(), at,
      [](TraceTime time, const SlowedTime& slowed) { return time < slowed.interval.begin; });
  if (it == cost.measured.begin()) return nullptr;
  --it;
  return at < it->interval.end ? &*it : nullptr;
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
    const SlowedTime* slowed = SlowedAt(cost, TraceTime{graph.ends[graph.from[edge]]});
    if (slowed != nullptr) costs.SetLag(edge, Part(lag, slowed->share));
  }
}

}  // namespace

RecordingCost RecordingCostOf(const Trace& trace) {
  if (trace.source != SourceKind::kRecording) return {};
  RecordingCost cost{kCall, kStack, {}};
  const std::string_view text = EnvironmentValue(trace.environment, fact::kCuptiStackCostNs);
  int64_t ns = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), ns).ec == std::errc()) {
    cost.stack = Nanoseconds(std::clamp<int64_t>(ns, 0, Milliseconds(1).ns));
  }
  return cost;
}

// A part of what recording takes is within a call's times, the rest behind it, in the thread's own time.
void LeaveOut(const RecordingCost& cost, const Trace& trace, const Graph& graph, Costs& costs) {
  if (!cost.Any()) return;
  LeaveOutMeasured(cost, trace, graph, costs);
  std::vector<std::pair<NodeId, int64_t>> behind;
  for (NodeId node = 1; node < graph.size(); ++node) {
    CancelPoint(node);
    if (graph.kind[node] != NodeKind::kCall) continue;
    const uint32_t row = graph.row[node];
    if (SlowedAt(cost, trace.api.begin[row]) != nullptr) continue;
    int64_t left = TakeFrom(node, cost.call.ns, costs);
    NodeId last = node;
    if (trace.api.stack[row] != kNoStack) {
      // It is taken when the call has waited.
      if (const NodeId wait = graph.WaitOf(Row{row}); wait != 0) last = wait;
      left = TakeFrom(last, left + cost.stack.ns, costs);
    }
    if (left > 0) behind.emplace_back(last, left);
  }
  if (behind.empty()) return;
  std::sort(behind.begin(), behind.end());
  for (EdgeId edge = 0; edge < graph.from.size(); ++edge) {
    CancelPoint(edge);
    if (graph.edge_kind[edge] != EdgeKind::kProgram || costs.lag[edge] == kNever) continue;
    const auto it =
        std::lower_bound(behind.begin(), behind.end(), std::pair(graph.from[edge], int64_t{0}));
    if (it == behind.end() || it->first != graph.from[edge] || costs.Lag(edge) <= 0) continue;
    costs.SetLag(edge, std::max<int64_t>(0, costs.Lag(edge) - it->second));
  }
}

}  // namespace trainprof
