// trainprof check: the gate for CI. Fails when a finding or a budget does, and passes only what could
// be checked.
#include "profiler/cli/check.h"

#include <fmt/format.h>

#include <memory>

#include "profiler/cli/commands.h"
#include "profiler/cli/outputs.h"
#include "profiler/gate/baseline.h"
#include "profiler/gate/gate.h"
#include "profiler/report/gate_text.h"
#include "trace/io/print.h"

namespace trainprof::cli {
namespace {

constexpr char kCheckExamples[] = R"(Examples:
  trainprof check trainprof-20261120T101500Z
  trainprof check worker0.pt.trace.json.gz --format sarif=trainprof.sarif --format junit=trainprof.xml
  trainprof check run/ --baseline .trainprof-baseline.json
  trainprof check run1 run2 run3 run4 run5 --baseline .trainprof-baseline.json
  trainprof check run/ --budget step_time_ms=210 --budget gpu_busy=80% --fail-on never
  trainprof check run/ --allow-inconclusive        fail on findings and budgets alone
  trainprof check run/ --exit-zero                 report, never fail

Fails on a finding of severity error, whatever else was lost. .trainprof.toml in this
folder or above says more: severities, budgets, what is suppressed ('trainprof init'
writes one to begin with). With a baseline ('trainprof baseline create') only findings
that it does not have fail, and a step that is slower: by more than 3 % unless the file
says otherwise, and with nine in ten certainty. Five runs a side show how much runs
differ by themselves. Of several runs the last one's findings count.
Without what fails the check is inconclusive where no rule could be checked, a budget not
be measured, where records, ranks or files are missing, damaged or not understood, or
where the baseline is of another environment: it prints why.
Exit codes: 0 passed, 1 failed, 2 usage or a mistake in the file, 3 inconclusive, 4 the
input cannot be read, 74 the output cannot be written, 130 Ctrl-C.
--allow-inconclusive turns 3 into 0, --exit-zero 1 and 3.)";

int ExitCodeOf(const GateResult& gate, const CheckFlags& flags) {
  if (flags.exit_zero || gate.conclusion == Conclusion::kPassed) return kExitOk;
  if (gate.conclusion == Conclusion::kFailed) return kExitGateFailed;
  return flags.allow_inconclusive ? kExitOk : kExitInconclusive;
}

Action SetUpCheck(CLI::App& parser) {
  auto flags = std::make_shared<CheckFlags>();
  parser.add_option(
      "PATH", flags->paths,
      "Recordings, traces or folders of traces, a run each (default: the newest run here)");
  AddFormatOption(parser, flags->formats);
  AddGateFlags(parser, *flags);
  parser.add_flag("--exit-zero", flags->exit_zero,
                  "Report, but exit 0 when the gate fails or is inconclusive");
  return [flags](const ProgramArguments&) { return RunCheck(*flags, "check"); };
}

}  // namespace

void AddGateFlags(CLI::App& parser, CheckFlags& flags) {
  parser.add_option("--config", flags.config,
                    "The policy (default: .trainprof.toml here or in a folder above)");
  parser.add_option("--baseline", flags.baseline,
                    "What runs are compared with: trainprof baseline create");
  parser
      .add_option("--budget", flags.changes.budgets,
                  "A budget, as one of the policy's: NAME=LIMIT or NAME.KEY=VALUE, repeatable; "
                  "'trainprof explain' lists them")
      ->type_name("NAME=LIMIT")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  parser
      .add_option("--fail-on", flags.changes.fail_on,
                  "Fail on findings of this severity: error, warning, note, never (default: as the "
                  "policy says, else error)")
      ->type_name("SEVERITY");
  parser.add_flag("--allow-inconclusive", flags.allow_inconclusive,
                  "Exit 0, not 3, where data is missing or nothing could be checked");
}

int RunCheck(CheckFlags flags, const char* command) {
  const auto outputs = ParseOutputs(flags.formats);
  if (!outputs.ok()) return Fail(command, outputs.error(), kExitUsage);
  const Result<Policy> policy = FindPolicy(flags.config, flags.changes);
  if (!policy.ok()) return Fail(command, policy.error(), kExitUsage);
  if (flags.paths.empty()) {
    const auto path = PathOrNewestRun(command, "");
    if (!path.ok()) return Fail(command, path.error(), kExitUsage);
    flags.paths = {path.value()};
  }
  EndOnCtrlC(command, flags.paths.back());
  const auto writable = CheckOutputs(outputs.value());
  if (!writable.ok()) return Fail(command, writable.error(), kExitUnwritable);
  std::vector<JobAnalysis> known;
  if (!flags.baseline.empty()) {
    Result<std::vector<JobAnalysis>> baseline = ReadBaseline(flags.baseline);
    if (!baseline.ok()) return Fail(command, baseline.error(), kExitUnreadable);
    known = std::move(baseline).value();
  }
  std::vector<JobAnalysis> jobs;
  for (const std::string& path : flags.paths) {
    Result<JobAnalysis> job = AnalyzeWithProgress(path, policy.value().warmup_steps);
    if (!job.ok()) return Fail(command, job.error(), kExitUnreadable);
    jobs.push_back(std::move(job).value());
  }
  std::optional<BaselineRuns> beside;
  if (!known.empty()) beside = BaselineRuns{flags.baseline, known};
  const GateResult gate = Judge(jobs, policy.value(), Today(), beside);
  if (auto written = WriteOutputs(jobs.back(), outputs.value(), &gate); !written.ok()) {
    return Fail(command, written.error(), kExitUnwritable);
  }
  // With a report on standard output, the gate's own lines go beside it.
  const bool is_taken =
      std::any_of(outputs.value().begin(), outputs.value().end(),
                  [](const OutputSpec& output) { return output.IsStandardOutput(); });
  trainprof::PrintText(is_taken || flags.beside_a_program ? stderr : stdout,
                       GateText(jobs.back(), gate, flags.allow_inconclusive));
  return ExitCodeOf(gate, flags);
}

Command CheckCommand() {
  return {"check", "fail when a run has a severe finding or exceeds a budget", kCheckExamples,
          SetUpCheck};
}

}  // namespace trainprof::cli
