// trainprof baseline: what `trainprof check` compares runs with, as a file for the repository.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "analysis/words.h"
#include "profiler/cli/commands.h"
#include "profiler/cli/outputs.h"
#include "profiler/gate/baseline.h"
#include "profiler/gate/gate.h"
#include "profiler/report/gate_text.h"
#include "trace/io/output_file.h"
#include "trace/io/print.h"

namespace trainprof::cli {
namespace {

constexpr char kBaselineExamples[] = R"(Examples:
  trainprof baseline create .trainprof-baseline.json run1 run2 run3 run4 run5
  trainprof baseline update .trainprof-baseline.json run1 run2 run3 run4 run5
  trainprof check run/ --baseline .trainprof-baseline.json

The file holds what a comparison needs of each run, some ten kilobytes: commit it. Five
runs show how much runs differ by themselves; with one nobody knows. 'create' replaces
nothing, 'update' makes an existing file anew. Runs of which records are missing make no
baseline.
Exit codes: 0 written, 2 usage, 3 a run is inconclusive, 4 a run cannot be read, 74 the
file cannot be written, 130 Ctrl-C.)";

struct BaselineFlags {
  std::string action;
  std::string file;
  std::vector<std::string> paths;
  std::string config;
  bool allow_inconclusive = false;
};

// What speaks against the run as a baseline; one line.
std::string DoubtIn(const JobAnalysis& job) {
  for (const RankAnalysis& rank : job.ranks) {
    if (rank.steps.count() == 0) return "no steps were found: there is nothing to compare";
  }
  const std::vector<Doubt> doubts = DoubtsOf(job);
  return doubts.empty() ? "" : doubts.front().text;
}

int Run(const BaselineFlags& flags) {
  std::error_code ignored;
  const bool exists = std::filesystem::exists(flags.file, ignored);
  if (flags.action != "create" && flags.action != "update") {
    return Fail("baseline", fmt::format("'{}' is neither create nor update", flags.action),
                kExitUsage);
  }
  if (flags.action == "create" && exists) {
    return Fail("baseline",
                fmt::format("{} exists: 'trainprof baseline update' makes it anew", flags.file),
                kExitUsage);
  }
  if (flags.action == "update" && !exists) {
    return Fail("baseline",
                fmt::format("there is no {}: 'trainprof baseline create' makes it", flags.file),
                kExitUsage);
  }
  const Result<Policy> policy = FindPolicy(flags.config);
  if (!policy.ok()) return Fail("baseline", policy.error(), kExitUsage);
  EndOnCtrlC("baseline", flags.file);
  const auto writable = CheckOutputFile(flags.file, OutputFile::Existing::kReplace);
  if (!writable.ok()) return Fail("baseline", writable.error(), kExitUnwritable);
  std::vector<JobDigests> runs;
  for (const std::string& path : flags.paths) {
    Result<JobDigests> run = DigestsWithProgress(path, policy.value().warmup_steps);
    if (!run.ok()) return Fail("baseline", run.error(), kExitUnreadable);
    const std::string doubt = DoubtIn(AnalysisOf(run.value()));
    if (!doubt.empty() && !flags.allow_inconclusive) {
      return Fail("baseline",
                  fmt::format("{}: {} (--allow-inconclusive takes it all the same)", path, doubt),
                  kExitInconclusive);
    }
    runs.push_back(std::move(run).value());
  }
  const auto written = WriteOutputFile(flags.file, BaselineText(runs));
  if (!written.ok()) return Fail("baseline", written.error(), kExitUnwritable);
  Print(stdout, "{}: {}\n", flags.file, Counted(static_cast<int64_t>(runs.size()), "run", "runs"));
  return kExitOk;
}

Action SetUpBaseline(CLI::App& parser) {
  auto flags = std::make_shared<BaselineFlags>();
  parser.add_option("ACTION", flags->action, "create or update")->required();
  parser.add_option("FILE", flags->file, "The baseline")->required();
  parser.add_option("RUN", flags->paths, "Recordings, traces or folders of traces, a run each")
      ->required();
  parser.add_option("--config", flags->config,
                    "The policy (default: .trainprof.toml here or in a folder above)");
  parser.add_flag("--allow-inconclusive", flags->allow_inconclusive,
                  "Take runs of which records are missing, too");
  return [flags](const ProgramArguments&) { return Run(*flags); };
}

}  // namespace

Command BaselineCommand() {
  return {"baseline", "write what 'check' compares runs with", kBaselineExamples, SetUpBaseline};
}

}  // namespace trainprof::cli
