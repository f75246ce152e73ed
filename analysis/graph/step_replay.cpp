#include "analysis/graph/step_replay.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "analysis/graph/residual_costs.h"
#include "trace/base/cancel.h"

namespace trainprof {
namespace {

// With fewer steps than that, the first one tells more than it spoils.
constexpr size_t kEnoughSteps = 4;

// When a node could begin without one of its edges.
int64_t ReadyWithout(const Graph& graph, const Costs& costs, const std::vector<int64_t>& ends,
                     NodeId node, EdgeId without) {
  int64_t ready = INT64_MIN;
  for (EdgeId edge = graph.first_edge[node]; edge < graph.first_edge[node + 1]; ++edge) {
    if (edge == without || costs.lag[edge] == kNever) continue;
    ready = std::max(ready, ends[graph.from[edge]] + costs.Lag(edge));
  }
  return ready;
}

int64_t BeginOf(const Costs& costs, const std::vector<int64_t>& ends, NodeId node) {
  return ends[node] - costs.Duration(node);
}

}  // namespace

StepReplay::StepReplay(const Trace& trace, const Steps& steps, const Graph& graph, bool by_device)
    : trace_(trace), steps_(steps), graph_(graph), by_device_(by_device) {
  counts_.assign(steps.count(), true);
  if (by_device && steps.count() >= kEnoughSteps) {
    for (size_t i = 0; i < steps.count(); ++i) {
      counts_[i] = i > 0 && steps.steps[i - 1].span.end == steps.steps[i].span.begin;
    }
    // Steps that stand alone, each between two gaps.
    if (std::find(counts_.begin(), counts_.end(), true) == counts_.end()) {
      counts_.assign(steps.count(), true);
    }
  }
  orders_ = FindOrders();
  recorded_ = TimesOf(graph.ends);
  for (size_t i = 0; i < steps.count(); ++i) {
    if (counts_[i]) numbers_.push_back(steps.steps[i].number);
  }
  if (steps.count() == 0) numbers_.push_back(0);
  if (graph.residuals.empty() || recorded_.empty() || MeanNs() <= 0) return;
  const std::vector<int64_t> explained = TimesOf(Replay(graph, CostsWithoutResiduals(graph)));
  identity_error_ = std::abs(MeanOf(explained) - MeanNs()) / MeanNs();
}

double StepReplay::MeanOf(std::span<const int64_t> values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0,
                         [](double sum, int64_t v) { return sum + static_cast<double>(v); }) /
         static_cast<double>(values.size());
}

struct StepReplay::Room {
  Costs costs;
  std::vector<int64_t> ends;
};

// One of the rooms, for as long as it lives.
class StepReplay::RoomHeld {
 public:
  explicit RoomHeld(const StepReplay& of) : of_(of) {
    const size_t bytes = 8 * of.graph_.size() + 4 * (of.graph_.size() + of.graph_.from.size());
    const size_t most = 1 + kMostRoomBytes / (bytes + 1);
    std::unique_lock lock(of_.mutex_);
    of_.is_left_.wait(lock, [&] { return !of_.rooms_.empty() || of_.taken_ < most; });
    if (of_.rooms_.empty()) {
      room_ = std::make_unique<Room>();
    } else {
      room_ = std::move(of_.rooms_.back());
      of_.rooms_.pop_back();
    }
    ++of_.taken_;
  }
  RoomHeld(const RoomHeld&) = delete;
  RoomHeld& operator=(const RoomHeld&) = delete;
  ~RoomHeld() {
    const std::lock_guard lock(of_.mutex_);
    of_.rooms_.push_back(std::move(room_));
    --of_.taken_;
    of_.is_left_.notify_one();
  }
  Room& operator*() const { return *room_; }

 private:
  const StepReplay& of_;
  std::unique_ptr<Room> room_;
};

StepReplay::~StepReplay() = default;

std::vector<int64_t> StepReplay::After(std::span<const Change* const> changes,
                                       const Assumption& assumption) const {
  const RoomHeld held(*this);
  Room& room = *held;
  CostsAfter(trace_, graph_, changes, assumption, room.costs);
  Replay(graph_, room.costs, room.ends);
  if (DropOvertaken(room.ends, room.costs)) Replay(graph_, room.costs, room.ends);
  return TimesOf(room.ends);
}

std::vector<StepReplay::Order> StepReplay::FindOrders() const {
  std::vector<Order> orders;
  const Costs& costs = graph_.recorded;
  for (NodeId node = 1; node < graph_.size(); ++node) {
    CancelPoint(node);
    if (graph_.kind[node] != NodeKind::kDeviceOp) continue;
    for (EdgeId edge = graph_.first_edge[node]; edge < graph_.first_edge[node + 1]; ++edge) {
      const EdgeKind kind = graph_.edge_kind[edge];
      if (kind != EdgeKind::kEngine && kind != EdgeKind::kInferredRoom) continue;
      const int64_t ready = ReadyWithout(graph_, costs, graph_.ends, node, edge);
      if (ready != INT64_MIN && ready >= BeginOf(costs, graph_.ends, graph_.from[edge])) {
        orders.push_back({node, edge});
      }
    }
  }
  return orders;
}

bool StepReplay::DropOvertaken(const std::vector<int64_t>& ends, Costs& costs) const {
  bool any = false;
  for (const auto& [node, edge] : orders_) {
    CancelPoint(edge);
    if (costs.lag[edge] == kNever) continue;
    const int64_t ready = ReadyWithout(graph_, costs, ends, node, edge);
    if (ready >= BeginOf(costs, ends, graph_.from[edge])) continue;
    costs.Drop(edge);
    any = true;
  }
  return any;
}

void StepReplay::Forget() const {
  const std::lock_guard lock(mutex_);
  rooms_.clear();
}

// Of each step from the end of the one before it, as far as that follows directly; a step that ends
// before an earlier one takes no time.
std::vector<int64_t> StepReplay::TimesOf(const std::vector<int64_t>& ends) const {
  std::vector<int64_t> times;
  if (steps_.count() == 0) return {*std::max_element(ends.begin(), ends.end())};
  int64_t last = 0;  // end of the step before, where one follows it
  for (size_t i = 0; i < steps_.count(); ++i) {
    const int64_t host_begin = ends[graph_.step_begin[i]];
    const int64_t host_end = ends[graph_.step_end[i]];
    int64_t begin = host_begin;
    int64_t end = host_end;
    if (by_device_) {
      const bool follows = i > 0 && steps_.steps[i - 1].span.end == steps_.steps[i].span.begin;
      begin = follows ? last : host_begin;
      end = begin;
      for (const NodeId node : graph_.last_of_step[i]) end = std::max(end, ends[node]);
      last = end;
    }
    if (counts_[i]) times.push_back(end - begin);
  }
  return times;
}

}  // namespace trainprof
