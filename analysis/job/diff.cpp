#include "analysis/job/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "analysis/job/coverage.h"
#include "analysis/job/diff_rows.h"
#include "analysis/words.h"

namespace trainprof {
namespace {

template <class Enum, size_t N>
std::string_view NameIn(const std::array<std::string_view, N>& names, Enum value) {
  return names[static_cast<size_t>(value)];
}

// Values that several runs tell, "a, b"; "" where none tells any.
std::string Joined(const std::set<std::string>& values) {
  return fmt::format("{}", fmt::join(values, ", "));
}

std::set<std::string> Known(std::span<const JobAnalysis> jobs, size_t fact) {
  std::set<std::string> values;
  for (const JobAnalysis& job : jobs) values.insert(EnvironmentOf(job)[fact].value);
  values.erase("");
  return values;
}

class Comparer {
 public:
  Comparer(std::span<const JobAnalysis> a, std::span<const JobAnalysis> b) : a_(a), b_(b) {}

  Diff Compare(bool anyway) {
    const bool a_has_steps = FindMissingSteps(a_, "A");
    const bool has_steps = FindMissingSteps(b_, "B") && a_has_steps;
    CompareEnvironments();
    FindLosses(a_, "A");
    FindLosses(b_, "B");
    FindUnlikeDetail(a_, "A");
    FindUnlikeDetail(b_, "B");
    diff_.on_devices = AllOf([](const RankAnalysis& rank) {
      return rank.device_steps.count() > 0 &&
             std::ranges::any_of(rank.devices, [](const DeviceReport& d) { return !d.stray; });
    });
    Describe(a_, diff_.a);
    Describe(b_, diff_.b);
    if (!has_steps || (!diff_.refusals.empty() && !anyway)) return std::move(diff_);
    const DiffRows rows(a_, b_, diff_.on_devices);
    diff_.step = rows.Step();
    diff_.tables = rows.Tables();
    diff_.late_ranks = LateRanks(a_, b_, rows);
    diff_.findings = DiffFindings(a_, b_);
    diff_.result = Result();
    SayWhatIntervalsLack();
    return std::move(diff_);
  }

 private:
  template <class Test>
  bool AllOf(Test test) const {
    const auto holds = [&](const JobAnalysis& job) { return std::ranges::all_of(job.ranks, test); };
    return std::ranges::all_of(a_, holds) && std::ranges::all_of(b_, holds);
  }

  bool FindMissingSteps(std::span<const JobAnalysis> jobs, std::string_view side) {
    bool all = true;
    for (const JobAnalysis& job : jobs) {
      for (const RankAnalysis& rank : job.ranks) {
        if (rank.steps.count() > 0) continue;
        all = false;
        const std::string who = job.ranks.size() > 1 ? fmt::format(", rank {}", rank.rank) : "";
        diff_.refusals.push_back(
            {"no_steps",
             fmt::format("{} ({}{}) has no steps: there is nothing to compare by the step", side,
                         job.path, who)});
        break;
      }
    }
    return all;
  }

  // What both sides tell has to be the same; what one does not tell is named.
  void CompareEnvironments() {
    std::string untold;
    const std::vector<EnvironmentFact> facts = EnvironmentOf(a_[0]);
    const bool no_gpu = AllOf([](const RankAnalysis& rank) { return rank.devices.empty(); });
    const bool no_options =
        AllOf([](const RankAnalysis& rank) { return rank.source != SourceKind::kRecording; });
    for (size_t i = 0; i < facts.size(); ++i) {
      const std::set<std::string> of_a = Known(a_, i);
      const std::set<std::string> of_b = Known(b_, i);
      std::set<std::string> all = of_a;
      all.insert(of_b.begin(), of_b.end());
      const std::string id(facts[i].id);
      const bool has_none =
          (no_gpu && (id == "driver" || id == "cuda")) || (no_options && id == "recording_options");
      if (all.size() > 1) {
        (facts[i].refuses ? diff_.refusals : diff_.cautions)
            .push_back({id,
                        fmt::format("{}: {} in A, {} in B", facts[i].title, Told(of_a), Told(of_b)),
                        Joined(of_a), Joined(of_b)});
      } else if (facts[i].refuses && (of_a.empty() || of_b.empty()) && !has_none) {
        untold += fmt::format("{}{}", untold.empty() ? "" : ", ", facts[i].title);
      }
    }
    if (untold.empty()) return;
    diff_.cautions.push_back({"not_recorded", "not compared, for want of a record: " + untold});
  }
  static std::string Told(const std::set<std::string>& values) {
    return values.empty() ? "not recorded" : Joined(values);
  }

