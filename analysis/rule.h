// A rule is data plus one function, in a file of its own under rules/. The file's name is the
// rule's slug (input_bound.cpp -> input-bound), its test's name and its anchor in docs/rules.md.
// Adding a rule is adding that file, its test and its paragraph: CMake finds it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "analysis/finding.h"
#include "analysis/model.h"

namespace trainprof {

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
  RuleOutcome (*check)(const RankModel&);
  // Where the rule was checked and found nothing, these hold no loss that it would not have named.
  // What no rule explains is named in every report (analysis/job/coverage.h).
  std::span<const ExplainedClass> explains = {};
};

struct RegisteredRule {
  std::string_view slug;
  const Rule* rule;
};

// All rules, by slug.
std::span<const RegisteredRule> AllRules();

// What its devices weaken: their work or the cause of their idle time was not recorded. Sources:
// docs/rules.md.
std::vector<Weakness> DeviceWeaknesses(const RankModel& model);

// Of rules that need device work, where model.devices is empty.
Skipped NoDevices(const RankModel& model);

}  // namespace trainprof
