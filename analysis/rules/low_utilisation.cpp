// idle time of a device that no finding explains  =>  it is starved, and the recording does not say
// of what
//
// The last resort. It never rests on time in which device work may only be missing from the trace.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "analysis/busy_words.h"
#include "analysis/gain_spread.h"
#include "analysis/host/program.h"
#include "analysis/rule.h"
#include "analysis/words.h"
#include "trace/base/cancel.h"

namespace trainprof::rules {
namespace {

// torch_tb_profiler and nsys warn below 50 %.
constexpr double kWarnBelow = 0.50;
constexpr double kErrorBelow = 0.20;
// Of a busier device this share of the time must be left unexplained.
constexpr double kLeastUnexplained = 0.05;

// What a device that is not busy for long enough leaves over.
struct Rest {
  const DeviceAccount* device = nullptr;
  double busy_high = 0;  // share of the window
  Duration idle;
  Duration unexplained;
  Duration odd;  // of that, by chance
};

// The idle classes of an account, largest first, and those of them that no finding speaks for.
std::vector<DeviceClass> CausesOf(const DeviceAccount& account) {
  std::vector<DeviceClass> causes;
  for (size_t i = 0; i < kDeviceClasses; ++i) {
    const auto c = static_cast<DeviceClass>(i);
    if (IsIdle(c) && c != DeviceClass::kIdleUnrecorded && account.Of(c).ns > 0) causes.push_back(c);
  }
  std::stable_sort(causes.begin(), causes.end(),
                   [&](DeviceClass a, DeviceClass b) { return account.Of(a) > account.Of(b); });
  return causes;
}

std::string CausesText(const RankModel& model, const DeviceAccount& account) {
  std::string text;
  for (const DeviceClass c : CausesOf(account)) {
    if (model.ShareOfWindow(account.Of(c)) < kLeastShare) continue;
    text += fmt::format("{}{} {} {}", text.empty() ? "" : ", ", Title(c),
                        MsText(model.PerStepMs(account.Of(c))), model.Unit());
  }
  return text.empty() ? "nothing of 1 % or more" : text;
}

// Of a device's idle time what has a cause, though no finding says so: what a rule looked at and let pass,
// and what lies behind the device's last operation, where there was nothing left to do.
Duration NamedIdle(const RankModel& model, const DeviceAccount& account) {
  Duration named =
      account.Of(DeviceClass::kIdleDependency) + account.Of(DeviceClass::kIdleOtherDevice);
  const auto busy = account.busy.intervals();
  for (size_t i = account.idle.size(); i-- > 0;) {
    const auto& [interval, why] = account.idle[i];
    if (busy.empty() || interval.begin < busy.back().end) break;
    const bool is_counted = why == DeviceClass::kIdleDependency ||
                            why == DeviceClass::kIdleOtherDevice ||
                            why == DeviceClass::kIdleUnrecorded;
    if (!is_counted) named += model.device_steps.device_window.TotalWithin(interval);
  }
  return named;
}

// Of the idle time that has no cause, what may be chance.
Duration UnknownOfOddSteps(const RankModel& model, const DeviceAccount& account) {
  std::vector<Interval> unknown;
  for (size_t i = 0; i < account.idle.size(); ++i) {
    CancelPoint(i);
    const Segment<DeviceClass>& s = account.idle[i];
    if (s.value == DeviceClass::kIdleUnknown) unknown.push_back(s.interval);
  }
  const IntervalSet all = IntervalSet::Union(std::move(unknown));
  std::vector<double> by_step;
  for (const Step& step : model.device_steps.steps) {
    by_step.push_back(static_cast<double>(all.TotalWithin(step.device).ns));
  }
  return Duration{static_cast<int64_t>(OfOddSteps(by_step) * static_cast<double>(by_step.size()))};
}

Rest RestOf(const RankModel& model, const DeviceAccount& account,
            std::span<const Finding> findings) {
  const Duration unrecorded = account.Of(DeviceClass::kIdleUnrecorded);
  const Duration busy = account.BusyWithin(model.device_steps.device_window);
  Rest rest{&account, model.ShareOfWindow(busy + unrecorded), {}, {}, {}};
  for (const DeviceClass c : CausesOf(account)) rest.idle += account.Of(c);
  const Duration explained = std::max(ExplainedBy(findings, account), NamedIdle(model, account));
  rest.unexplained = rest.idle - std::min(rest.idle, explained);
  rest.odd = std::min(rest.unexplained, UnknownOfOddSteps(model, account));
  return rest;
}

// Where much may have run without a record, what a busier device left idle is not known either.
bool IsStarved(const RankModel& model, const Rest& rest) {
  const double unexplained = model.ShareOfWindow(rest.unexplained);
  if (rest.busy_high < kWarnBelow) return unexplained >= kLeastShare;
  const Duration unrecorded = rest.device->Of(DeviceClass::kIdleUnrecorded);
  return unexplained - model.ShareOfWindow(rest.odd) >= kLeastUnexplained &&
         model.ShareOfWindow(unrecorded) < kLeastUnexplained;
}

void AddEvidence(const RankModel& model, const DeviceAccount& account, Finding& finding) {
  std::vector<uint32_t> longest;  // rows of account.idle
  for (uint32_t row = 0; row < account.idle.size(); ++row) {
    CancelPoint(row);
    const Segment<DeviceClass>& s = account.idle[row];
    if (model.InDeviceWindow(s.interval) && s.value != DeviceClass::kIdleUnrecorded) {
      longest.push_back(row);
    }
  }
  KeepWorst(longest, [&](uint32_t a, uint32_t b) {
    const auto unknown = [&](uint32_t row) {
      return account.idle[row].value == DeviceClass::kIdleUnknown;
    };
    if (unknown(a) != unknown(b)) return unknown(a);
    return account.idle[a].interval.Length() > account.idle[b].interval.Length();
  });
  const int64_t id = model.trace.devices[Index(account.device)].id;
  for (const uint32_t row : longest) {
    const Segment<DeviceClass>& s = account.idle[row];
    finding.evidence.push_back({fmt::format("GPU {} idle for {:.2f} ms: {}", id,
                                            s.interval.Length().ToMilliseconds(), Title(s.value)),
                                s.interval, Table::kIdle, Row{row}, account.device});
  }
}

// Where the stepping thread was when the device ran dry for a reason that nobody knows.
void AddSites(const RankModel& model, const DeviceAccount& account, Finding& finding) {
  if (model.device_steps.thread == kNoTrack) return;
  SiteTally where(model.trace, model.sites);
  for (size_t i = 0; i < account.idle.size(); ++i) {
    CancelPoint(i);
    const Segment<DeviceClass>& s = account.idle[i];
    if (s.value != DeviceClass::kIdleUnknown || !model.InDeviceWindow(s.interval)) continue;
    where.Add(model.device_steps.thread, s.interval.begin);
  }
  finding.where = std::move(where).Take();
}

Finding Describe(const RankModel& model, const Rest& rest) {
  const DeviceAccount& account = *rest.device;
  Finding finding;
  const int64_t id = model.trace.devices[Index(account.device)].id;
  finding.severity = rest.busy_high < kErrorBelow  ? Severity::kError
                     : rest.busy_high < kWarnBelow ? Severity::kWarning
                                                   : Severity::kNote;
  // "At most" where recorded work is a lower bound only.
  const bool is_range = account.Of(DeviceClass::kIdleUnrecorded).ns > 0 && rest.busy_high >= 0.01;
  const auto share = [&](DeviceClass c) { return model.ShareOfWindow(account.Of(c)); };
  finding.title = fmt::format(
      "Low utilisation: GPU {} is busy for {}{} of the step{}; no finding explains {} {} of its idle time",
      id, is_range ? "at most " : "", Percent(rest.busy_high),
      BusyParts(share(DeviceClass::kCompute), share(DeviceClass::kExposedCopy),
                share(DeviceClass::kExposedCommunication)),
      MsText(model.PerStepMs(rest.unexplained)), model.Unit());
  finding.count = static_cast<int64_t>(model.device_steps.count());
  finding.cost = rest.unexplained;
  AddEvidence(model, account, finding);
  AddSites(model, account, finding);
  const Language language = LanguageOf(model.trace);
  finding.advice = fmt::format(
      "Where all idle time goes: {}. What is unknown has a name in the next recording if the program names it: "
      "a range around what the loop does between its GPU work ({}).",
      CausesText(model, account),
      InItsLanguage(language,
                    "torch.cuda.nvtx.range(\"name\"), for torch.profiler record_function(\"name\")",
                    "nvtx3::scoped_range"));
  finding.verify = "Record again: the idle time has a cause, or is gone.";
  return finding;
}

RuleOutcome CheckRest(const RankModel& model, std::span<const Finding> others) {
  if (model.devices.empty()) return NoDevices(model);
  if (model.device_steps.count() == 0) {
    return Skipped{"no steps were found: utilisation over start-up and shutdown says nothing"};
  }
  if (!model.device_doubt.empty()) return Skipped{model.device_doubt};
  std::vector<Diagnosis> findings;
  for (const DeviceAccount& account : model.devices) {
    if (account.ops_in_window == 0) continue;
    const Rest rest = RestOf(model, account, others);
    if (!IsStarved(model, rest)) continue;
    findings.push_back({Describe(model, rest), {Edit::kFillIdle, {}, account.device}});
  }
  return findings;
}

constexpr ExplainedClass kExplains[] = {{DeviceClass::kIdleUnknown, true}};

}  // namespace

extern const Rule low_utilisation = {"TP201", "idle time of a device that nothing else explains",
                                     nullptr, kExplains, CheckRest};

}  // namespace trainprof::rules
