#include "profiler/cli/outputs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "profiler/report/renderer.h"
#include "profiler/report/text.h"

namespace trainprof::cli {
namespace {

// One line on a terminal's standard error, rewritten in place and gone at the end.
class ProgressLine {
 public:
  ProgressLine() : active_(isatty(STDERR_FILENO) != 0) {}
  ~ProgressLine() {
    if (shown_) fmt::print(stderr, "\r\033[K");
  }
  LoadOptions Options() {
    LoadOptions options;
    if (active_) {
      options.progress = [this](std::string_view line) {
        fmt::print(stderr, "\r\033[K{}", line);
        std::fflush(stderr);
        shown_ = true;
      };
    }
    return options;
  }

 private:
  bool active_;
  bool shown_ = false;
};

Result<void> WriteFile(const std::string& file, const std::string& text) {
  const std::string temporary = file + ".partial";
  std::FILE* const out = std::fopen(temporary.c_str(), "wb");
  if (out == nullptr) {
    return Error{fmt::format("{}: cannot be written: {}", file, std::strerror(errno))};
  }
  const bool written = std::fwrite(text.data(), 1, text.size(), out) == text.size();
  const bool closed = std::fclose(out) == 0;
  if (!written || !closed || std::rename(temporary.c_str(), file.c_str()) != 0) {
    const std::string why = std::strerror(errno);
    std::remove(temporary.c_str());
    return Error{fmt::format("{}: writing failed: {}", file, why)};
  }
  return {};
}

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

void AddReportFlags(CLI::App& parser, ReportFlags& flags) {
  parser.add_option("PATH", flags.path, "A recording, a trace file, or a folder of traces")
      ->required();
  // One value a flag, so that the path may stand behind it.
  parser
      .add_option("-f,--format", flags.formats,
                  "FORMAT or FORMAT=FILE, repeatable: " + FormatsHelp())
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

Result<std::vector<OutputSpec>> ParseOutputs(const std::vector<std::string>& formats) {
  std::vector<OutputSpec> outputs;
  for (const std::string& text : formats) {
    const size_t equals = text.find('=');
    outputs.push_back({text.substr(0, equals),
                       equals == std::string::npos ? std::string() : text.substr(equals + 1)});
    if (FindRenderer(outputs.back().format) == nullptr) {
      return Error{fmt::format("--format {}: no such format; there are: {}", text, FormatsHelp())};
    }
  }
  return outputs;
}

Result<JobAnalysis> AnalyzeWithProgress(const std::string& path) {
  ProgressLine progress;
  return AnalyzePath(path, progress.Options());
}

Result<std::vector<Trace>> LoadWithProgress(const std::string& path) {
  ProgressLine progress;
  return LoadTraces(path, progress.Options());
}

Result<void> WriteOutputs(const JobAnalysis& job, const std::vector<OutputSpec>& outputs) {
  for (const OutputSpec& output : outputs) {
    const bool to_stdout = output.file.empty() || output.file == "-";
    const RenderOptions options{.color = to_stdout && WantsColor(STDOUT_FILENO)};
    const std::string text = FindRenderer(output.format)->render(job, options);
    if (!to_stdout) {
      if (auto written = WriteFile(output.file, text); !written.ok()) return written;
      continue;
    }
    const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
    if (!written || std::fflush(stdout) != 0) {
      return Error{fmt::format("standard output: writing failed: {}", std::strerror(errno))};
    }
  }
  return {};
}

int Fail(const char* command, const std::string& message, int code) {
  fmt::print(stderr, "trainprof {}: {}\n", command, message);
  return code;
}

}  // namespace trainprof::cli
