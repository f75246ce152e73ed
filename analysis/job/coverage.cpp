// What was not checked, and what no rule explains.
#include "analysis/job/coverage.h"

#include <algorithm>

#include "analysis/rule.h"

namespace trainprof {
namespace {

bool WasChecked(const RankAnalysis& rank, std::string_view rule) {
  return std::find(rank.passed.begin(), rank.passed.end(), rule) != rank.passed.end() ||
         std::any_of(rank.findings.begin(), rank.findings.end(),
                     [&](const Finding& finding) { return finding.rule == rule; });
}

std::string_view NameOf(const ExplainedClass& explained) {
  return std::visit([](auto c) { return Name(c); }, explained.of);
}

bool IsHostLoss(const AccountLine& line) {
  return line.name == Name(HostClass::kInputWait) || line.name == Name(HostClass::kCopy) ||
         line.name == Name(HostClass::kOther);
}

// Adds the class where it is visible and no checked rule explains all of it.
void Consider(const RankAnalysis& rank, UncoveredClass uncovered,
              std::vector<UncoveredClass>& classes) {
  if (uncovered.share < kVisibleShare) return;
  for (const RegisteredRule& entry : AllRules()) {
    for (const ExplainedClass& explained : entry.rule->explains) {
      if (NameOf(explained) != uncovered.name || !WasChecked(rank, entry.slug)) continue;
      if (!explained.in_part) return;
      uncovered.in_part.emplace_back(entry.slug);
    }
  }
  classes.push_back(std::move(uncovered));
}

std::vector<UncoveredClass> OfDevice(const RankAnalysis& rank, const DeviceReport& device) {
  std::vector<UncoveredClass> classes;
  for (const AccountLine& line : device.account) {
    if (!IsLoss(line) && line.name != Name(DeviceClass::kIdleUnrecorded)) continue;
    const double share = rank.DeviceShare(line.total);
    Consider(rank, {line.name, line.title, share, rank.DevicePerStepMs(line.total), {}}, classes);
  }
  return classes;
}

std::vector<UncoveredClass> OfHost(const RankAnalysis& rank) {
  std::vector<UncoveredClass> classes;
  if (!rank.has_host_phases) return classes;  // nothing names what the thread did
  for (const AccountLine& line : rank.host_account) {
    if (!IsHostLoss(line)) continue;
    const double share = rank.Share(line.total);
    Consider(rank, {line.name, line.title, share, rank.PerStepMs(line.total), {}}, classes);
  }
  return classes;
}

}  // namespace

bool IsLoss(const AccountLine& line) {
  if (line.name == Name(DeviceClass::kIdleUnrecorded)) return false;
  return line.name.starts_with("idle_") || line.name.starts_with("exposed_");
}

std::string_view WhyNotJudged(const RankAnalysis& rank, std::string_view name) {
  std::string_view why;
  for (const RegisteredRule& entry : AllRules()) {
    for (const ExplainedClass& explained : entry.rule->explains) {
      if (NameOf(explained) != name) continue;
      if (WasChecked(rank, entry.slug)) return {};
      const auto skipped =
          std::find_if(rank.skipped.begin(), rank.skipped.end(),
                       [&](const SkippedRule& rule) { return rule.rule == entry.slug; });
      if (why.empty() && skipped != rank.skipped.end()) why = skipped->reason;
    }
  }
  return why;
}

double TotalShare(const std::vector<UncoveredClass>& classes) {
  double share = 0;
  for (const UncoveredClass& uncovered : classes) share += uncovered.share;
  return share;
}

std::vector<UncoveredClass> UncoveredClasses(const RankAnalysis& rank) {
  std::vector<UncoveredClass> most;
  bool any_device = false;
  for (const DeviceReport& device : rank.devices) {
    if (device.stray) continue;
    any_device = true;
    std::vector<UncoveredClass> classes = OfDevice(rank, device);
    if (TotalShare(classes) > TotalShare(most)) most = std::move(classes);
  }
  if (!any_device) most = OfHost(rank);
  std::stable_sort(most.begin(), most.end(),
                   [](const auto& a, const auto& b) { return a.share > b.share; });
  return most;
}

std::vector<NotChecked> RulesNotChecked(const JobAnalysis& job) {
  // By rule and reason first: only what concerns the same ranks is said together.
  std::vector<NotChecked> single;
  for (const RankAnalysis& rank : job.ranks) {
    for (const SkippedRule& skipped : rank.skipped) {
      const auto same = std::find_if(single.begin(), single.end(), [&](const NotChecked& other) {
        return other.rules.front() == skipped.rule && other.reason == skipped.reason;
      });
      if (same == single.end()) {
        single.push_back({{skipped.rule}, skipped.reason, {rank.rank}});
      } else {
        same->ranks.push_back(rank.rank);
      }
    }
  }
  std::vector<NotChecked> groups;
  for (NotChecked& one : single) {
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const NotChecked& other) {
      return other.reason == one.reason && other.ranks == one.ranks;
    });
    if (same == groups.end()) {
      groups.push_back(std::move(one));
    } else {
      same->rules.push_back(std::move(one.rules.front()));
    }
  }
  return groups;
}

int64_t ErrorsIn(const JobAnalysis& job) {
  int64_t errors = 0;
  const std::vector<Doubt> doubts = DoubtsOf(job);
  for (const RankAnalysis& rank : job.ranks) {
    const bool is_undermined = std::any_of(doubts.begin(), doubts.end(), [&](const Doubt& doubt) {
      return doubt.undermines &&
             std::find(doubt.ranks.begin(), doubt.ranks.end(), rank.rank) != doubt.ranks.end();
    });
    if (is_undermined) continue;
    errors += std::count_if(rank.findings.begin(), rank.findings.end(), [](const Finding& finding) {
      return finding.severity == Severity::kError;
    });
  }
  return errors;
}

Conclusion ConclusionOf(const JobAnalysis& job) {
  if (ErrorsIn(job) > 0) return Conclusion::kFailed;
  return DoubtsOf(job).empty() ? Conclusion::kPassed : Conclusion::kInconclusive;
}

std::string_view Name(Conclusion conclusion) {
  switch (conclusion) {
    case Conclusion::kPassed:
      return "pass";
    case Conclusion::kFailed:
      return "fail";
    case Conclusion::kInconclusive:
      return "inconclusive";
  }
  return "inconclusive";
}

}  // namespace trainprof
