#include "profiler/cli/outputs.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "profiler/cli/command.h"
#include "profiler/report/renderer.h"
#include "profiler/report/text.h"
#include "trace/base/nearest.h"
#include "trace/io/end_signals.h"
#include "trace/io/input_file.h"
#include "trace/io/output_file.h"
#include "trace/io/print.h"
#include "trace/io/write_all.h"

namespace trainprof::cli {
namespace {

// One line on a terminal's standard error, rewritten in place and gone at the end.
class ProgressLine {
 public:
  ProgressLine() : active_(isatty(STDERR_FILENO) != 0) {}
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine() {
    if (!shown_) return;
    PrintRaw(stderr, "\r\033[K");
    NoteProgressLine(false);
  }
  LoadOptions Options() {
    LoadOptions options;
    options.notice = [](const std::string& text) { Print(stderr, "trainprof: {}\n", text); };
    if (active_) options.progress = [this](const LoadStatus& status) { Show(status.text); };
    return options;
  }

 private:
  using Clock = std::chrono::steady_clock;

  // Nothing at first: most files are read before anybody could look.
  void Show(std::string_view line) {
    constexpr auto kBetween = std::chrono::milliseconds(100);
    const Clock::time_point now = Clock::now();
    if (now - last_ < kBetween) return;
    last_ = now;
    winsize size{};
    const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
    const std::string shown = OneLine(line);
    // A line that wraps could not be rewritten.
    const size_t room = known ? size.ws_col - 1u : shown.size();
    shown_ = true;
    NoteProgressLine(true);
    PrintRaw(stderr, fmt::format("\r\033[K{}", CutAtCharacter(shown, room)));
  }

  bool active_;
  bool shown_ = false;
  Clock::time_point last_ = Clock::now();
};

// "text (for people), json (for programs)"
std::string FormatsHelp() {
  std::string help;
  for (const RegisteredRenderer& entry : AllRenderers()) {
    help +=
        fmt::format("{}{} ({})", help.empty() ? "" : ", ", entry.slug, entry.renderer->description);
  }
  return help;
}

}  // namespace

void AddPathOption(CLI::App& parser, std::string& path) {
  parser.add_option(
      "PATH", path,
      "A recording, a trace file, or a folder of traces (default: the newest run here)");
}

void AddFormatOption(CLI::App& parser, std::vector<std::string>& formats) {
  // One value a flag, so that the path may stand behind it.
  parser.add_option("-f,--format", formats, "FORMAT or FORMAT=FILE, repeatable: " + FormatsHelp())
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void AddReportFlags(CLI::App& parser, ReportFlags& flags) {
  AddPathOption(parser, flags.path);
  AddFormatOption(parser, flags.formats);
}

Result<std::vector<OutputSpec>> ParseOutputs(const std::vector<std::string>& formats) {
  std::vector<std::string_view> known;
  for (const RegisteredRenderer& entry : AllRenderers()) known.push_back(entry.slug);
  return ParseOutputs(formats, known, FormatsHelp());
}

Result<std::vector<OutputSpec>> ParseOutputs(const std::vector<std::string>& formats,
                                             std::span<const std::string_view> known,
                                             std::string_view help) {
  std::vector<OutputSpec> outputs;
  for (const std::string& text : formats) {
    const size_t equals = text.find('=');
    outputs.push_back({text.substr(0, equals),
                       equals == std::string::npos ? std::string() : text.substr(equals + 1)});
    const std::string& format = outputs.back().format;
    if (std::find(known.begin(), known.end(), format) != known.end()) continue;
    const std::string nearest = Nearest(format, {known.begin(), known.end()});
    return Error{fmt::format("--format {}: no such format{}; there are: {}", text,
                             nearest.empty() ? "" : fmt::format(", did you mean '{}'?", nearest),
                             help)};
  }
  return outputs;
}

Result<std::string> PathOrNewestRun(const char* command, const std::string& path) {
  return trainprof::PathOrNewestRun(path, [command](const std::string& what) {
    Print(stderr, "trainprof {}: {}\n", command, what);
  });
}

Result<JobDigests> DigestsWithProgress(const std::string& path, std::optional<int> warmup_steps) {
  ProgressLine progress;
  LoadOptions options = progress.Options();
  options.warmup_steps = warmup_steps;
  return DigestsOfPath(path, options);
}

Result<JobAnalysis> AnalyzeWithProgress(const std::string& path, std::optional<int> warmup_steps) {
  ProgressLine progress;
  LoadOptions options = progress.Options();
  options.warmup_steps = warmup_steps;
  return AnalyzePath(path, options);
}

Result<std::vector<Trace>> LoadWithProgress(const std::string& path) {
  ProgressLine progress;
  return LoadTraces(path, progress.Options());
}

Result<std::vector<std::string>> VisitWithProgress(
    const std::string& path, const std::function<Result<void>(Trace trace)>& visit) {
  ProgressLine progress;
  return VisitTraces(path, progress.Options(), visit);
}

Result<void> CheckOutputs(const std::vector<OutputSpec>& outputs) {
  for (const OutputSpec& output : outputs) {
    if (output.IsStandardOutput()) continue;
    const auto writable = CheckOutputFile(output.file, OutputFile::Existing::kReplace);
    if (!writable.ok()) return writable;
  }
  return {};
}

Result<void> WriteOutput(const OutputSpec& output,
                         const std::function<Result<std::string>(const RenderOptions&)>& render) {
  const bool to_stdout = output.IsStandardOutput();
  const Result<std::string> text = render({.color = to_stdout && WantsColor(STDOUT_FILENO)});
  if (!text.ok()) return Error{text.error()};
  if (!to_stdout) return WriteOutputFile(output.file, text.value());
  return PrintRaw(stdout, text.value()) ? Result<void>() : Error{StandardOutputFailure()};
}

Result<void> WriteOutputs(const JobAnalysis& job, const std::vector<OutputSpec>& outputs,
                          const GateResult* gate) {
  for (const OutputSpec& output : outputs) {
    const auto written = WriteOutput(output, [&](RenderOptions options) {
      options.gate = gate;
      if (!IsStream(job.path)) {
        options.visit_traces = [&](const VisitTrace& visit) -> Result<void> {
          ProgressLine progress;
          const Result<JobSource> source = OpenJob(job.path);
          if (!source.ok()) return Error{source.error()};
          const Result<JobFacts> read = VisitJob(source.value(), progress.Options(), visit);
          return read.ok() ? Result<void>() : Error{read.error()};
        };
      }
      return RenderJob(*FindRenderer(output.format), job, options);
    });
    if (!written.ok()) return written;
  }
  return {};
}

std::string StandardOutputFailure() {
  const int error = StandardOutputError();
  return fmt::format("standard output: writing failed: {}{}", std::strerror(error),
                     WhatToDoAboutWriting(error));
}

void EndOnCtrlC(const char* command, const std::string& path) {
  EndOnSignals(fmt::format("trainprof {}: {}: cancelled\n", command, OneLine(path)));
}

}  // namespace trainprof::cli
