// What analyze, report and check share: loading with progress, and writing the chosen formats.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/job/job.h"
#include "profiler/report/renderer.h"
#include "trace/base/result.h"

namespace trainprof::cli {

// "json", "json=-", "json=report.json"
struct OutputSpec {
  std::string format;
  std::string file;  // empty or "-": standard output
  bool IsStandardOutput() const { return file.empty() || file == "-"; }
};

// What analyze, report and check take: PATH and repeated --format.
struct ReportFlags {
  std::string path;  // empty: the newest run here
  std::vector<std::string> formats;
};
void AddPathOption(CLI::App& parser, std::string& path);
void AddFormatOption(CLI::App& parser, std::vector<std::string>& formats);
void AddReportFlags(CLI::App& parser, ReportFlags& flags);
Result<std::vector<OutputSpec>> ParseOutputs(const std::vector<std::string>& formats);
// The same where other formats than a report's are known; `help` names them in an error.
Result<std::vector<OutputSpec>> ParseOutputs(const std::vector<std::string>& formats,
                                             std::span<const std::string_view> known,
                                             std::string_view help);

// The path that was given, or that of the newest run in the current folder, which is then named on
// standard error. Without one, an error.
Result<std::string> PathOrNewestRun(const char* command, const std::string& path);

// From now on Ctrl-C ends the program at once, wherever it is, with exit code 130.
void EndOnCtrlC(const char* command, const std::string& path);

// Loads and analyses; shows progress on a terminal, nothing elsewhere. `warmup_steps`: see LoadOptions.
Result<JobAnalysis> AnalyzeWithProgress(const std::string& path,
                                        std::optional<int> warmup_steps = std::nullopt);
Result<JobDigests> DigestsWithProgress(const std::string& path,
                                       std::optional<int> warmup_steps = std::nullopt);
Result<std::vector<Trace>> LoadWithProgress(const std::string& path);
Result<std::vector<std::string>> VisitWithProgress(
    const std::string& path, const std::function<Result<void>(Trace trace)>& visit);

// Before the work: whether the files can be written, as far as can be told.
Result<void> CheckOutputs(const std::vector<OutputSpec>& outputs);
// Writes what `render` makes, where the spec says (trace/io/output_file.h).
Result<void> WriteOutput(const OutputSpec& output,
                         const std::function<Result<std::string>(const RenderOptions&)>& render);
// Renders once a spec and writes each. `gate`: see RenderOptions.
Result<void> WriteOutputs(const JobAnalysis& job, const std::vector<OutputSpec>& outputs,
                          const GateResult* gate = nullptr);

// Why standard output could not be written, once it could not.
std::string StandardOutputFailure();

}  // namespace trainprof::cli
