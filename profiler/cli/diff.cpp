// trainprof diff: two runs, or two sides of several, beside each other: what got slower.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <set>

#include "analysis/job/diff.h"
#include "profiler/cli/commands.h"
#include "profiler/cli/outputs.h"
#include "profiler/report/diff_report.h"

namespace trainprof::cli {
namespace {

constexpr char kDiffExamples[] = R"(Examples:
  trainprof diff before after                      two recordings, or traces; folders of ranks
  trainprof diff before.json.gz after.json.gz --format json=diff.json --format text
  trainprof diff --base a1 --base a2 --base a3 -- b1 b2 b3
  trainprof diff a b --all                         each row, not the largest alone

A is what was, B what is: of two paths the first and the second, with --base what it
names and all others. A difference has a 90 % interval (a block bootstrap over steps; of
several runs a side also over runs). One run a side cannot show how much runs differ by
themselves: five a side can.
Runs whose GPU, driver, CUDA, torch, batch size, ranks or kind of input differ are not
compared; --anyway does so.
Exit codes: 0 compared, whatever the difference, 2 usage, 3 inconclusive: refused, too few
steps, no steps, or records of a side are missing (0 with --anyway, where there is a
comparison), 4 an input cannot be read, 74 the output cannot be written, 130 Ctrl-C.)";

struct DiffFlags {
  std::vector<std::string> base;
  std::vector<std::string> paths;
  std::vector<std::string> formats;
  bool all = false;
  bool anyway = false;
};

struct DiffSides {
  std::vector<std::string> a;
  std::vector<std::string> b;
};

Result<DiffSides> SidesOf(const DiffFlags& flags) {
  DiffSides sides{flags.base, flags.paths};
  if (flags.base.empty()) {
    if (flags.paths.size() != 2) {
      return Error{fmt::format(
          "two paths are compared, A and B; got {}. Several runs a side: --base A1 --base A2 -- B1 B2",
          flags.paths.size())};
    }
    sides = {{flags.paths[0]}, {flags.paths[1]}};
  }
  if (sides.b.empty()) return Error{"nothing to compare with --base: name the other side's runs"};
  // A run that counts twice would make its side look surer than it is.
  for (const std::vector<std::string>* side : {&sides.a, &sides.b}) {
    std::set<std::filesystem::path> seen;
    for (const std::string& path : *side) {
      std::error_code ignored;
      if (seen.insert(std::filesystem::weakly_canonical(path, ignored)).second) continue;
      return Error{fmt::format("{} is named twice on one side", path)};
    }
  }
  return sides;
}

std::string DiffIn(const std::string& format, const Diff& diff, bool all,
                   const RenderOptions& options) {
  return format == "json" ? DiffJson(diff) : DiffText(diff, all, options);
}

int Run(const DiffFlags& flags) {
  constexpr std::string_view kFormats[] = {"json", "text"};
  auto outputs = ParseOutputs(flags.formats, kFormats, "json (docs/diff.schema.json), text");
  if (!outputs.ok()) return Fail("diff", outputs.error(), kExitUsage);
  if (outputs.value().empty()) outputs.value().push_back({"text", ""});
  const Result<DiffSides> sides = SidesOf(flags);
  if (!sides.ok()) return Fail("diff", sides.error(), kExitUsage);
  EndOnCtrlC("diff", sides.value().b.front());
  const auto writable = CheckOutputs(outputs.value());
  if (!writable.ok()) return Fail("diff", writable.error(), kExitUnwritable);
  std::vector<JobAnalysis> a;
  std::vector<JobAnalysis> b;
  for (const auto& [paths, jobs] :
       {std::pair{&sides.value().a, &a}, std::pair{&sides.value().b, &b}}) {
    for (const std::string& path : *paths) {
      Result<JobAnalysis> job = AnalyzeWithProgress(path);
      if (!job.ok()) return Fail("diff", job.error(), kExitUnreadable);
      jobs->push_back(std::move(job).value());
    }
  }
  const Diff diff = DiffOf(a, b, flags.anyway);
  for (const OutputSpec& output : outputs.value()) {
    const auto written = WriteOutput(output, [&](const RenderOptions& options) {
      return DiffIn(output.format, diff, flags.all, options);
    });
    if (!written.ok()) return Fail("diff", written.error(), kExitUnwritable);
  }
  const bool is_accepted = flags.anyway && diff.result != DiffResult::kRefused;
  return diff.IsConclusive() || is_accepted ? kExitOk : kExitInconclusive;
}

Action SetUpDiff(CLI::App& parser) {
  auto flags = std::make_shared<DiffFlags>();
  parser.add_option("PATH", flags->paths, "Recordings, traces or folders of traces: A and B");
  parser.add_option("--base", flags->base, "A run of side A, repeatable; all others are side B")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  parser
      .add_option("-f,--format", flags->formats,
                  "FORMAT or FORMAT=FILE, repeatable: text (for people), json (for programs)")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  parser.add_flag("--all", flags->all, "Show each row and each finding");
  parser.add_flag("--anyway", flags->anyway,
                  "Compare runs of different environments, and exit 0 where it is inconclusive");
  return [flags](const ProgramArguments&) { return Run(*flags); };
}

}  // namespace

Command DiffCommand() {
  return {"diff", "say what got slower between two runs, and how sure that is", kDiffExamples,
          SetUpDiff};
}

}  // namespace trainprof::cli
