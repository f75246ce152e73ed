// The list of rules (generated from rules/*.cpp) and what all rules share.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/rule.h"
#include "analysis/words.h"

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

void RateConfidence(const RankModel& model, Finding& finding) {
  double confidence = finding.confidence;
  const auto weaken = [&](double factor, std::string reason) {
    confidence *= factor;
    finding.confidence_reasons.push_back(std::move(reason));
  };
  constexpr size_t kFewSteps = 5;  // below, one odd step is over a fifth of the evidence
  if (model.device_steps.count() == 0) {
    weaken(0.6, "no steps were found: figures are over the whole trace");
  } else if (model.device_steps.source == StepSource::kInferred) {
    weaken(0.8, "steps were inferred from the device's periodic work");
  }
  if (model.device_steps.count() > 0 && model.device_steps.count() < kFewSteps) {
    const auto count = static_cast<int64_t>(model.device_steps.count());
    weaken(0.8, fmt::format("only {} recorded", Counted(count, "step was", "steps were")));
  }
  for (const QualityItem& item : model.trace.quality.items()) {
    if (item.severity != QualitySeverity::kDataLoss) continue;
    std::string kind = item.kind;
    std::replace(kind.begin(), kind.end(), '_', ' ');
    weaken(0.8, fmt::format("records were lost: {} x {}", item.count, kind));
  }
  for (const DeviceAccount& device : model.devices) {
    const double unrecorded = model.ShareOfWindow(device.Of(DeviceClass::kIdleUnrecorded));
    const double unknown = model.ShareOfWindow(device.Of(DeviceClass::kIdleUnknown));
    constexpr double kMentionable = 0.05;
    if (unknown > kMentionable) {
      weaken(1 - unknown / 2,
             fmt::format("the cause of idle time is not recorded during {:.0f} % of the time",
                         100 * unknown));
    }
    if (unrecorded > kMentionable) {
      weaken(1 - unrecorded / 2,
             fmt::format("device work is missing from the trace during {:.0f} % of the time",
                         100 * unrecorded));
    }
  }
  finding.confidence = std::clamp(confidence, 0.0, 1.0);
}

Skipped NoDevices(const RankModel& model) {
  return {model.device_doubt.empty() ? "the trace holds no device work" : model.device_doubt};
}

}  // namespace trainprof
