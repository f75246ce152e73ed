#include "profiler/report/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "analysis/job/fingerprint.h"
#include "analysis/rule.h"
#include "profiler/gate/small_file.h"
#include "trace/io/printable.h"

namespace trainprof {
namespace {

namespace fs = std::filesystem;

std::string MessageOf(const RankAnalysis& rank, const Finding& finding) {
  const Gain& gain = finding.gain;
  std::string text = finding.title;
  if (gain.high_ms_per_step > 0) {
    text += fmt::format(". Fixing it gives {:.1f} to {:.1f} {}", gain.low_ms_per_step,
                        gain.high_ms_per_step, rank.steps.count() > 0 ? "ms/step" : "ms");
  }
  return OneLine(text);
}

std::vector<CheckedRule> RulesOf(const JobAnalysis& job, const GateResult& gate) {
  std::vector<CheckedRule> rules;
  for (const RegisteredRule& entry : AllRules()) {
    CheckedRule& rule = rules.emplace_back();
    rule.code = entry.rule->code;
    rule.slug = entry.slug;
    rule.title = entry.rule->title;
    size_t skipped = 0;
    for (const RankAnalysis& rank : job.ranks) {
      for (const SkippedRule& one : rank.skipped) {
        if (one.rule != entry.slug) continue;
        ++skipped;
        if (rule.not_checked.empty()) rule.not_checked = OneLine(one.reason);
      }
    }
    if (skipped < job.ranks.size()) rule.not_checked.clear();
  }
  for (const JudgedBudget& budget : gate.budgets) {
    const bool is_known = std::any_of(rules.begin(), rules.end(), [&](const CheckedRule& rule) {
      return rule.code == budget.code && rule.slug == budget.name;
    });
    if (!is_known) rules.push_back({budget.code, budget.name, budget.title, true, ""});
  }
  // Budgets of idle time share a code.
  std::map<std::string, int> of_code;
  for (const CheckedRule& rule : rules) ++of_code[rule.code];
  for (CheckedRule& rule : rules) {
    if (rule.is_budget && of_code[rule.code] > 1) rule.code += "/" + rule.slug;
  }
  std::sort(rules.begin(), rules.end(),
            [](const CheckedRule& a, const CheckedRule& b) { return a.code < b.code; });
  return rules;
}

size_t IndexOf(const std::vector<CheckedRule>& rules, std::string_view slug) {
  return static_cast<size_t>(
      std::find_if(rules.begin(), rules.end(),
                   [&](const CheckedRule& rule) { return rule.slug == slug; }) -
      rules.begin());
}

GateState StateOf(const JudgedFinding& judged, const JudgedSite& site) {
  if (!site.suppressed_by.empty()) return GateState::kSuppressed;
  if (judged.state == GateState::kFailed && site.is_known) return GateState::kKnown;
  if (judged.state == GateState::kFailed && site.is_sporadic) return GateState::kReported;
  return judged.state;
}

class Collector {
 public:
  Collector(const JobAnalysis& job, CheckReport& report) : job_(job), report_(report) {}

  void AddFindings() {
    for (const JudgedFinding& judged : report_.gate.findings) {
      if (judged.state != GateState::kOff) Add(judged);
    }
  }
  void AddBudgets() {
    for (const JudgedBudget& budget : report_.gate.budgets) {
      if (budget.state == GateState::kPassed) continue;
      CheckResult& result = report_.results.emplace_back();
      result.rule = IndexOf(report_.rules, budget.name);
      result.severity = budget.state == GateState::kFailed ? Severity::kError : Severity::kWarning;
      result.state = budget.state;
      result.message = OneLine(budget.text);
      result.line = budget.line;
      if (result.line > 0) result.file = RelativeFile(report_.gate.policy);
      result.fingerprint = FingerprintOfBudget(budget.name);
    }
  }
  void Sort() {
    std::stable_sort(report_.results.begin(), report_.results.end(),
                     [](const CheckResult& a, const CheckResult& b) {
                       const bool a_fails = a.state == GateState::kFailed;
                       const bool b_fails = b.state == GateState::kFailed;
                       return a_fails != b_fails ? a_fails : a.severity > b.severity;
                     });
  }

