// even if all unrecorded time was work, the device was busy for < 50 % of the steps  =>  it is
// starved
//
// A symptom: the other findings name the causes. It never rests on time in which device work may
// only be missing from the trace.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/host/program.h"
#include "analysis/rule.h"
#include "analysis/words.h"
#include "trace/base/cancel.h"

namespace trainprof::rules {
namespace {

// torch_tb_profiler and nsys warn below 50 %.
constexpr double kWarnBelow = 0.50;
constexpr double kErrorBelow = 0.20;

// The idle classes of an account, largest first.
std::vector<DeviceClass> CausesOf(const DeviceAccount& account) {
  std::vector<DeviceClass> causes;
  for (size_t i = 0; i < kDeviceClasses; ++i) {
    const auto c = static_cast<DeviceClass>(i);
    if (IsIdle(c) && account.Of(c).ns > 0) causes.push_back(c);
  }
  std::stable_sort(causes.begin(), causes.end(),
                   [&](DeviceClass a, DeviceClass b) { return account.Of(a) > account.Of(b); });
  return causes;
}

Finding Describe(const RankModel& model, const DeviceAccount& account, double busy_high) {
  Finding finding;
  const int64_t id = model.trace.devices[Index(account.device)].id;
  finding.severity = busy_high < kErrorBelow ? Severity::kError : Severity::kWarning;
  // "At most" where recorded work is a lower bound only.
  const bool is_range = account.Of(DeviceClass::kIdleUnrecorded).ns > 0 && busy_high >= 0.01;
  finding.title = fmt::format("Low utilisation: GPU {} is busy for {}{} of the step", id,
                              is_range ? "at most " : "", Percent(busy_high));
  finding.count = static_cast<int64_t>(model.device_steps.count());
  std::string causes;
  for (DeviceClass c : CausesOf(account)) {
    if (c != DeviceClass::kIdleUnrecorded) finding.cost += account.Of(c);
    if (model.ShareOfWindow(account.Of(c)) < 0.01) continue;
    causes += fmt::format("{}{} {:.1f} {}", causes.empty() ? "" : ", ", Title(c),
                          model.PerStepMs(account.Of(c)), model.Unit());
  }
  std::vector<uint32_t> longest;  // rows of account.idle
  for (uint32_t row = 0; row < account.idle.size(); ++row) {
    CancelPoint(row);
    const Segment<DeviceClass>& s = account.idle[row];
    if (model.InDeviceWindow(s.interval) && s.value != DeviceClass::kIdleUnrecorded) {
      longest.push_back(row);
    }
  }
  KeepWorst(longest, [&](uint32_t a, uint32_t b) {
    return account.idle[a].interval.Length() > account.idle[b].interval.Length();
  });
  for (const uint32_t row : longest) {
    const Segment<DeviceClass>& s = account.idle[row];
    finding.evidence.push_back({fmt::format("GPU {} idle for {:.2f} ms: {}", id,
                                            s.interval.Length().ToMilliseconds(), Title(s.value)),
                                s.interval, Table::kIdle, Row{row}, account.device});
  }
  finding.advice = fmt::format(
      "Where the idle time goes: {}. Take the largest first{}.",
      causes.empty() ? "not known" : causes,
      account.Of(DeviceClass::kIdleLaunchBound).ns > 0
          ? fmt::format("; against {}: larger batches, CUDA graphs{}",
                        Title(DeviceClass::kIdleLaunchBound),
                        LanguageOf(model.trace) == Language::kCpp ? "" : ", torch.compile")
          : "");
  finding.verify =
      "Record again: the GPU is busy for more of the step, and the cause that you took "
      "on has shrunk.";
  return finding;
}

RuleOutcome Check(const RankModel& model) {
  if (model.devices.empty()) return NoDevices(model);
  if (model.device_steps.count() == 0) {
    return Skipped{"no steps were found: utilisation over start-up and shutdown says nothing"};
  }
  if (!model.device_doubt.empty()) return Skipped{model.device_doubt};
  std::vector<Diagnosis> findings;
  for (const DeviceAccount& account : model.devices) {
    if (account.ops_in_window == 0) continue;
    const Duration busy = account.BusyWithin(model.device_steps.device_window);
    const double busy_high = model.ShareOfWindow(busy + account.Of(DeviceClass::kIdleUnrecorded));
    if (busy_high < kWarnBelow) {
      findings.push_back(
          {Describe(model, account, busy_high), {Edit::kFillIdle, {}, account.device}});
    }
  }
  return findings;
}

}  // namespace

extern const Rule low_utilisation = {"TP201", "the device is idle for most of the step", Check};

}  // namespace trainprof::rules
