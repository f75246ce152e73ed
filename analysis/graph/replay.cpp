// Costs that are long, a graph's look-ups, and its replay.
#include <algorithm>

#include "analysis/graph/graph.h"
#include "trace/base/cancel.h"
#include "trace/base/large_columns.h"
#include "trace/base/parallel.h"

namespace trainprof {

void Costs::SetLong(int64_t ns, uint32_t at, std::vector<int32_t>& column,
                    std::unordered_map<uint32_t, int64_t>& long_ones) {
  if (column[at] == kLong) {
    long_ones.at(at) = ns;
  } else {
    column[at] = kLong;
    long_ones[at] = ns;
  }
}

void Costs::Assign(const Costs& other) {
  constexpr size_t kAtOnce = size_t{1} << 18;  // rows that are worth the start of a thread
  const auto copy = [](const auto& column, auto& into) {
    if (into.size() != column.size()) {
      into.clear();
      ReserveLarge(into, column.size());
      into.insert(into.end(), column.begin(), column.end());
      return;
    }
    RunParts(column.size(), kAtOnce, [&](size_t first, size_t last) {
      std::copy(column.data() + first, column.data() + last, into.data() + first);
    });
  };
  copy(other.duration, duration);
  copy(other.lag, lag);
  long_durations = other.long_durations;
  long_lags = other.long_lags;
}

void Graph::Reserve(size_t nodes) {
  ReserveLarge(kind, nodes);
  ReserveLarge(row, nodes);
  ReserveLarge(first_edge, nodes + 1);
  ReserveLarge(recorded.duration, nodes);
  ReserveLarge(ends, nodes);
  ReserveLarge(from, 2 * nodes);
  ReserveLarge(edge_kind, 2 * nodes);
  ReserveLarge(recorded.lag, 2 * nodes);
}

void Graph::ReturnRoom() {
  const auto each = [](auto&... columns) { (trainprof::ReturnRoom(columns), ...); };
  each(kind, row, first_edge, recorded.duration, ends, from, edge_kind, recorded.lag);
}

NodeId Graph::WaitOf(Row call) const {
  const NodeId node = node_of_call[Index(call)];
  if (node == 0) return 0;
  const uint32_t number = row[node];  // the outermost call's
  const auto wait =
      std::lower_bound(wait_of_call.begin(), wait_of_call.end(), std::pair{number, NodeId{0}});
  return wait != wait_of_call.end() && wait->first == number ? wait->second : 0;
}

std::vector<int64_t> Replay(const Graph& graph, const Costs& costs) {
  std::vector<int64_t> ends;
  Replay(graph, costs, ends);
  return ends;
}

void Replay(const Graph& graph, const Costs& costs, std::vector<int64_t>& ends) {
  if (ends.size() != graph.size()) AssignLarge(ends, graph.size());
  for (NodeId node = 0; node < graph.size(); ++node) {
    CancelPoint(node);
    int64_t begin = node == 0 ? 0 : INT64_MIN;
    for (EdgeId edge = graph.first_edge[node]; edge < graph.first_edge[node + 1]; ++edge) {
      if (costs.lag[edge] == kNever) continue;
      begin = std::max(begin, ends[graph.from[edge]] + costs.Lag(edge));
    }
    ends[node] = begin + costs.Duration(node);
  }
}

}  // namespace trainprof
