// A rule is data plus one function, in a file of its own under rules/. The file's name is the
// rule's slug (input_bound.cpp -> input-bound), its test's name and its anchor in docs/rules.md.
// Adding a rule is adding that file, its test and its paragraph: CMake finds it.
#pragma once

#include <initializer_list>
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
  // TPnnn, never reused: 1xx input, 2xx host, 3xx sync, 4xx communication, 5xx what devices do.
  std::string_view code;
  std::string_view title;  // what it looks for, in a few words
  RuleOutcome (*check)(const RankModel&);
  // Where the rule was checked and found nothing, these hold no loss that it would not have named.
  // What no rule explains is named in every report (analysis/job/coverage.h).
  std::span<const ExplainedClass> explains = {};
  // Instead of `check`, of the rule of last resort: asked when all others have been, with what they
  // found.
  RuleOutcome (*check_rest)(const RankModel&, std::span<const Finding> others) = nullptr;
};

// Shares of a step. A finding is made where its cost or its gain may be as much as the first; where
// the gain that is expected is less than the second, it is a note at most. A loss of more than the
// last is an error, where a rule does not say otherwise.
inline constexpr double kLeastShare = 0.01;
inline constexpr double kNoteShare = 0.02;
inline constexpr double kErrorShareOfLoss = 0.20;
Severity SeverityOfLoss(double share);

struct RegisteredRule {
  std::string_view slug;
  const Rule* rule;
};

// All rules, by slug.
std::span<const RegisteredRule> AllRules();

// What its devices weaken: their work or the cause of their idle time was not recorded. Sources:
// docs/rules.md.
std::vector<Weakness> DeviceWeaknesses(const RankModel& model);

// In how many steps something stands. Once is chance: many are half of them, or three.
struct StepsWith {
  int64_t count = 0;
  int64_t of = 0;  // 0: no steps were found

  bool AreHalf() const { return 2 * count >= of; }
  bool AreMany() const { return AreHalf() || count >= 3; }
};
// Those of which these times take more than `share`. O(steps log n).
StepsWith FindStepsWith(const Steps& steps, const IntervalSet& times, double share = 0,
                        Interval Step::*when = &Step::span);
// " in 6 of 30 steps"; "" where it is all of them.
std::string InStepsText(const StepsWith& steps);

// Idle time of a device within the window that these findings explain: of each, its cost as far as
// the classes that its rule explains have so much. O(findings).
Duration ExplainedBy(std::span<const Finding> findings, const DeviceAccount& device);

// The device of which these classes take most together; nullptr where no device trains.
const DeviceAccount* DeviceWithMost(const RankModel& model, std::initializer_list<DeviceClass> of);

// Of rules that need device work, where model.devices is empty.
Skipped NoDevices(const RankModel& model);

}  // namespace trainprof
