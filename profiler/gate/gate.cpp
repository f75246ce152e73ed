#include "profiler/gate/gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analysis/job/fingerprint.h"
#include "profiler/gate/budgets.h"
#include "profiler/gate/suppress.h"

namespace trainprof {
namespace {

bool Fails(Severity severity, FailOn fail_on) {
  switch (fail_on) {
    case FailOn::kNote:
      return true;
    case FailOn::kWarning:
      return severity >= Severity::kWarning;
    case FailOn::kError:
      return severity >= Severity::kError;
    case FailOn::kNever:
      break;
  }
  return false;
}

Severity SeverityOf(const RankAnalysis& rank, const Finding& finding, const RulePolicy* policy) {
  if (policy == nullptr) return finding.severity;
  const bool is_small = policy->threshold && rank.DeviceShare(finding.cost) < *policy->threshold;
  if (is_small) return Severity::kNote;
  return policy->severity.value_or(finding.severity);
}

// A finding without a place is one all the same: by its rule.
std::vector<Site> PlacesOf(const Finding& finding) {
  return finding.where.empty() ? std::vector<Site>{Site{}} : finding.where;
}

// Ranks whose findings are doubtful.
std::set<int64_t> UnderminedRanks(const std::vector<Doubt>& doubts) {
  std::set<int64_t> ranks;
  for (const Doubt& doubt : doubts) {
    if (doubt.undermines) ranks.insert(doubt.ranks.begin(), doubt.ranks.end());
  }
  return ranks;
}

// By fingerprint, of a comparison.
std::map<std::string, const FindingDiff*> ComparedOf(const std::optional<Diff>& diff) {
  std::map<std::string, const FindingDiff*> compared;
  if (!diff) return compared;
  for (const FindingDiff& finding : diff->findings) compared[finding.fingerprint] = &finding;
  return compared;
}

class Judging {
 public:
  Judging(const JobAnalysis& job, const Policy& policy, Date today, GateResult& result)
      : job_(job),
        policy_(policy),
        suppressor_(policy, today),
        undermined_(UnderminedRanks(result.doubts)),
        compared_(ComparedOf(result.diff)),
        is_refused_(result.diff && result.diff->result == DiffResult::kRefused),
        result_(result) {}

  void JudgeFindings() {
    for (size_t r = 0; r < job_.ranks.size(); ++r) {
      for (size_t f = 0; f < job_.ranks[r].findings.size(); ++f) {
        result_.findings.push_back(JudgeOne(r, f));
      }
    }
    result_.complaints = suppressor_.Complaints();
  }

 private:
  JudgedFinding JudgeOne(size_t r, size_t f) {
    const RankAnalysis& rank = job_.ranks[r];
    const Finding& finding = rank.findings[f];
    const RulePolicy* const policy = policy_.Of(finding.rule);
    JudgedFinding judged{r, f, SeverityOf(rank, finding, policy), GateState::kReported, {}};
    for (const Site& site : PlacesOf(finding)) {
      JudgedSite& place = judged.sites.emplace_back();
      place.fingerprint = FingerprintOf(finding.rule, site);
      if (const auto by = suppressor_.By(finding.rule, finding.code, site)) {
        place.suppressed_by = by->why;
        place.in_source = by->in_source;
      }
      if (const auto it = compared_.find(place.fingerprint); it != compared_.end()) {
        place.is_known = it->second->state == FindingState::kUnchanged || it->second->a_runs > 0;
        place.is_sporadic = !place.is_known && it->second->state == FindingState::kSporadic;
      }
    }
    judged.state = StateOf(judged, rank.rank, policy);
    return judged;
  }

  // One place that is neither suppressed nor known is enough to fail.
  GateState StateOf(const JudgedFinding& judged, int64_t rank, const RulePolicy* policy) const {
    if (policy != nullptr && policy->is_off) return GateState::kOff;
    const auto all = [&](auto is_so) {
      return std::all_of(judged.sites.begin(), judged.sites.end(), is_so);
    };
    if (all([](const JudgedSite& site) { return !site.suppressed_by.empty(); })) {
      return GateState::kSuppressed;
    }
    if (!Fails(judged.severity, policy_.fail_on)) return GateState::kReported;
    if (undermined_.contains(rank)) return GateState::kDoubtful;
    if (is_refused_) return GateState::kInconclusive;
    const auto fails = [](const JudgedSite& site) {
      return !site.is_known && !site.is_sporadic && site.suppressed_by.empty();
    };
    if (std::any_of(judged.sites.begin(), judged.sites.end(), fails)) return GateState::kFailed;
    const bool any_known = !all([](const JudgedSite& site) { return !site.is_known; });
    return any_known ? GateState::kKnown : GateState::kReported;
  }

