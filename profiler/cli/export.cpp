// trainprof export: a recording or a trace in the formats of other tools.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "profiler/cli/commands.h"
#include "profiler/cli/outputs.h"
#include "trace/formats/exporter.h"

namespace trainprof::cli {
namespace {

constexpr char kExamples[] = R"(Examples:
  trainprof export trainprof-20261120T101500Z -o trace.json.gz
  trainprof export run/ --rank 3 -o rank3.json       open it in ui.perfetto.dev, HTA, TensorBoard

A run of several ranks gives one file a rank: trace.json.gz becomes trace-rank3.json.gz.
Exit codes: 0 done, 2 usage, 4 the input cannot be read, 70 the output cannot be written,
130 Ctrl-C.)";

struct Flags {
  std::string path;
  std::string output;
  int64_t rank = -1;
  bool force = false;
};

// "trace.json.gz", 3 -> "trace-rank3.json.gz"
std::string WithRank(const std::string& output, int64_t rank) {
  const std::filesystem::path path(output);
  const std::string name = path.filename().string();
  const size_t dot = std::min(name.find('.'), name.size());
  return (path.parent_path() /
          fmt::format("{}-rank{}{}", name.substr(0, dot), rank, name.substr(dot)))
      .string();
}

int Run(const Flags& flags) {
  Result<std::vector<Trace>> loaded = LoadWithProgress(flags.path);
  if (!loaded.ok()) return Fail("export", loaded.error(), kExitUnreadable);
  std::vector<Trace>& traces = loaded.value();
  // Files that name no rank get numbers of their own, as in a report, so that none replaces
  // another.
  int64_t next_rank = 0;
  for (Trace& trace : traces) {
    if (!trace.rank_known) trace.rank = next_rank;
    next_rank = trace.rank + 1;
  }
  bool any = false;
  for (const Trace& trace : traces) {
    if (flags.rank >= 0 && trace.rank != flags.rank) continue;
    any = true;
    const bool one = flags.rank >= 0 || traces.size() == 1;
    const std::string output = one ? flags.output : WithRank(flags.output, trace.rank);
    const auto written = ExportTrace(trace, output, {.overwrite = flags.force});
    if (!written.ok()) return Fail("export", written.error(), kExitInternal);
    fmt::print("{}\n", output);
  }
  if (!any) {
    return Fail("export", fmt::format("{}: holds no rank {}", flags.path, flags.rank), kExitUsage);
  }
  return kExitOk;
}

Action SetUp(CLI::App& parser) {
  auto flags = std::make_shared<Flags>();
  parser.add_option("PATH", flags->path, "A recording, a trace file, or a folder of traces")
      ->required();
  parser.add_option("-o,--output", flags->output, "The file to write: *.json or *.json.gz")
      ->required();
  parser.add_option("--rank", flags->rank, "Only this rank");
  parser.add_flag("--force", flags->force, "Replace a file that exists");
  return [flags](const ProgramArguments&) { return Run(*flags); };
}

}  // namespace

Command ExportCommand() {
  return {"export", "write a recording or trace as Chrome JSON", kExamples, SetUp};
}

}  // namespace trainprof::cli
