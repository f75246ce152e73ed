// trainprof report, trainprof analyze: what is slow in a recording or a trace, in any format.
#include <memory>

#include "profiler/cli/commands.h"
#include "profiler/cli/outputs.h"

namespace trainprof::cli {
namespace {

constexpr char kAnalyzeExamples[] = R"(Examples:
  trainprof analyze worker0.pt.trace.json.gz       a trace of torch.profiler
  trainprof analyze trainprof-20261120T101500Z     a recording of ours, also while it grows
  trainprof analyze traces/                        a folder of traces, one a rank
  trainprof analyze trace.json --format json=report.json --format text
  zcat trace.json.gz | trainprof analyze /dev/stdin

Exit codes: 0 done, 2 usage, 4 the input cannot be read, 74 the output cannot be written,
130 Ctrl-C.)";

constexpr char kReportExamples[] = R"(Examples:
  trainprof report                                 the newest run in this folder
  trainprof report trainprof-20261120T101500Z --format json
  trainprof report run/ --format json=report.json --format text=-

Works while the run goes on: it reads what is there.
Exit codes: 0 done, 2 usage, 4 the input cannot be read, 74 the output cannot be written,
130 Ctrl-C.)";

int Run(const char* command, const ReportFlags& flags) {
  auto outputs = ParseOutputs(flags.formats);
  if (!outputs.ok()) return Fail(command, outputs.error(), kExitUsage);
  if (outputs.value().empty()) outputs.value().push_back({"text", ""});
  const auto path = PathOrNewestRun(command, flags.path);
  if (!path.ok()) return Fail(command, path.error(), kExitUsage);
  EndOnCtrlC(command, path.value());
  const auto writable = CheckOutputs(outputs.value());
  if (!writable.ok()) return Fail(command, writable.error(), kExitUnwritable);
  const auto job = AnalyzeWithProgress(path.value());
  if (!job.ok()) return Fail(command, job.error(), kExitUnreadable);
  const auto written = WriteOutputs(job.value(), outputs.value());
  return written.ok() ? kExitOk : Fail(command, written.error(), kExitUnwritable);
}

Action SetUp(CLI::App& parser, const char* command) {
  auto flags = std::make_shared<ReportFlags>();
  AddReportFlags(parser, *flags);
  return [flags, command](const ProgramArguments&) { return Run(command, *flags); };
}

}  // namespace

Command AnalyzeCommand() {
  return {"analyze", "say what is slow in a trace or a recording", kAnalyzeExamples,
          [](CLI::App& parser) { return SetUp(parser, "analyze"); }};
}

Command ReportCommand() {
  return {"report", "write the report of a recording, in any format", kReportExamples,
          [](CLI::App& parser) { return SetUp(parser, "report"); }};
}

}  // namespace trainprof::cli
