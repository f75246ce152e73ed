#include "analysis/account/slowed_host.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "trace/base/cancel.h"

namespace trainprof {
namespace {

// Calls to copy are recorded where other calls are, so that what they take is one with the rest.
enum class Part : uint8_t { kForward, kBackward, kOptimizer, kRest };
constexpr size_t kParts = 4;
// Of a phase's time. Where it waits for longer, the device decides how long it takes.
constexpr double kMayWait = 0.1;
// Standard errors that medians have to lie apart.
constexpr double kErrors = 3;
// Nothing makes the host that slow; its steps did something else.
constexpr double kLeastShare = 0.2;

std::array<IntervalSet, kParts> TimesOf(const HostAccount& host, const IntervalSet& window) {
  std::array<std::vector<Interval>, kParts> named;
  std::vector<Interval> waits;
  const auto add = [&](HostClass c, const Interval& interval) {
    switch (c) {
      case HostClass::kForward:
        return named[static_cast<size_t>(Part::kForward)].push_back(interval);
      case HostClass::kBackward:
        return named[static_cast<size_t>(Part::kBackward)].push_back(interval);
      case HostClass::kOptimizer:
        return named[static_cast<size_t>(Part::kOptimizer)].push_back(interval);
      case HostClass::kInputWait:
      case HostClass::kRankWait:
        return waits.push_back(interval);
      case HostClass::kCopy:
      case HostClass::kOther:
        return;
    }
  };
  for (size_t i = 0; i < host.phases.size(); ++i) {
    CancelPoint(i);
    add(ClassOf(host.phases[i].value), host.phases[i].interval);
  }
  for (const auto& [c, set] : host.Unnamed()) {
    for (const Interval& interval : set->intervals()) add(c, interval);
  }
  std::array<IntervalSet, kParts> times;
  IntervalSet rest = window.Minus(IntervalSet::Union(std::move(waits)));
  for (size_t part = 0; part < kParts; ++part) {
    if (part == static_cast<size_t>(Part::kRest)) continue;
    times[part] = IntervalSet::Union(std::move(named[part])).IntersectWith(window);
    rest = rest.Minus(times[part]);
  }
  times[static_cast<size_t>(Part::kRest)] = std::move(rest);
  return times;
}

// When any thread waited for a device, or for room in its queue.
IntervalSet Waits(const Graph& graph) {
  std::vector<Interval> waits;
  for (NodeId node = 1; node < graph.size(); ++node) {
    CancelPoint(node);
    if (graph.kind[node] != NodeKind::kWait) continue;
    const NodeId call = graph.node_of_call[graph.row[node]];
    waits.push_back({TraceTime{graph.ends[call]}, TraceTime{graph.ends[node]}});
  }
  return IntervalSet::Union(std::move(waits));
}

struct Median {
  double ns = 0;
  double error = 0;
};

Median MedianOf(std::vector<double> values) {
  // 1.253 standard errors of a mean, of which there are 1.349 between the quartiles.
  constexpr double kErrorOfQuartiles = 0.93;
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
  };
  return {at(0.5), kErrorOfQuartiles * (at(0.75) - at(0.25)) /
                       std::sqrt(static_cast<double>(values.size()))};
}

Median MedianWithin(const IntervalSet& times, const Steps& steps) {
  std::vector<double> values;
  for (const Step& step : steps.steps) {
    values.push_back(static_cast<double>(times.TotalWithin(step.span).ns));
  }
  return MedianOf(std::move(values));
}

// What recording the calls that begin in these times is assumed to take, all in all.
double AssumedNs(const Trace& trace, const Graph& graph, const IntervalSet& times) {
  const RecordingCost assumed = RecordingCostOf(trace);
  IntervalReader within(times);
  double ns = 0;
  for (size_t row = 0; row < trace.api.size(); ++row) {
    CancelPoint(row);
    const TraceTime begin = trace.api.begin[row];
    if (graph.node_of_call[row] == 0) continue;
    if (within.TotalWithin({begin, begin + Nanoseconds(1)}).ns == 0) continue;
    ns += static_cast<double>(assumed.call.ns);
    if (trace.api.stack[row] != kNoStack) ns += static_cast<double>(assumed.stack.ns);
  }
  return ns;
}

}  // namespace

SlowedHost CompareHost(const Trace& trace, const Graph& graph, const HostAccount& host,
                       const Steps& detail, const Steps& others) {
  SlowedHost slowed;
  if (trace.source != SourceKind::kRecording || host.sampled_thread != kNoTrack ||
      detail.count() < SlowedHost::kFewest || others.count() < SlowedHost::kFewest) {
    return slowed;
  }
  const std::array<IntervalSet, kParts> times =
      TimesOf(host, detail.window.UnionWith(others.window));
  const IntervalSet waits = Waits(graph);
  for (const IntervalSet& part : times) {
    const IntervalSet with = part.IntersectWith(detail.window);
    const auto waited = static_cast<double>(waits.TotalWithin(with).ns);
    if (waited > kMayWait * static_cast<double>(with.Total().ns)) continue;
    const Median recorded = MedianWithin(part, detail);
    const Median alone = MedianWithin(part, others);
    const double more = recorded.ns - alone.ns;
    const double chance = kErrors * std::hypot(recorded.error, alone.error);
    const auto steps = static_cast<double>(detail.divisor());
    // That a phase is no slower is known as well, where it would be assumed to be.
    if (more <= chance && AssumedNs(trace, graph, with) / steps <= more + chance) continue;
    const double wait = waited / steps;
    const double share =
        std::min(1.0, std::max(0.0, alone.ns - wait) / std::max(1.0, recorded.ns - wait));
    if (share < kLeastShare) continue;
    if (more > chance) slowed.per_step += Nanoseconds(std::llround(more));
    for (const Interval& interval : with.intervals()) slowed.times.push_back({interval, share});
  }
  std::ranges::sort(slowed.times, {}, [](const SlowedTime& time) { return time.interval.begin; });
  return slowed;
}

}  // namespace trainprof
