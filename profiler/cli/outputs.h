// What analyze, report and check share: loading with progress, and writing the chosen formats.
#pragma once

#include <string>
#include <vector>

#include "profiler/report/job.h"
#include "trace/result.h"

namespace trainprof::cli {

// "json", "json=-", "json=report.json"
struct OutputSpec {
  std::string format;
  std::string file;  // empty or "-": standard output
};

Result<OutputSpec> ParseOutput(const std::string& text);
// For the help of --format: "text (for people), json (for programs)".
std::string FormatsHelp();

// Loads and analyses; shows progress on a terminal, nothing elsewhere.
Result<JobAnalysis> AnalyzeWithProgress(const std::string& path);
Result<std::vector<Trace>> LoadWithProgress(const std::string& path);

// Renders once a spec and writes each. Files are written beside their name and renamed, so that a
// reader never sees half a report.
Result<void> WriteOutputs(const JobAnalysis& job, const std::vector<OutputSpec>& outputs);

// Prints "trainprof COMMAND: message" and returns `code`.
int Fail(const char* command, const std::string& message, int code);

}  // namespace trainprof::cli
