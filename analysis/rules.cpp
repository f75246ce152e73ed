// The list of rules (generated from rules/*.cpp) and what all rules share.
#include <fmt/format.h>

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

std::vector<Weakness> DeviceWeaknesses(const RankModel& model) {
  std::vector<Weakness> weaknesses;
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
