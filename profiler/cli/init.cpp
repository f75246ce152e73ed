// trainprof init: a policy to begin with.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "profiler/cli/commands.h"
#include "profiler/cli/outputs.h"
#include "profiler/gate/policy.h"
#include "trace/io/output_file.h"
#include "trace/io/print.h"

namespace trainprof::cli {
namespace {

constexpr char kInitExamples[] = R"(Examples:
  trainprof init                                   .trainprof.toml, all of it commented out
  trainprof init trainprof-20261120T101500Z        with the run's step time as a budget

Replaces nothing. Exit codes: 0 written, 2 usage, or the file exists, 4 the run cannot be
read, 74 the file cannot be written.)";

// A run may be slower by so much before the budget that is made of it fails.
constexpr double kRoom = 1.10;

constexpr std::string_view kStarter =
    R"(# What 'trainprof check' wants of this project's runs. Each key is explained in docs/ci.md.
schema = 1

[check]
# From which severity on a finding fails the check: "error", "warning", "note" or "never".
fail-on = "error"
# Steps of our own recordings that are set aside at the front (default: 10, at most a quarter).
# warmup-steps = 10

# A rule by its code or its name ('trainprof explain' lists all). A finding that costs less than
# the threshold, a share of the step, is a note.
# [rules.TP101]
# severity = "error"      # or "warning", "note", "off"
# threshold = 0.20

# Figures of the run and what they may be. Times in ms a step, or as a share: "5%".
{budget}
# [budgets.gpu_busy]
# min = 0.80
# [budgets.input_wait]
# max = "5%"
# [budgets.idle_sync_drain]
# max = 2.0
# [budgets.peak_gpu_memory]   # needs 'trainprof run --memory'
# max = "10 GiB"

# A finding that the team lives with, until when, and why. In the source the same is
#   loss_value = loss.item()  # trainprof: ignore[TP301] logging
# [[suppress]]
# rule = "TP301"
# match = "aten::item"    # a part of the file, function or operator; or "train.py:88"
# reason = "logging"
# expires = 2027-12-31
)";

std::string BudgetOf(double ms) {
  return fmt::format(
      "[budgets.step_time_ms]\nstat = \"p50\"\nmax = {:.1f}\n# max-regression = \"3%\"   "
      "# than the baseline: 'trainprof baseline create'",
      ms);
}

std::string Commented(const std::string& text) {
  std::string commented = "# ";
  for (const char c : text) {
    commented += c;
    if (c == '\n') commented += "# ";
  }
  return commented;
}

int WriteStarter(const std::string& path) {
  const std::string file(kPolicyFile);
  std::error_code ignored;
  if (std::filesystem::exists(file, ignored)) {
    return Fail("init", fmt::format("{} exists: nothing was changed", file), kExitUsage);
  }
  std::string budget = Commented(BudgetOf(210));
  if (!path.empty()) {
    const Result<JobAnalysis> job = AnalyzeWithProgress(path);
    if (!job.ok()) return Fail("init", job.error(), kExitUnreadable);
    const Steps& steps = SlowestRank(job.value()).steps;
    if (steps.count() == 0) {
      return Fail("init", fmt::format("{}: no steps were found, so that no step has a time", path),
                  kExitUsage);
    }
    budget = BudgetOf(kRoom * steps.Median().ToMilliseconds());
  }
  std::string text(kStarter);
  constexpr std::string_view kPlace = "{budget}";
  text.replace(text.find(kPlace), kPlace.size(), budget);
  const auto written = WriteOutputFile(file, text);
  if (!written.ok()) return Fail("init", written.error(), kExitUnwritable);
  Print(stdout, "{} is written. Read it, then: trainprof check\n", file);
  return kExitOk;
}

Action SetUpInit(CLI::App& parser) {
  auto path = std::make_shared<std::string>();
  parser.add_option("RUN", *path, "A run whose step time becomes a budget, with a tenth of room");
  return [path](const ProgramArguments&) { return WriteStarter(*path); };
}

}  // namespace

Command InitCommand() {
  return {"init", "write a .trainprof.toml to begin with", kInitExamples, SetUpInit};
}

}  // namespace trainprof::cli
