// The list of rules (generated from rules/*.cpp) and what all rules share.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analysis/rule.h"

#define TRAINPROF_ENTRY(symbol, slug) \
  namespace trainprof::rules {        \
  extern const Rule symbol;           \
  }
#include "rules.inc"
#undef TRAINPROF_ENTRY

namespace trainprof {

std::span<const RegisteredRule> AllRules() {
  static const RegisteredRule kRules[] = {
#define TRAINPROF_ENTRY(symbol, slug) {slug, &rules::symbol},
#include "rules.inc"
#undef TRAINPROF_ENTRY
  };
  return kRules;
}

std::string_view Name(Severity severity) {
  switch (severity) {
    case Severity::kNote:
      return "note";
    case Severity::kWarning:
      return "warning";
    case Severity::kError:
      return "error";
  }
  return "note";
}

Severity SeverityOfLoss(double share) {
  if (share > kErrorShareOfLoss) return Severity::kError;
  return share > kNoteShare ? Severity::kWarning : Severity::kNote;
}

StepsWith FindStepsWith(const Steps& steps, const IntervalSet& times, double share,
                        Interval Step::*when) {
  StepsWith found{0, static_cast<int64_t>(steps.count())};
  for (const Step& step : steps.steps) {
    const auto there = static_cast<double>(times.TotalWithin(step.*when).ns);
    if (there > share * static_cast<double>((step.*when).Length().ns)) ++found.count;
  }
  return found;
}

std::string InStepsText(const StepsWith& steps) {
  return steps.count == steps.of ? "" : fmt::format(" in {} of {} steps", steps.count, steps.of);
}

Duration ExplainedBy(std::span<const Finding> findings, const DeviceAccount& device) {
  std::array<Duration, kDeviceClasses> left = device.total;
  Duration explained;
  for (const Finding& finding : findings) {
    Duration cost = finding.cost;
    for (const RegisteredRule& entry : AllRules()) {
      if (entry.slug != finding.rule) continue;
      for (const ExplainedClass& of : entry.rule->explains) {
        const auto* c = std::get_if<DeviceClass>(&of.of);
        if (c == nullptr) continue;
        Duration& there = left[static_cast<size_t>(*c)];
        const Duration part = std::min(cost, there);
        there -= part;
        cost -= part;
        if (IsIdle(*c)) explained += part;
      }
    }
  }
  return explained;
}

const DeviceAccount* DeviceWithMost(const RankModel& model, std::initializer_list<DeviceClass> of) {
  const DeviceAccount* most = nullptr;
  Duration longest{-1};
  for (const DeviceAccount& device : model.devices) {
    Duration total;
    for (const DeviceClass c : of) total += device.Of(c);
    if (total > longest) most = &device;
    longest = std::max(longest, total);
  }
  return most;
}

std::vector<Weakness> DeviceWeaknesses(const RankModel& model) {
  std::vector<Weakness> weaknesses;
  constexpr double kFewLaunches = 0.01;  // as for what is in doubt (model.cpp)
  if (const double share = model.ShareWithoutLaunch(); share >= kFewLaunches) {
    weaknesses.push_back(
        {1 - share / 2,
         fmt::format("the launches of {:.0f} % of the GPU's operations are not recorded",
                     100 * share)});
  }
  for (const DeviceAccount& device : model.devices) {
    const double unrecorded = model.ShareOfWindow(device.Of(DeviceClass::kIdleUnrecorded));
    const double unknown = model.ShareOfWindow(device.Of(DeviceClass::kIdleUnknown));
    constexpr double kMentionable = 0.05;
    if (unknown > kMentionable) {
      weaknesses.push_back(
          {1 - unknown / 2,
           fmt::format("the cause of idle time is not recorded during {:.0f} % of the time",
                       100 * unknown)});
    }
    if (unrecorded > kMentionable) {
      weaknesses.push_back(
          {1 - unrecorded / 2,
           fmt::format("device work is missing from the trace during {:.0f} % of the time",
                       100 * unrecorded)});
    }
  }
  return weaknesses;
}

Skipped NoDevices(const RankModel& model) {
  return {model.device_doubt.empty() ? "the trace holds no device work" : model.device_doubt};
}

}  // namespace trainprof