  const JobAnalysis& job_;
  const Policy& policy_;
  Suppressor suppressor_;
  const std::set<int64_t> undermined_;
  const std::map<std::string, const FindingDiff*> compared_;
  const bool is_refused_;  // the baseline, so that nobody knows what is new
  GateResult& result_;
};

std::string LimitText(const Budget& budget, BudgetUnit unit) {
  if (budget.max_share) return fmt::format("at most {:.3g} % of a step", 100 * *budget.max_share);
  if (budget.max) return fmt::format("at most {}", ValueText(unit, *budget.max));
  return fmt::format("at least {}", ValueText(unit, budget.min.value_or(0)));
}

// The figure of the run in the middle, once each of the runs has one.
Measured MeasureAll(std::span<const JobAnalysis> runs, const Budget& budget) {
  std::vector<Measured> all;
  for (const JobAnalysis& run : runs) {
    all.push_back(Measure(run, budget));
    if (!all.back().value) return all.back();
  }
  std::sort(all.begin(), all.end(),
            [](const Measured& a, const Measured& b) { return *a.value < *b.value; });
  return all[all.size() / 2];
}

JudgedBudget JudgeBudget(std::span<const JobAnalysis> runs, const Budget& budget) {
  const BudgetKind& kind = *FindBudgetKind(budget.name);
  JudgedBudget judged;
  judged.code = kind.code;
  judged.name = budget.name;
  judged.title = kind.title;
  judged.line = budget.line;
  if (budget.name == kStepTimeBudget)
    judged.title += " " + (budget.stat.empty() ? "p50" : budget.stat);
  const Measured measured = MeasureAll(runs, budget);
  const std::string limit = LimitText(budget, kind.unit);
  judged.value = measured.value;
  if (!measured.value || (budget.max_share && measured.step_ms <= 0)) {
    judged.state = GateState::kInconclusive;
    judged.text = fmt::format("{}: {}; it should be {}", judged.title,
                              measured.why.empty() ? "no steps were found" : measured.why, limit);
    return judged;
  }
  judged.limit = budget.max_share ? *budget.max_share * measured.step_ms
                                  : (budget.max ? *budget.max : budget.min.value_or(0));
  const bool holds =
      kind.has_max ? *measured.value <= *judged.limit : *measured.value >= *judged.limit;
  judged.state = holds ? GateState::kPassed : GateState::kFailed;
  const std::string share = budget.max_share ? fmt::format(" ({:.3g} % of a step)",
                                                           100 * *measured.value / measured.step_ms)
                                             : "";
  const std::string who =
      runs.back().ranks.size() > 1 ? fmt::format(", rank {}", measured.rank) : "";
  judged.text = fmt::format("{}: {}{}{}, {}", judged.title, ValueText(kind.unit, *measured.value),
                            share, who, limit);
  return judged;
}

// Slower, surely, and by more than is allowed.
JudgedBudget JudgeRegression(const Diff& diff, double most, int64_t line) {
  JudgedBudget judged;
  judged.line = line;
  judged.code = kRegressionCode;
  judged.name = "step_time_regression";
  judged.title = "step time against the baseline";
  const double share = diff.step.a_ms > 0 ? diff.step.Difference() / diff.step.a_ms : 0;
  judged.limit = most;
  switch (diff.result) {
    case DiffResult::kRefused:
    case DiffResult::kUnknown:
      judged.state = GateState::kInconclusive;
      break;
    case DiffResult::kSlower:
      judged.state = share > most ? GateState::kFailed : GateState::kPassed;
      judged.value = share;
      break;
    case DiffResult::kNoDifference:
      // It looks like more than is allowed, and may be nothing: more runs a side would tell.
      if (share > most) judged.state = GateState::kInconclusive;
      judged.value = share;
      break;
    case DiffResult::kFaster:
    case DiffResult::kEqual:
      judged.value = share;
      break;
  }
  if (judged.state != GateState::kInconclusive && !diff.IsConclusive() &&
      judged.state != GateState::kFailed) {
    judged.state = GateState::kInconclusive;
  }
  const bool is_open = diff.result == DiffResult::kNoDifference && share > most;
  judged.text = fmt::format("{}; at most {:.3g} % slower{}", DiffVerdict(diff), 100 * most,
                            is_open ? ", which more runs a side would tell" : "");
  return judged;
}

Conclusion ConclusionOf(const GateResult& result) {
  if (result.Count(GateState::kFailed) > 0) return Conclusion::kFailed;
  const bool is_open = !result.doubts.empty() || result.Count(GateState::kInconclusive) > 0;
  return is_open ? Conclusion::kInconclusive : Conclusion::kPassed;
}

}  // namespace

std::string_view Name(GateState state) {
  constexpr std::string_view kNames[] = {"passed",     "failed", "reported", "known",
                                         "suppressed", "off",    "doubtful", "inconclusive"};
  return kNames[static_cast<size_t>(state)];
}

int64_t GateResult::Count(GateState state) const {
  const auto is_in = [&](const auto& item) { return item.state == state; };
  return std::count_if(findings.begin(), findings.end(), is_in) +
         std::count_if(budgets.begin(), budgets.end(), is_in);
}

GateResult Judge(std::span<const JobAnalysis> runs, const Policy& policy, Date today,
                 const std::optional<BaselineRuns>& baseline) {
  GateResult result;
  result.policy = policy.path;
  for (const JobAnalysis& run : runs) {
    for (Doubt& doubt : DoubtsOf(run)) {
      const auto is_same = [&](const Doubt& other) { return other.id == doubt.id; };
      if (std::any_of(result.doubts.begin(), result.doubts.end(), is_same)) continue;
      result.doubts.push_back(std::move(doubt));
    }
  }
  if (baseline) {
    result.baseline = baseline->path;
    result.diff = DiffOf(baseline->runs, runs, false);
  }
  Judging(runs.back(), policy, today, result).JudgeFindings();
  double most = kMostRegression;
  int64_t line_of_most = 0;
  for (const Budget& budget : policy.budgets) {
    if (budget.max_regression) {
      most = *budget.max_regression;
      line_of_most = budget.line;
    }
    if (budget.max || budget.max_share || budget.min) {
      result.budgets.push_back(JudgeBudget(runs, budget));
    }
  }
  if (result.diff) result.budgets.push_back(JudgeRegression(*result.diff, most, line_of_most));
  result.conclusion = ConclusionOf(result);
  return result;
}

GateResult Judge(const JobAnalysis& job) { return Judge({&job, 1}, Policy{}, Today()); }

Date Today() {
  return Date{std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now())};
}

}  // namespace trainprof
