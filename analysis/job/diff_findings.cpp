// Findings of two sides, matched by their places: those that share one are one finding.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "analysis/job/diff_rows.h"
#include "analysis/words.h"

namespace trainprof {
namespace {

struct Worst {
  const Finding* finding = nullptr;
  double cost_ms = 0;
};

// One finding on one side.
struct Seen {
  const Finding* finding = nullptr;  // of the last run, in its worst rank
  int64_t runs = 0;
  double cost_ms = 0;  // of all of them

  void Add(const Worst& worst) {
    finding = worst.finding;
    cost_ms += worst.cost_ms;
    ++runs;
  }
  double MeanCost() const { return cost_ms / static_cast<double>(runs); }
};

struct Place {
  std::optional<Site> in_a;
  std::optional<Site> in_b;
  bool InBoth() const { return in_a && in_b; }
};

struct Group {
  std::map<std::string, Place> places;  // by fingerprint
  Seen a;
  Seen b;
};

// What has no name is no place of a finding that has others: it would be shared with all of its rule.
std::map<std::string, Site> SitesByFingerprint(const Finding& finding) {
  std::map<std::string, Site> places;
  for (const Site& site : finding.where) {
    if (!NormalName(site).empty()) places[FingerprintOf(finding.rule, site)] = site;
  }
  if (!places.empty()) return places;
  const Site site = finding.where.empty() ? Site{} : finding.where.front();
  return {{FingerprintOf(finding.rule, site), site}};
}

// A note is not worth a change.
bool IsNote(const Finding& finding) { return finding.severity == Severity::kNote; }

template <class Visit>
void ForEachFinding(std::span<const JobAnalysis> jobs, Visit visit) {
  for (const JobAnalysis& job : jobs) {
    for (const RankAnalysis& rank : job.ranks) {
      for (const Finding& finding : rank.findings) visit(finding);
    }
  }
}

class FindingMatcher {
 public:
  FindingMatcher(std::span<const JobAnalysis> a, std::span<const JobAnalysis> b) {
    for (const auto& jobs : {a, b}) {
      ForEachFinding(jobs, [&](const Finding& finding) {
        if (!IsNote(finding)) Join(finding);
      });
    }
    AddPlaces(a, &Place::in_a);
    AddPlaces(b, &Place::in_b);
    const auto is_shown = [](const Finding& finding, const Group&, double) {
      return !IsNote(finding);
    };
    AddRuns(a, &Group::a, is_shown);
    AddRuns(b, &Group::b, is_shown);
    AddNotes(a, &Group::a, &Group::b);
    AddNotes(b, &Group::b, &Group::a);
  }

  const std::map<std::string, Group>& groups() const { return groups_; }

 private:
  // The fingerprint that stands for all places of the finding that has this one.
  std::string RootOf(std::string fingerprint) const {
    while (parent_.at(fingerprint) != fingerprint) fingerprint = parent_.at(fingerprint);
    return fingerprint;
  }

  void Join(const Finding& finding) {
    const std::map<std::string, Site> places = SitesByFingerprint(finding);
    const std::string& first = places.begin()->first;
    for (const auto& [fingerprint, site] : places) {
      parent_.try_emplace(fingerprint, fingerprint);
      parent_[RootOf(fingerprint)] = RootOf(first);
    }
  }

  // nullptr: a note that is a finding nowhere.
  Group* GroupOf(const Finding& finding) {
    for (const auto& [fingerprint, site] : SitesByFingerprint(finding)) {
      if (parent_.contains(fingerprint)) return &groups_[RootOf(fingerprint)];
    }
    return nullptr;
  }

  void AddPlaces(std::span<const JobAnalysis> jobs, std::optional<Site> Place::*side) {
    ForEachFinding(jobs, [&](const Finding& finding) {
      if (IsNote(finding)) return;
      std::map<std::string, Place>& places = GroupOf(finding)->places;
      for (auto& [fingerprint, site] : SitesByFingerprint(finding))
        places[fingerprint].*side = site;
    });
  }

