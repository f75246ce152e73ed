// The gate: a job judged by a policy, beside a baseline where there is one. What every format shows of it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/job/coverage.h"
#include "analysis/job/diff.h"
#include "profiler/gate/policy.h"

namespace trainprof {

enum class GateState : uint8_t {
  kPassed,
  kFailed,
  kReported,  // of a severity that fails nothing
  kKnown,     // it is in the baseline
  kSuppressed,
  kOff,           // the policy wants nothing of this rule
  kDoubtful,      // its rank lacks what the finding rests on
  kInconclusive,  // a budget that cannot be measured, a finding that a refused baseline may know
};
std::string_view Name(GateState state);  // "passed", "failed", ...

// One place of a finding.
struct JudgedSite {
  std::string fingerprint;    // FingerprintOf
  std::string suppressed_by;  // reason and place; "": it is not
  bool in_source = false;     // by a comment there
  bool is_known = false;      // to the baseline
  bool is_sporadic = false;   // it is not, and half of these runs or fewer have it
};

struct JudgedFinding {
  size_t rank = 0;                      // of JobAnalysis::ranks
  size_t finding = 0;                   // of its findings
  Severity severity = Severity::kNote;  // as the policy has it
  GateState state = GateState::kReported;
  std::vector<JudgedSite> sites;  // as Finding::where; one of the finding itself where it has none
};

struct JudgedBudget {
  std::string code;   // "TP801"
  std::string name;   // "step_time_ms"
  std::string title;  // "step time p50"
  GateState state = GateState::kPassed;
  std::string text;  // "step time p50: 210.3 ms, at most 205.0 ms"
  std::optional<double> value;
  std::optional<double> limit;
  int64_t line = 0;  // of the policy; 0: it does not stand there
};

struct GateResult {
  Conclusion conclusion = Conclusion::kPassed;
  std::vector<JudgedFinding> findings;  // by rank, as its findings
  std::vector<JudgedBudget> budgets;    // as in the policy; that of the baseline last
  std::vector<Doubt> doubts;            // DoubtsOf
  std::vector<std::string> complaints;  // of suppressions: Suppressor::Complaints
  std::string policy;                   // its path; "": none
  std::string baseline;                 // its path; "": none
  std::optional<Diff> diff;             // of the baseline's runs and these

  int64_t Count(GateState state) const;  // findings and budgets in it
};

// The baseline's runs, and whence they are.
struct BaselineRuns {
  std::string path;
  std::span<const JobAnalysis> runs;
};

// Judges the last of `runs` (at least one); budgets are of the run in the middle. With a baseline only findings that
// are new fail, and a step that is slower, with nine in ten certainty and by more than the policy allows. What cannot
// be judged is never passed. `today`: see Suppressor.
GateResult Judge(std::span<const JobAnalysis> runs, const Policy& policy, Date today,
                 const std::optional<BaselineRuns>& baseline = std::nullopt);
// By the policy of no file.
GateResult Judge(const JobAnalysis& job);

// Of UTC.
Date Today();

// A step that is slower than the baseline by less than this fails nothing, where the policy does not say: runs differ
// by as much with nothing changed.
inline constexpr double kMostRegression = 0.03;
inline constexpr std::string_view kRegressionCode = "TP810";

}  // namespace trainprof
