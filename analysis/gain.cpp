#include "analysis/gain.h"

#include <algorithm>

#include "analysis/rule.h"
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

// High: the drain goes, as far as the device's own work allows, and where nothing else holds the
// host, all idle time of its pace with it. Low: the drain alone, and the host, freed of its waits,
// is still the slower side, so that the step cannot get shorter than the host's own work.
Gain OfRemovedWaits(const RankModel& model, Duration drain, std::vector<Row> calls) {
  Duration busy;
  for (const DeviceAccount& device : model.devices) {
    busy =
        std::max(busy, device.BusyWithin(model.device_steps.device_window) + device.missing_rows);
  }
  Duration blocked;
  for (const Row call : calls) blocked += model.trace.api.interval(call).Length();
  std::sort(calls.begin(), calls.end());
  const double step = model.device_steps.MeanMilliseconds();
  const double room = step - model.PerStepMs(busy);
  const double drained = std::min(model.PerStepMs(drain), room);
  const double own_work = model.device_steps.HostMeanMilliseconds() - model.PerStepMs(blocked);
  const double paced = std::min(model.PerStepMs(HostPacedIdle(model)), room);
  return {std::clamp(step - std::max(own_work, model.PerStepMs(busy)), 0.0, drained),
          HostRunsAhead(model, calls) ? std::max(drained, paced) : drained};
}

// High: the exposed wait goes, and where nothing else holds the host, all idle time of its pace
// with it. Low: part of the wait goes, and the training thread pays for the workers' company: the
// step cannot get shorter than that thread's own work.
Gain OfInput(const RankModel& model, Duration exposed) {
  const Duration raw = model.host.InputWait().IntersectWith(model.device_steps.window).Total();
  const double step = model.device_steps.MeanMilliseconds();
  const double wait = model.PerStepMs(exposed);
  const double own_work = model.device_steps.HostMeanMilliseconds() - model.PerStepMs(raw);
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

// Idle time that a finding of its own explains is that one's gain; time in which the device may
// have worked is nobody's.
bool IsClaimed(DeviceClass c) {
  if (c == DeviceClass::kIdleUnrecorded) return true;
  const auto rules = AllRules();
  return std::any_of(rules.begin(), rules.end(), [&](const RegisteredRule& entry) {
    const auto& explains = entry.rule->explains;
    return std::any_of(explains.begin(), explains.end(), [&](const ExplainedClass& explained) {
      return explained.of == decltype(explained.of)(c);
    });
  });
}

Gain OfFilledIdle(const RankModel& model, DeviceId device) {
  Duration unclaimed;
  for (const DeviceAccount& account : model.devices) {
    if (account.device != device) continue;
    for (size_t i = 0; i < kDeviceClasses; ++i) {
      const auto c = static_cast<DeviceClass>(i);
      if (IsIdle(c) && !IsClaimed(c)) unclaimed += account.Of(c);
    }
  }
  return {0, model.PerStepMs(unclaimed)};
}

}  // namespace

Gain GainOf(const RankModel& model, const Finding& finding, const Change& change) {
  switch (change.edit) {
    case Edit::kRemoveWaits:
      return OfRemovedWaits(model, finding.cost, change.rows);
    case Edit::kFeedInput:
      return change.in_other_steps ? OfInputInOtherSteps(model, finding.cost)
                                   : OfInput(model, finding.cost);
    case Edit::kFillIdle:
      return OfFilledIdle(model, change.device);
    case Edit::kOverlapCopies:  // a thread's wait may be for earlier kernels, which stay
    case Edit::kDropWork:       // the host may have been ahead at that moment
      break;
  }
  return {0, model.PerStepMs(finding.cost)};
}

}  // namespace trainprof
