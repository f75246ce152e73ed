// trainprof export: a recording or a trace in the formats of other tools.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "analysis/words.h"
#include "profiler/cli/commands.h"
#include "profiler/cli/outputs.h"
#include "trace/formats/exporter.h"
#include "trace/io/input_file.h"
#include "trace/io/output_file.h"
#include "trace/io/print.h"

namespace trainprof::cli {
namespace {

constexpr char kExportExamples[] = R"(Examples:
  trainprof export trainprof-20261120T101500Z -o trace.json.gz
  trainprof export run/ --rank 3 -o rank3.json       open it in ui.perfetto.dev, HTA, TensorBoard
  trainprof export run/ --merge -o job.json.gz       all ranks below each other in ui.perfetto.dev

A run of several ranks gives one file a rank: trace.json.gz becomes trace-rank3.json.gz. With --merge
it gives one file, in which process, flow and correlation ids of different ranks differ; ranks whose
traces have absolute times stand on one clock, others each start at 0. trainprof reads such a file as
the ranks that it holds. HTA and TensorBoard want a file a rank.
Without --force a file that exists is left alone. /dev/stdout, a FIFO or a device is written into.
Exit codes: 0 done, 2 usage, 4 the input cannot be read, 74 the output cannot be written,
130 Ctrl-C.)";

struct ExportFlags {
  std::string path;
  std::string output;
  int64_t rank = -1;
  bool merge = false;
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

// Its name, for scripts; not into a stream that the trace itself may have gone to.
void SayWritten(const std::string& output) {
  if (!IsWrittenInto(output)) Print(stdout, "{}\n", output);
}

// All ranks in one file, read one after the other.
int RunMerged(const ExportFlags& flags) {
  bool input_failed = false;
  std::vector<std::string> unreadable;
  const VisitRanks ranks = [&](const VisitRank& visit) -> Result<void> {
    bool visit_failed = false;
    Result<std::vector<std::string>> visited =
        VisitWithProgress(flags.path, [&](Trace trace) -> Result<void> {
          Result<void> done = visit(trace);
          visit_failed = !done.ok();
          return done;
        });
    input_failed = !visited.ok() && !visit_failed;
    if (!visited.ok()) return Error{visited.error()};
    unreadable = std::move(visited).value();
    return {};
  };
  const auto merged = ExportMerged(ranks, flags.output, {.overwrite = flags.force});
  if (!merged.ok()) {
    return Fail("export", merged.error(), input_failed ? kExitUnreadable : kExitUnwritable);
  }
  for (const std::string& error : unreadable) {
    Print(stderr, "trainprof export: left out: {}\n", error);
  }
  const MergedRanks& result = merged.value();
  Print(stderr, "{}{}\n", Counted(static_cast<int64_t>(result.count), "rank", "ranks"),
        result.count == 1 ? ""
        : result.aligned  ? ", on one clock"
                          : ", not aligned, each starts at 0: " + result.why_not);
  SayWritten(flags.output);
  return kExitOk;
}

int Run(ExportFlags& flags) {
  auto path = PathOrNewestRun("export", flags.path);
  if (!path.ok()) return Fail("export", path.error(), kExitUsage);
  flags.path = std::move(path).value();
  EndOnCtrlC("export", flags.path);
  if (const auto known = CheckExportName(flags.output); !known.ok()) {
    return Fail("export", known.error(), kExitUsage);
  }
  if (flags.merge && IsStream(flags.path)) {
    return Fail("export",
                fmt::format("{} can be read only once, and --merge reads twice: save it to a file",
                            flags.path),
                kExitUsage);
  }
  const bool into_stream = IsWrittenInto(flags.output);
  if (flags.merge) return RunMerged(flags);
  Result<std::vector<Trace>> loaded = LoadWithProgress(flags.path);
  if (!loaded.ok()) return Fail("export", loaded.error(), kExitUnreadable);
  std::vector<Trace>& traces = loaded.value();
  if (into_stream && traces.size() > 1 && flags.rank < 0) {
    return Fail("export",
                fmt::format("{} holds {} ranks, and {} takes one file: add --rank N or --merge",
                            flags.path, traces.size(), flags.output),
                kExitUsage);
  }
  bool any = false;
  for (const Trace& trace : traces) {
    if (flags.rank >= 0 && trace.rank != flags.rank) continue;
    any = true;
    const bool one = flags.rank >= 0 || traces.size() == 1;
    const std::string output = one ? flags.output : WithRank(flags.output, trace.rank);
    const auto written = ExportTrace(trace, output, {.overwrite = flags.force});
    if (!written.ok()) return Fail("export", written.error(), kExitUnwritable);
    SayWritten(output);
  }
  if (!any) {
    return Fail("export", fmt::format("{}: holds no rank {}", flags.path, flags.rank), kExitUsage);
  }
  return kExitOk;
}

Action SetUpExport(CLI::App& parser) {
  auto flags = std::make_shared<ExportFlags>();
  AddPathOption(parser, flags->path);
  parser.add_option("-o,--output", flags->output, "The file to write: " + ExportNames())
      ->required();
  CLI::Option* const rank = parser.add_option("--rank", flags->rank, "Only this rank");
  parser.add_flag("--merge", flags->merge, "All ranks in one file")->excludes(rank);
  parser.add_flag("--force", flags->force, "Replace a file that exists");
  return [flags](const ProgramArguments&) { return Run(*flags); };
}

}  // namespace

Command ExportCommand() {
  return {"export", "write a recording or trace as Chrome JSON", kExportExamples, SetUpExport};
}

}  // namespace trainprof::cli
