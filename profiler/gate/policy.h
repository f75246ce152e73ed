// What a team wants of its runs: .trainprof.toml, read.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/finding.h"
#include "trace/base/result.h"

namespace trainprof {

inline constexpr std::string_view kPolicyFile = ".trainprof.toml";

using Date = std::chrono::year_month_day;
std::string TextOf(Date date);  // "2026-12-31"

// Of findings of one rule.
struct RulePolicy {
  std::string rule;  // slug
  bool is_off = false;
  std::optional<Severity> severity;  // instead of the rule's own
  // Share of the step that a finding costs at least: below it is a note.
  std::optional<double> threshold;
};

// A figure of the run and what it may be.
struct Budget {
  std::string name;  // "step_time_ms", "idle_input_wait"
  // "p50" or "mean", of step_time_ms; else "".
  std::string stat;
  // In the figure's own unit; of times and shares also as a share of the step.
  std::optional<double> max;
  std::optional<double> max_share;
  std::optional<double> min;
  // Of step_time_ms: by how much a run may be slower than the baseline, as a share.
  std::optional<double> max_regression;
  // Of samples_per_second: how many samples a rank takes in a step.
  std::optional<double> samples_per_step;
  int64_t line = 0;  // of its table in the file; 0: it is the command line's
};

// A finding that a team lives with.
struct Suppression {
  std::string rule;  // slug
  std::string
      match;  // a part of the place: file, function, operator, or "file:line"; "": any place
  std::string reason;
  std::optional<Date> expires;  // the last day
  std::string where;            // of it itself: ".trainprof.toml:12"
};

enum class FailOn : uint8_t { kNote, kWarning, kError, kNever };

struct Policy {
  std::string path;  // of the file; "": there is none
  FailOn fail_on = FailOn::kError;
  std::optional<int> warmup_steps;  // of our own recordings
  std::vector<RulePolicy> rules;
  std::vector<Budget> budgets;
  std::vector<Suppression> suppressions;

  const RulePolicy* Of(std::string_view rule) const;
  const Budget* BudgetOf(std::string_view name) const;
};

// What the command line says instead of the file, or beside it.
struct PolicyChanges {
  std::string fail_on;               // "": as the file says
  std::vector<std::string> budgets;  // "step_time_ms=210", "step_time_ms.stat=p95", "gpu_busy=80%"

  bool Any() const { return !fail_on.empty() || !budgets.empty(); }
};

// The policy that a text holds, which came from `path`. Errors name file and line, or the flag, and what would be
// right: a key that nobody knows is one, since a gate must not pass for a typing error.
Result<Policy> ParsePolicy(std::string_view text, const std::string& path,
                           const PolicyChanges& changes = {});

// The file at `path`; where that is empty, .trainprof.toml of the current folder or the next one above, up to that of
// a repository. Without one the policy of no file.
Result<Policy> FindPolicy(const std::filesystem::path& path, const PolicyChanges& changes = {});

}  // namespace trainprof
