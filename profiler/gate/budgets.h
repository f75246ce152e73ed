// What can be given a budget: figures of a run, and how each is measured.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/job/job.h"
#include "profiler/gate/policy.h"

namespace trainprof {

inline constexpr std::string_view kStepTimeBudget = "step_time_ms";
inline constexpr std::string_view kSamplesBudget = "samples_per_second";

enum class BudgetUnit : uint8_t {
  kMilliseconds,
  kPerSecond,
  kShare,     // 0..1
  kStepPart,  // ms a step; a limit may be a share of the step, too
  kBytes,
  kPerStep,
};

struct BudgetKind {
  std::string_view code;  // TP8nn, never reused
  std::string_view title;
  BudgetUnit unit;
  bool has_max = true;  // else it has a min
};

// nullptr: there is no budget of that name. All idle time by cause has one: "idle_input_wait".
const BudgetKind* FindBudgetKind(std::string_view name);
// In the order of their codes.
std::vector<std::string> BudgetNames();

// The figure of a run: that of its worst rank. Without one `why` says what is missing.
struct Measured {
  std::optional<double> value;
  double step_ms = 0;  // of that rank
  int64_t rank = 0;
  std::string why;
};
Measured Measure(const JobAnalysis& job, const Budget& budget);

// "210.3 ms", "37 %", "9.8 GiB", of the kind's unit.
std::string ValueText(BudgetUnit unit, double value);

}  // namespace trainprof
