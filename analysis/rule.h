// A rule is data plus one function, in a file of its own under rules/. The file's name is the
// rule's slug (input_bound.cpp -> input-bound), its test's name and its anchor in docs/rules.md.
// Adding a rule is adding that file, its test and its paragraph: CMake finds it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "analysis/account.h"
#include "analysis/finding.h"

namespace trainprof {

// What rules look at. All references outlive the call.
struct RuleContext {
  const Trace& trace;
  const Steps& steps;
  std::span<const DeviceAccount> devices;
  const HostAccount& host;
  const std::vector<bool>& blocking_calls;  // per row of trace.api
  const SiteFinder& sites;
  // Why what devices did is not known well enough to say that nothing is wrong: rows are missing,
  // or not understood. Empty where they are all there.
  const std::string& device_doubt;

  // Of rules that need device work, where context.devices is empty.
  Skipped NoDevices() const {
    return {device_doubt.empty() ? "the trace holds no device work" : device_doubt};
  }
  double PerStepMs(Duration total) const {
    return total.ToMilliseconds() / static_cast<double>(steps.divisor());
  }
  // What stands behind a figure of PerStepMs: "ms/step", or "ms in all" where there are no steps.
  std::string_view Unit() const { return steps.count() > 0 ? "ms/step" : "ms in all"; }
  double ShareOfWindow(Duration part) const {
    const Duration whole = steps.window.Total();
    return whole.ns == 0 ? 0 : static_cast<double>(part.ns) / static_cast<double>(whole.ns);
  }
  bool InWindow(const Interval& interval) const {
    return steps.window.TotalWithin(interval).ns > 0;
  }
};

// A class of an account whose time a rule speaks for.
struct ExplainedClass {
  std::variant<DeviceClass, HostClass> of;
  // The rule finds some of its causes: time in the class may have another one, which nobody looks
  // for.
  bool in_part = false;
};

struct Rule {
  std::string_view
      code;  // TPnnn, never reused: 1xx input, 2xx host, 3xx sync, 4xx communication, ...
  std::string_view title;  // what it looks for, in a few words
  RuleOutcome (*check)(const RuleContext&);
  // Where the rule was checked and found nothing, these hold no loss that it would not have named.
  // What no rule explains is named in every report (analysis/coverage.h).
  std::span<const ExplainedClass> explains = {};
};

struct RegisteredRule {
  std::string_view slug;
  const Rule* rule;
};

// All rules, by slug.
std::span<const RegisteredRule> AllRules();

// Lowers `finding.confidence` further for what weakens any finding: inferred steps, few steps, lost
// records, device work that was not recorded. Says why. Sources: docs/rules.md.
void RateConfidence(const RuleContext& context, Finding& finding);

}  // namespace trainprof
