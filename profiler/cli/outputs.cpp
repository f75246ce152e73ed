#include "profiler/cli/outputs.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "profiler/cli/command.h"
#include "profiler/report/renderer.h"
#include "profiler/report/text.h"

namespace trainprof::cli {
namespace {

// Set by Ctrl-C while a trace is loaded.
std::atomic<bool> g_interrupted{false};

// While it lives, Ctrl-C asks the loading to end; a second one ends the program at once. An ignored
// SIGINT (nohup, a background job) stays ignored.
class InterruptGuard {
 public:
  InterruptGuard() {
    if (sigaction(SIGINT, nullptr, &before_) != 0 || before_.sa_handler == SIG_IGN) return;
    struct sigaction ask {};
    ask.sa_handler = [](int) { g_interrupted.store(true); };
    ask.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
    installed_ = sigaction(SIGINT, &ask, nullptr) == 0;
  }
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  ~InterruptGuard() {
    if (installed_) sigaction(SIGINT, &before_, nullptr);
  }

 private:
  struct sigaction before_ {};
  bool installed_ = false;
};

// One line on a terminal's standard error, rewritten in place and gone at the end.
class ProgressLine {
 public:
  ProgressLine() : active_(isatty(STDERR_FILENO) != 0) {}
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine() {
    if (!shown_) return;
    fmt::print(stderr, "\r\033[K");
    std::fflush(stderr);
  }
  LoadOptions Options() {
    LoadOptions options;
    options.cancel = &g_interrupted;
    options.notice = [](const std::string& text) { fmt::print(stderr, "trainprof: {}\n", text); };
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
    // A line that wraps could not be rewritten.
    if (known) line = line.substr(0, size.ws_col - 1u);
    fmt::print(stderr, "\r\033[K{}", line);
    std::fflush(stderr);
    shown_ = true;
  }

  bool active_;
  bool shown_ = false;
  Clock::time_point last_ = Clock::now();
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
  const InterruptGuard guard;
  ProgressLine progress;
  return AnalyzePath(path, progress.Options());
}

Result<std::vector<Trace>> LoadWithProgress(const std::string& path) {
  const InterruptGuard guard;
  ProgressLine progress;
  return LoadTraces(path, progress.Options());
}

Result<std::vector<std::string>> VisitWithProgress(
    const std::string& path, const std::function<Result<void>(Trace trace)>& visit) {
  const InterruptGuard guard;
  ProgressLine progress;
  return VisitTraces(path, progress.Options(), visit);
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
  return g_interrupted.load() ? kExitInterrupted : code;
}

}  // namespace trainprof::cli
