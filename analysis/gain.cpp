#include "analysis/gain.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "trace/base/cancel.h"

namespace trainprof {
namespace {

// With workers beside it, the training thread itself gets slower: on kineto_resnet50 its other work
// went from 105 to 126 ms a step when the loader went from 0 to 4 workers.
constexpr double kContention = 1.2;
// Workers never hide all of the exposed wait: 85 % of it on kineto_resnet50, 84 % on a virtual GPU.
constexpr double kHidden = 0.8;

// Whether nothing else holds the host back at each step: fewer blocking calls than steps are left
// in the window besides `fixed` (rows of trace.api, ascending). Free to run ahead of the device, it
// then fills the device's queue, and idle time that came of its pace goes too.
bool HostRunsAhead(const RankModel& model, const std::vector<Row>& fixed) {
  int64_t left = 0;
  for (uint32_t i = 0; i < model.trace.api.size(); ++i) {
    CancelPoint(i);
    if (!model.blocking_calls[i] || !model.InWindow(model.trace.api.interval(Row{i}))) continue;
    if (!std::binary_search(fixed.begin(), fixed.end(), Row{i})) ++left;
  }
  return left < model.device_steps.divisor();
}

// Idle time for input, behind a sync and for lack of launches, of the device that has most of it:
// the most that a host that runs ahead can save.
Duration HostPacedIdle(const RankModel& model) {
  Duration most;
  for (const DeviceAccount& device : model.devices) {
    most = std::max(most, device.Of(DeviceClass::kIdleInputWait) +
                              device.Of(DeviceClass::kIdleSyncDrain) +
                              device.Of(DeviceClass::kIdleLaunchBound));
  }
  return most;
}

// The work of the device that has most, within a part of the window. O(log n + its intervals there).
Duration BusyWithin(const RankModel& model, const Interval& part) {
  Duration busy;
  for (const DeviceAccount& device : model.devices) {
    busy = std::max(busy, device.busy.TotalWithin(part));
  }
  return busy;
}

// Of a step, in ms: what the device's own work leaves of it, and what may be work without a record.
double RoomOf(const RankModel& model) {
  Duration busy;
  for (const DeviceAccount& device : model.devices) {
    busy = std::max(busy, device.BusyWithin(model.device_steps.window) +
                              device.Of(DeviceClass::kIdleUnrecorded));
  }
  return std::max(0.0, model.device_steps.MeanMilliseconds() - model.PerStepMs(busy));
}

// When the thread waited that waited longest in these calls.
IntervalSet LongestWaits(const RankModel& model, const std::vector<Row>& calls) {
  std::map<TrackId, std::vector<Interval>> by_thread;
  for (const Row call : calls) {
    by_thread[model.trace.api.track[Index(call)]].push_back(model.trace.api.interval(call));
  }
  IntervalSet longest;
  for (auto& [thread, intervals] : by_thread) {
    IntervalSet waits = IntervalSet::Union(std::move(intervals));
    if (waits.Total() > longest.Total()) longest = std::move(waits);
  }
  return longest;
}

// Of the mean of what single steps would gain, in ms.
double StandardError(const RankModel& model, const IntervalSet& waits) {
  const std::vector<Step>& steps = model.device_steps.steps;
  if (steps.size() < 2) return 0;
  double sum = 0;
  double squares = 0;
  for (const Step& step : steps) {
    const Duration length = step.span.Length();
    const Duration own = length - waits.TotalWithin(step.span);
    const Duration busy = BusyWithin(model, step.span);
    const double gain = (length - std::min(length, std::max(own, busy))).ToMilliseconds();
    sum += gain;
    squares += gain * gain;
  }
  const auto n = static_cast<double>(steps.size());
  return std::sqrt(std::max(0.0, squares - sum * sum / n) / (n - 1) / n);
}

// Around a wait host and device take turns. Without it a step takes what the slower of the two
// needs, unless something else holds the host at each step: of that, only the drain is sure to go.
Gain OfRemovedWaits(const RankModel& model, Duration drain, std::vector<Row> calls) {
  const IntervalSet waits = LongestWaits(model, calls).IntersectWith(model.device_steps.window);
  const double step = model.device_steps.MeanMilliseconds();
  const double high = std::min(RoomOf(model), model.PerStepMs(waits.Total()));
  std::sort(calls.begin(), calls.end());
  double low = 0.9 * high - 2 * StandardError(model, waits);
  if (!HostRunsAhead(model, calls)) low = std::min(low, model.PerStepMs(drain));
  return {std::clamp(low, 0.0, step), high};
}

// High: the exposed wait goes, and where nothing else holds the host, all idle time of its pace
// with it. Low: part of the wait goes, and the training thread pays for the workers' company: the
// step cannot get shorter than that thread's own work.
Gain OfInput(const RankModel& model, Duration exposed) {
  const Duration raw = model.host.InputWait().IntersectWith(model.device_steps.window).Total();
  const double step = model.device_steps.MeanMilliseconds();
  const double wait = model.PerStepMs(exposed);
  const double own_work = step - model.PerStepMs(raw);
  const bool ahead = !model.devices.empty() && HostRunsAhead(model, {});
  const double high = ahead ? std::max(wait, model.PerStepMs(HostPacedIdle(model))) : wait;
  return {std::clamp(step - kContention * own_work, 0.0, kHidden * wait), high};
}

// The same of steps of which devices were not recorded, as far as the device's work, known from the
// others, leaves room.
Gain OfInputInOtherSteps(const RankModel& model, Duration held) {
  const DetailCheck& check = model.detail_check;
  const double step = check.other_step.ToMilliseconds();
  const double wait = check.other_wait.ToMilliseconds();
  const double room = std::max(0.0, step - check.device_work.ToMilliseconds());
  const double high = HostRunsAhead(model, {}) ? room : std::min(wait, room);
  return {std::clamp(step - kContention * (step - wait), 0.0, kHidden * model.PerStepMs(held)),
          high};
}

// When any of these operations ran.
IntervalSet TimesOf(const RankModel& model, const std::vector<Row>& ops) {
  std::vector<Interval> times;
  for (const Row op : ops) times.push_back(model.trace.device_ops.interval(op));
  return IntervalSet::Union(std::move(times)).IntersectWith(model.device_steps.window);
}

// Work that runs beside the rest: a step takes the longer of the two at least.
Gain OfOverlap(const RankModel& model, Duration cost, const std::vector<Row>& ops) {
  const IntervalSet moved = TimesOf(model, ops);
  Duration rest;
  for (const DeviceAccount& device : model.devices) {
    const IntervalSet alone = device.exposed_copy.UnionWith(device.exposed_communication);
    rest = std::max(rest, device.busy.Minus(moved.IntersectWith(alone))
                              .IntersectWith(model.device_steps.window)
                              .Total());
  }
  const double floor = model.PerStepMs(std::max(rest, moved.Total()));
  const double room = std::max(0.0, model.device_steps.MeanMilliseconds() - floor);
  return {0, std::min(model.PerStepMs(cost), room)};
}

}  // namespace

Gain GainOf(const RankModel& model, const Finding& finding, const Change& change) {
  const double cost = model.PerStepMs(finding.cost);
  switch (change.edit) {
    case Edit::kRemoveWaits:
      return OfRemovedWaits(model, finding.cost, change.rows);
    case Edit::kFeedInput:
      return change.in_other_steps ? OfInputInOtherSteps(model, finding.cost)
                                   : OfInput(model, finding.cost);
    case Edit::kPinCopies:  // a thread's wait may be for earlier kernels, which stay
    case Edit::kOverlapCopies:
    case Edit::kOverlapCommunication:
      return OfOverlap(model, finding.cost, change.rows);
    case Edit::kDropCalls:
    case Edit::kDropHostWork:
    case Edit::kLaunchAsGraph:
      return {0, std::min(cost, RoomOf(model))};
    case Edit::kDropWork:  // the host may have been ahead at that moment
    case Edit::kDropDependencies:
    case Edit::kFillIdle:
      break;
  }
  return {0, cost};
}

}  // namespace trainprof