  // Runs of a side that lack the same share a line.
  void FindLosses(std::span<const JobAnalysis> jobs, std::string_view side) {
    std::vector<std::pair<Doubt, std::vector<std::string>>> found;
    for (const JobAnalysis& job : jobs) {
      for (const Doubt& doubt : DoubtsOf(job)) {
        // What no rule says is no loss of records.
        if (doubt.id == "no_rule_checked" || doubt.id == "nothing_to_judge") continue;
        // Nor do missing launches change how long anything took.
        if (doubt.id == "launches_missing") continue;
        auto same = std::ranges::find_if(
            found, [&](const auto& other) { return other.first.text == doubt.text; });
        if (same == found.end()) same = found.insert(found.end(), {doubt, {}});
        same->second.push_back(job.path);
      }
    }
    for (const auto& [doubt, paths] : found) {
      const auto more = static_cast<int64_t>(paths.size()) - 1;
      const std::string others = more == 0 ? "" : " and " + Counted(more, "more run", "more runs");
      diff_.losses.push_back({std::string(doubt.id),
                              fmt::format("{} ({}{}): {}", side, paths[0], others, doubt.text)});
    }
  }

  void FindUnlikeDetail(std::span<const JobAnalysis> jobs, std::string_view side) {
    for (const JobAnalysis& job : jobs) {
      const auto unlike = std::ranges::find_if(
          job.ranks, [](const RankAnalysis& rank) { return rank.detail_check.is_unlike; });
      if (unlike == job.ranks.end()) continue;
      diff_.cautions.push_back({"detail_unlike", fmt::format("{} ({}): {}", side, job.path,
                                                             UnlikeText(unlike->detail_check))});
    }
  }

  void Describe(std::span<const JobAnalysis> jobs, std::vector<DiffRun>& runs) const {
    for (const JobAnalysis& job : jobs) {
      DiffRun run{job.path, job.kind, job.ranks.size(), SIZE_MAX, 0};
      for (const RankAnalysis& rank : job.ranks) {
        run.steps =
            std::min(run.steps, (diff_.on_devices ? rank.device_steps : rank.steps).count());
      }
      run.step_ms = MeanStepMs(job, diff_.on_devices);
      runs.push_back(std::move(run));
    }
  }

  DiffResult Result() const {
    const bool is_same = std::ranges::equal(
        a_, b_, [](const JobAnalysis& a, const JobAnalysis& b) { return a.steps == b.steps; });
    if (is_same) return DiffResult::kEqual;
    if (!diff_.step.bounds) return DiffResult::kUnknown;
    if (!diff_.step.IsClear()) return DiffResult::kNoDifference;
    return diff_.step.Difference() > 0 ? DiffResult::kSlower : DiffResult::kFaster;
  }

  void SayWhatIntervalsLack() {
    if (diff_.result == DiffResult::kEqual) return;
    for (const auto& [runs, side] : {std::pair{&diff_.a, "A"}, std::pair{&diff_.b, "B"}}) {
      if (runs->size() > 1 || runs->front().steps >= kFewestSteps) continue;
      diff_.cautions.push_back(
          {"few_steps",
           fmt::format("{} has {}: an interval needs {}, or several runs a side", side,
                       Counted(static_cast<int64_t>(runs->front().steps), "step", "steps"),
                       kFewestSteps)});
    }
    if (!diff_.step.bounds || (diff_.a.size() > 1 && diff_.b.size() > 1)) return;
    const bool of_a = diff_.a.size() == 1;
    const bool of_b = diff_.b.size() == 1;
    const bool is_busy = (of_a && HostWasBusy(a_[0])) || (of_b && HostWasBusy(b_[0]));
    const double share = kRunToRunShare * (is_busy ? kRunToRunOnBusyHost : 1);
    diff_.cautions.push_back(
        {"run_to_run", fmt::format("{} cannot show how much runs differ by themselves: the "
                                   "intervals are wider for it, by {:.0f} % of the step at least",
                                   of_a && of_b ? "one run a side"
                                   : of_a       ? "the one run of A"
                                                : "the one run of B",
                                   100 * share)});
    if (!is_busy) return;
    diff_.cautions.push_back(
        {"busy_host",
         "the cores of the host were busy throughout: runs of one program differ by "
         "more than that there; take five a side, in turns"});
  }

  std::span<const JobAnalysis> a_;
  std::span<const JobAnalysis> b_;
  Diff diff_;
};

}  // namespace

std::string_view Name(DiffTable::By by) {
  constexpr auto names = std::to_array<std::string_view>({"class", "phase", "operation", "rank"});
  return NameIn(names, by);
}

std::string_view Name(DiffResult result) {
  constexpr auto names = std::to_array<std::string_view>(
      {"slower", "faster", "no_difference", "equal", "unknown", "refused"});
  return NameIn(names, result);
}

bool Diff::IsConclusive() const {
  return refusals.empty() && losses.empty() && result != DiffResult::kUnknown &&
         result != DiffResult::kRefused;
}

Diff DiffOf(std::span<const JobAnalysis> a, std::span<const JobAnalysis> b, bool anyway) {
  return Comparer(a, b).Compare(anyway);
}

}  // namespace trainprof
