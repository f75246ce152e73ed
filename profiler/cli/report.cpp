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

Exit codes: 0 done, 2 usage, 4 the input cannot be read.)";

constexpr char kReportExamples[] = R"(Examples:
  trainprof report trainprof-20261120T101500Z
  trainprof report trainprof-20261120T101500Z --format json
  trainprof report run/ --format json=report.json --format text=-

Works while the run goes on: it reads what is there.
Exit codes: 0 done, 2 usage, 4 the input cannot be read.)";

struct Flags {
  std::string path;
  std::vector<std::string> formats;
};

int Run(const char* command, const Flags& flags) {
  std::vector<OutputSpec> outputs;
  for (const std::string& text : flags.formats) {
    auto output = ParseOutput(text);
    if (!output.ok()) return Fail(command, output.error(), kExitUsage);
    outputs.push_back(output.value());
  }
  if (outputs.empty()) outputs.push_back({"text", ""});
  auto job = AnalyzeWithProgress(flags.path);
  if (!job.ok()) return Fail(command, job.error(), kExitUnreadable);
  const auto written = WriteOutputs(job.value(), outputs);
  return written.ok() ? kExitOk : Fail(command, written.error(), kExitInternal);
}

Action SetUp(CLI::App& parser, const char* command) {
  auto flags = std::make_shared<Flags>();
  parser.add_option("PATH", flags->path, "A recording, a trace file, or a folder of traces")
      ->required();
  // One value a flag, so that the path may stand behind it.
  parser
      .add_option("-f,--format", flags->formats,
                  "FORMAT or FORMAT=FILE, repeatable: " + FormatsHelp())
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
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
