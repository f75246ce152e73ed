// What analyze, report and check share: loading with progress, and writing the chosen formats.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "analysis/job.h"
#include "trace/result.h"

namespace trainprof::cli {

// "json", "json=-", "json=report.json"
struct OutputSpec {
  std::string format;
  std::string file;  // empty or "-": standard output
};

// What analyze, report and check take: PATH and repeated --format.
struct ReportFlags {
  std::string path;
  std::vector<std::string> formats;
};
void AddReportFlags(CLI::App& parser, ReportFlags& flags);
Result<std::vector<OutputSpec>> ParseOutputs(const std::vector<std::string>& formats);

// Loads and analyses; shows progress on a terminal, nothing elsewhere. Ctrl-C ends it with an
// error.
Result<JobAnalysis> AnalyzeWithProgress(const std::string& path);
Result<std::vector<Trace>> LoadWithProgress(const std::string& path);
Result<std::vector<std::string>> VisitWithProgress(
    const std::string& path, const std::function<Result<void>(Trace trace)>& visit);

// Renders once a spec and writes each. Files are written beside their name and renamed, so that a
// reader never sees half a report.
Result<void> WriteOutputs(const JobAnalysis& job, const std::vector<OutputSpec>& outputs);

// Prints "trainprof COMMAND: message" and returns `code`, or 130 once Ctrl-C has ended the loading.
int Fail(const char* command, const std::string& message, int code);

}  // namespace trainprof::cli