 private:
  static std::string FingerprintOfBudget(const std::string& name) {
    Site site;
    site.function = name;
    return FingerprintOf("budget", site);
  }

  void Add(const JudgedFinding& judged) {
    const RankAnalysis& rank = job_.ranks[judged.rank];
    const Finding& finding = rank.findings[judged.finding];
    for (size_t i = 0; i < judged.sites.size(); ++i) {
      const JudgedSite& place = judged.sites[i];
      const GateState state = StateOf(judged, place);
      const auto [known, is_new] =
          by_fingerprint_.try_emplace(place.fingerprint, report_.results.size());
      if (!is_new) {
        Merge(report_.results[known->second], judged.severity, state, rank.rank);
        continue;
      }
      const Site site = i < finding.where.size() ? finding.where[i] : Site{};
      CheckResult& result = report_.results.emplace_back();
      result.rule = IndexOf(report_.rules, finding.rule);
      result.severity = judged.severity;
      result.state = state;
      result.message = MessageOf(rank, finding);
      result.advice = OneLine(finding.advice);
      result.file = OneLine(RelativeFile(site.file));
      result.line = site.file.empty() ? 0 : std::max<int64_t>(1, site.line);
      result.function = OneLine(site.function.empty() ? site.op : site.function);
      result.fingerprint = place.fingerprint;
      result.suppressed_by = OneLine(place.suppressed_by);
      result.in_source = place.in_source;
      result.ranks = {rank.rank};
    }
  }

  // The same place of another rank, or of the same one under another line.
  static void Merge(CheckResult& result, Severity severity, GateState state, int64_t rank) {
    result.severity = std::max(result.severity, severity);
    const bool is_ignored = result.state == GateState::kSuppressed;
    if (state == GateState::kFailed || (is_ignored && state != GateState::kSuppressed)) {
      result.state = state;
      result.suppressed_by.clear();
    }
    if (std::find(result.ranks.begin(), result.ranks.end(), rank) == result.ranks.end()) {
      result.ranks.push_back(rank);
    }
  }

  const JobAnalysis& job_;
  CheckReport& report_;
  std::map<std::string, size_t> by_fingerprint_;
};

}  // namespace

CheckReport CheckReportOf(const JobAnalysis& job, const RenderOptions& options) {
  CheckReport report;
  report.gate = options.gate != nullptr ? *options.gate : Judge(job);
  report.rules = RulesOf(job, report.gate);
  Collector collector(job, report);
  collector.AddFindings();
  collector.AddBudgets();
  collector.Sort();
  for (const Doubt& doubt : report.gate.doubts) {
    report.doubts.push_back(OneLine(fmt::format("{}: {}", doubt.id, doubt.text)));
  }
  if (report.gate.diff) {
    for (const auto* doubts : {&report.gate.diff->refusals, &report.gate.diff->losses}) {
      for (const DiffDoubt& doubt : *doubts) {
        report.doubts.push_back(OneLine(fmt::format("baseline, {}: {}", doubt.id, doubt.text)));
      }
    }
  }
  return report;
}

std::vector<ShownResult> ShownOf(const CheckReport& report) {
  std::vector<ShownResult> shown;
  std::map<std::pair<size_t, GateState>, size_t> without_file;
  for (const CheckResult& result : report.results) {
    if (result.file.empty()) {
      const auto [first, is_new] =
          without_file.try_emplace({result.rule, result.state}, shown.size());
      if (!is_new) {
        ++shown[first->second].more;
        continue;
      }
    }
    shown.push_back({&result, 0});
  }
  return shown;
}

std::string RelativeFile(const std::string& file) {
  if (file.empty() || file.find('\0') != std::string::npos) return file;
  std::error_code error;
  const fs::path here = fs::current_path(error);
  const fs::path path = fs::path(file).lexically_normal();
  if (path.is_absolute() && fs::exists(path, error)) {
    const fs::path relative = path.lexically_relative(here);
    return (!relative.empty() && *relative.begin() != ".." ? relative : path).string();
  }
  const fs::path below = FileBelowHere(path);
  return (below.empty() ? path : below).string();
}

}  // namespace trainprof
