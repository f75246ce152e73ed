// trainprof check: the gate for CI. Fails when a finding of severity error is there.
#include <fmt/format.h>

#include <memory>

#include "profiler/cli/commands.h"
#include "profiler/cli/outputs.h"
#include "trace/io/print.h"

namespace trainprof::cli {
namespace {

constexpr char kExamples[] = R"(Examples:
  trainprof check trainprof-20261120T101500Z
  trainprof check worker0.pt.trace.json.gz --format json=report.json
  trainprof check run/ --exit-zero                 report, never fail

Exit codes: 0 passed, 1 a finding of severity error, 2 usage, 4 the input cannot be read,
74 the output cannot be written, 130 Ctrl-C.)";

struct Flags {
  ReportFlags report;
  bool exit_zero = false;
};

int Run(const Flags& flags) {
  const auto outputs = ParseOutputs(flags.report.formats);
  if (!outputs.ok()) return Fail("check", outputs.error(), kExitUsage);
  EndOnCtrlC("check", flags.report.path);
  const auto writable = CheckOutputs(outputs.value());
  if (!writable.ok()) return Fail("check", writable.error(), kExitUnwritable);
  const auto job = AnalyzeWithProgress(flags.report.path);
  if (!job.ok()) return Fail("check", job.error(), kExitUnreadable);
  if (auto written = WriteOutputs(job.value(), outputs.value()); !written.ok()) {
    return Fail("check", written.error(), kExitUnwritable);
  }
  // With a report on standard output, the gate's own lines go beside it.
  std::FILE* const out = outputs.value().empty() ? stdout : stderr;
  int errors = 0;
  for (const RankAnalysis& rank : job.value().ranks) {
    for (const Finding& finding : rank.findings) {
      Print(out, "{:<7} {} {} (rank {}): {}\n", Name(finding.severity), finding.code, finding.rule,
            rank.rank, finding.title);
      if (finding.severity == Severity::kError) ++errors;
    }
    for (const SkippedRule& skipped : rank.skipped) {
      Print(out, "skipped {} (rank {}): {}\n", skipped.rule, rank.rank, skipped.reason);
    }
  }
  if (errors == 0) {
    Print(out, "PASS: no finding of severity error\n");
    return kExitOk;
  }
  Print(out, "FAIL: {} finding{} of severity error\n", errors, errors == 1 ? "" : "s");
  return flags.exit_zero ? kExitOk : kExitGateFailed;
}

Action SetUp(CLI::App& parser) {
  auto flags = std::make_shared<Flags>();
  AddReportFlags(parser, flags->report);
  parser.add_flag("--exit-zero", flags->exit_zero, "Report, but exit 0 when the gate fails");
  return [flags](const ProgramArguments&) { return Run(*flags); };
}

}  // namespace

Command CheckCommand() {
  return {"check", "fail when a trace or recording has a severe finding", kExamples, SetUp};
}

}  // namespace trainprof::cli
