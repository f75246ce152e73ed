// Findings of two sides, matched by their fingerprints.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "analysis/job/diff_rows.h"
#include "analysis/words.h"

namespace trainprof {
namespace {

// One fingerprint on one side.
struct Seen {
  const Finding* finding = nullptr;  // of the last run, in its worst rank
  Site where{};
  int64_t runs = 0;
  double cost_ms = 0;  // of all of them
};

struct Worst {
  const Finding* finding;
  Site where;
  double cost_ms;
};

std::map<std::string, Worst> FindingsOf(const JobAnalysis& job) {
  std::map<std::string, Worst> found;
  for (const RankAnalysis& rank : job.ranks) {
    for (const Finding& finding : rank.findings) {
      if (finding.severity == Severity::kNote) continue;  // not worth a change
      const double cost = rank.DevicePerStepMs(finding.cost);
      std::vector<Site> sites = finding.where;
      if (sites.empty()) sites.emplace_back();
      for (Site& site : sites) {
        const std::string fingerprint = FingerprintOf(finding.rule, site);
        const auto [place, is_new] = found.try_emplace(fingerprint, Worst{&finding, site, cost});
        if (!is_new && cost > place->second.cost_ms) place->second = {&finding, site, cost};
      }
    }
  }
  return found;
}

std::map<std::string, Seen> FindingsOf(std::span<const JobAnalysis> jobs) {
  std::map<std::string, Seen> all;
  for (const JobAnalysis& job : jobs) {
    for (auto& [fingerprint, worst] : FindingsOf(job)) {
      Seen& seen = all[fingerprint];
      seen.finding = worst.finding;
      seen.where = worst.where;
      seen.cost_ms += worst.cost_ms;
      ++seen.runs;
    }
  }
  return all;
}

// Why the rule was not checked in a rank of the side; "" where it was, in all.
std::string WhyNotChecked(std::span<const JobAnalysis> jobs, const std::string& rule) {
  for (const JobAnalysis& job : jobs) {
    for (const RankAnalysis& rank : job.ranks) {
      for (const SkippedRule& skipped : rank.skipped) {
        if (skipped.rule == rule) return skipped.reason;
      }
    }
  }
  return {};
}

bool IsMost(int64_t runs, std::span<const JobAnalysis> of) {
  return 2 * runs > static_cast<int64_t>(of.size());
}

}  // namespace

std::string_view Name(FindingState state) {
  constexpr auto names =
      std::to_array<std::string_view>({"new", "fixed", "not_checked", "unchanged", "sporadic"});
  return names[static_cast<size_t>(state)];
}

std::vector<FindingDiff> DiffFindings(std::span<const JobAnalysis> a,
                                      std::span<const JobAnalysis> b) {
  const std::map<std::string, Seen> of_a = FindingsOf(a);
  const std::map<std::string, Seen> of_b = FindingsOf(b);
  std::map<std::string, std::pair<Seen, Seen>> both;
  for (const auto& [fingerprint, seen] : of_a) both[fingerprint].first = seen;
  for (const auto& [fingerprint, seen] : of_b) both[fingerprint].second = seen;
  std::vector<FindingDiff> findings;
  for (const auto& [fingerprint, pair] : both) {
    const auto& [in_a, in_b] = pair;
    const Seen& shown = in_b.runs > 0 ? in_b : in_a;
    FindingDiff diff;
    diff.fingerprint = fingerprint;
    diff.rule = shown.finding->rule;
    diff.code = shown.finding->code;
    diff.severity = shown.finding->severity;
    diff.where = shown.where;
    diff.title = shown.finding->title;
    diff.a_runs = in_a.runs;
    diff.b_runs = in_b.runs;
    if (in_a.runs > 0) diff.a_cost_ms = in_a.cost_ms / static_cast<double>(in_a.runs);
    if (in_b.runs > 0) diff.b_cost_ms = in_b.cost_ms / static_cast<double>(in_b.runs);
    if (in_a.runs > 0 && in_b.runs > 0) {
      diff.state = FindingState::kUnchanged;
    } else if (in_b.runs > 0) {
      diff.state = IsMost(in_b.runs, b) ? FindingState::kNew : FindingState::kSporadic;
      const std::string why = WhyNotChecked(a, diff.rule);
      if (!why.empty()) diff.note = "not checked in A: " + why;
    } else {
      diff.state = IsMost(in_a.runs, a) ? FindingState::kFixed : FindingState::kSporadic;
      const std::string why = WhyNotChecked(b, diff.rule);
      if (!why.empty()) {
        diff.state = FindingState::kNotChecked;
        diff.note = "not checked in B: " + why;
      }
    }
    findings.push_back(std::move(diff));
  }
  std::stable_sort(findings.begin(), findings.end(), [](const auto& x, const auto& y) {
    if (x.state != y.state) return x.state < y.state;
    if (x.severity != y.severity) return x.severity > y.severity;
    const auto cost = [](const FindingDiff& f) {
      return f.b_cost_ms.value_or(f.a_cost_ms.value_or(0));
    };
    return cost(x) > cost(y);
  });
  return findings;
}

}  // namespace trainprof