  template <class Takes>
  void AddRuns(std::span<const JobAnalysis> jobs, Seen Group::*side, Takes takes) {
    for (const JobAnalysis& job : jobs) {
      std::map<Group*, Worst> found;
      for (const RankAnalysis& rank : job.ranks) {
        for (const Finding& finding : rank.findings) {
          Group* const group = GroupOf(finding);
          const double cost = rank.DevicePerStepMs(finding.cost);
          if (group == nullptr || !takes(finding, *group, cost)) continue;
          Worst& worst = found[group];
          if (worst.finding == nullptr || cost > worst.cost_ms) worst = {&finding, cost};
        }
      }
      for (const auto& [group, worst] : found) (group->*side).Add(worst);
    }
  }

  // What costs as much on a side where it is a note, as what other ranks are waited for, is neither
  // new nor fixed.
  void AddNotes(std::span<const JobAnalysis> jobs, Seen Group::*side, Seen Group::*other) {
    std::set<const Group*> absent;
    for (const auto& [root, group] : groups_) {
      if ((group.*side).runs == 0) absent.insert(&group);
    }
    AddRuns(jobs, side, [&](const Finding& finding, const Group& group, double cost) {
      return IsNote(finding) && absent.contains(&group) && cost >= (group.*other).MeanCost();
    });
  }

  std::map<std::string, std::string> parent_;
  std::map<std::string, Group> groups_;  // by RootOf
};

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

// All but the place.
FindingDiff StateOf(const Group& group, std::span<const JobAnalysis> a,
                    std::span<const JobAnalysis> b) {
  const Finding& shown = group.b.runs > 0 ? *group.b.finding : *group.a.finding;
  FindingDiff diff;
  diff.rule = shown.rule;
  diff.code = shown.code;
  diff.severity = shown.severity;
  diff.title = shown.title;
  diff.a_runs = group.a.runs;
  diff.b_runs = group.b.runs;
  if (group.a.runs > 0) diff.a_cost_ms = group.a.MeanCost();
  if (group.b.runs > 0) diff.b_cost_ms = group.b.MeanCost();
  if (group.a.runs > 0 && group.b.runs > 0) {
    diff.state = FindingState::kUnchanged;
  } else if (group.b.runs > 0) {
    diff.state = IsMost(group.b.runs, b) ? FindingState::kNew : FindingState::kSporadic;
    const std::string why = WhyNotChecked(a, diff.rule);
    if (!why.empty()) diff.note = "not checked in A: " + why;
  } else {
    diff.state = IsMost(group.a.runs, a) ? FindingState::kFixed : FindingState::kSporadic;
    const std::string why = WhyNotChecked(b, diff.rule);
    if (!why.empty()) {
      diff.state = FindingState::kNotChecked;
      diff.note = "not checked in B: " + why;
    }
  }
  return diff;
}

// Places on both sides first: what is said of the first is true of the finding.
std::vector<FindingDiff> ByPlace(const Group& group, const FindingDiff& state) {
  const bool any_in_both =
      std::ranges::any_of(group.places, [](const auto& place) { return place.second.InBoth(); });
  std::vector<FindingDiff> findings;
  for (const bool in_both : {true, false}) {
    for (const auto& [fingerprint, place] : group.places) {
      if (place.InBoth() != in_both) continue;
      FindingDiff diff = state;
      diff.fingerprint = fingerprint;
      diff.where = place.in_b ? *place.in_b : *place.in_a;
      if (any_in_both && !in_both) {
        diff.note = fmt::format("at this place in {} alone", place.in_b ? "B" : "A");
      }
      findings.push_back(std::move(diff));
    }
  }
  return findings;
}

}  // namespace

std::string_view Name(FindingState state) {
  constexpr auto names =
      std::to_array<std::string_view>({"new", "fixed", "not_checked", "unchanged", "sporadic"});
  return names[static_cast<size_t>(state)];
}

std::vector<FindingDiff> DiffFindings(std::span<const JobAnalysis> a,
                                      std::span<const JobAnalysis> b) {
  const FindingMatcher matcher(a, b);
  std::vector<FindingDiff> findings;
  for (const auto& [root, group] : matcher.groups()) {
    for (FindingDiff& diff : ByPlace(group, StateOf(group, a, b))) {
      findings.push_back(std::move(diff));
    }
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
