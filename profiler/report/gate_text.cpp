#include "profiler/report/gate_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/words.h"
#include "profiler/report/coverage_text.h"
#include "trace/io/printable.h"

namespace trainprof {
namespace {

// Of a finding, each on a line of its own: the most frequent ones.
constexpr size_t kMostPlaces = 5;

// The word a line begins with: what it means for the gate.
std::string_view WordOf(const JudgedFinding& judged) {
  switch (judged.state) {
    case GateState::kSuppressed:
      return "ignored";
    case GateState::kKnown:
      return "known";
    default:
      return Name(judged.severity);
  }
}

std::string FindingText(const JobAnalysis& job, const JudgedFinding& judged) {
  const RankAnalysis& rank = job.ranks[judged.rank];
  const Finding& finding = rank.findings[judged.finding];
  std::string text = fmt::format("{:<7} {} {} (rank {}): {}\n", WordOf(judged), finding.code,
                                 finding.rule, rank.rank, OneLine(finding.title));
  size_t shown = 0;
  for (size_t i = 0; i < judged.sites.size(); ++i) {
    if (shown == kMostPlaces) {
      text += fmt::format("        ... and {} more\n", judged.sites.size() - i);
      break;
    }
    const std::string place = i < finding.where.size() ? PlaceText(finding.where[i]) : "";
    const std::string& reason = judged.sites[i].suppressed_by;
    if (place.empty() && reason.empty()) continue;
    ++shown;
    text += fmt::format("        {}{}\n", place,
                        reason.empty() ? "" : fmt::format("  ignored: {}", OneLine(reason)));
  }
  return text;
}

std::string BudgetText(const JudgedBudget& budget) {
  const std::string_view word = budget.state == GateState::kFailed         ? "error"
                                : budget.state == GateState::kInconclusive ? "unknown"
                                                                           : "ok";
  return fmt::format("{:<7} {} {}\n", word, budget.code, OneLine(budget.text));
}

// What stands against the comparison with the baseline.
std::string DiffText(const Diff& diff) {
  std::string text;
  for (const auto* doubts : {&diff.refusals, &diff.losses}) {
    for (const DiffDoubt& doubt : *doubts) {
      text += fmt::format("inconclusive: baseline: {}\n", OneLine(doubt.text));
    }
  }
  int64_t fixed = 0;
  for (const FindingDiff& finding : diff.findings) {
    if (finding.state == FindingState::kFixed) ++fixed;
  }
  if (fixed > 0) {
    text += fmt::format("fixed since the baseline: {}\n", Counted(fixed, "finding", "findings"));
  }
  return text;
}

std::string DoubtText(const JobAnalysis& job, const GateResult& gate) {
  std::string text;
  for (const Doubt& doubt : gate.doubts) {
    const std::string ranks = RanksText(job, doubt.ranks);
    text += fmt::format("inconclusive: {}{}\n", OneLine(doubt.text),
                        ranks.empty() ? "" : fmt::format(" ({})", ranks));
    for (const QualityItem& item : doubt.quality) {
      text += fmt::format("    quality: {} x {} [{}] {}\n", item.count, OneLine(item.kind),
                          Name(item.severity), OneLine(item.detail));
    }
  }
  return text;
}

}  // namespace

std::string PlaceText(const Site& site) {
  std::string text;
  if (!site.file.empty()) text = fmt::format("{}:{}", OneLine(site.file), site.line);
  if (!site.function.empty()) text += (text.empty() ? "" : " ") + OneLine(site.function);
  if (!site.op.empty() && site.op != site.function) {
    text += fmt::format("{}({})", text.empty() ? "" : " ", OneLine(site.op));
  }
  return text;
}

std::string GateVerdict(const GateResult& gate, bool accepts_inconclusive) {
  const auto in_findings =
      std::count_if(gate.findings.begin(), gate.findings.end(),
                    [](const JudgedFinding& judged) { return judged.state == GateState::kFailed; });
  const int64_t in_budgets = gate.Count(GateState::kFailed) - in_findings;
  switch (gate.conclusion) {
    case Conclusion::kPassed:
      return "PASS: nothing that fails the check in what was checked";
    case Conclusion::kFailed: {
      const std::string findings =
          in_findings == 0 ? ""
                           : fmt::format("{}{}", Counted(in_findings, "finding", "findings"),
                                         gate.diff ? " that the baseline does not have" : "");
      const std::string budgets =
          in_budgets == 0 ? "" : Counted(in_budgets, "broken budget", "broken budgets");
      return fmt::format("FAIL: {}{}{}", findings, findings.empty() || budgets.empty() ? "" : ", ",
                         budgets);
    }
    case Conclusion::kInconclusive:
      break;
  }
  return accepts_inconclusive
             ? "INCONCLUSIVE, accepted: for the reasons above this can neither pass nor fail"
             : "INCONCLUSIVE: for the reasons above this can neither pass nor fail "
               "(--allow-inconclusive accepts it)";
}

std::string GateText(const JobAnalysis& job, const GateResult& gate, bool accepts_inconclusive) {
  std::string text;
  for (const JudgedFinding& judged : gate.findings) {
    if (judged.state != GateState::kOff) text += FindingText(job, judged);
  }
  for (const JudgedBudget& budget : gate.budgets) text += BudgetText(budget);
  for (const std::string& line : NotCheckedLines(job))
    text += fmt::format("not checked: {}\n", line);
  for (const RankAnalysis& rank : job.ranks) {
    const std::string uncovered = UncoveredText(rank);
    if (uncovered.empty()) continue;
    const std::string who = job.ranks.size() > 1 ? fmt::format("rank {}: ", rank.rank) : "";
    text += fmt::format("{}no rule covers {}\n", who, uncovered);
  }
  for (const std::string& line : gate.complaints) text += OneLine(line) + "\n";
  text += DoubtText(job, gate);
  if (gate.diff) text += DiffText(*gate.diff);
  return text + GateVerdict(gate, accepts_inconclusive) + "\n";
}

}  // namespace trainprof
