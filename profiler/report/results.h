// What the formats for other tools show of a job: one result for each rule at each place of the source, whatever the
// number of ranks that have it, and one for each budget.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "profiler/gate/gate.h"
#include "profiler/report/renderer.h"

namespace trainprof {

// A rule or a budget that the gate knows.
struct CheckedRule {
  std::string code;   // "TP301", unique
  std::string slug;   // "host-sync"
  std::string title;  // what it looks for
  bool is_budget = false;
  std::string not_checked;  // why, of a rule that no rank could check; else ""
};

// All texts are one line each, without anything that a terminal obeys.
struct CheckResult {
  size_t rule = 0;  // of CheckReport::rules
  Severity severity = Severity::kNote;
  GateState state = GateState::kReported;
  std::string message;  // what it costs, and what to do
  std::string advice;   // the second part alone
  std::string
      file;  // as other tools find it: below the current folder where it is there; "": no place is known
  int64_t line = 0;  // 0: no place is known
  std::string function;
  std::string fingerprint;    // 16 hexadecimal digits; unique
  std::string suppressed_by;  // "": nothing
  bool in_source = false;     // by a comment
  std::vector<int64_t> ranks;
};

struct CheckReport {
  std::vector<CheckedRule> rules;    // by code
  std::vector<CheckResult> results;  // the gravest first
  std::vector<std::string> doubts;   // why the whole is inconclusive, ids and texts
  GateResult gate;
};

// `options.gate`, or what the policy of no file says of the job.
CheckReport CheckReportOf(const JobAnalysis& job, const RenderOptions& options);

// Results with a place in a file, and of those without one the first of each rule and state: they say the same of
// ranges that nobody can open. `more`: how many others there are.
struct ShownResult {
  const CheckResult* result = nullptr;
  size_t more = 0;
};
std::vector<ShownResult> ShownOf(const CheckReport& report);

// A file of the trace below the current folder, relative to it, where it is there (or its longest end is): other
// machines check the same files out elsewhere. Else as it is.
std::string RelativeFile(const std::string& file);

}  // namespace trainprof
