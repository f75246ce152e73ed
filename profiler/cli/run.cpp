// trainprof run: records a program while it runs.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "profiler/cli/check.h"
#include "profiler/cli/commands.h"
#include "profiler/cli/outputs.h"
#include "profiler/gate/baseline.h"
#include "profiler/gate/policy.h"
#include "profiler/report/for_people.h"
#include "profiler/report/renderer.h"
#include "profiler/report/text.h"
#include "profiler/session/run_session.h"
#include "trace/base/result.h"
#include "trace/io/print.h"

namespace trainprof::cli {
namespace {

constexpr char kRunExamples[] = R"(Examples:
  trainprof run -- python train.py --epochs 1
  trainprof run -- torchrun --nproc-per-node 8 train.py
  torchrun --nproc-per-node 8 --no-python trainprof run -- python train.py
  trainprof run --steps 100:110 -- ./train         record ten steps
  trainprof run --delay 60 --duration 30 -- ./train
  trainprof run --capture nvtx:validation -- ./train
  trainprof run --check -- python train.py         the gate, in one
  trainprof run --report markdown=report.md -- python train.py

The program's output and exit code stay its own (128 + N after signal N).
125: trainprof failed before the program started, or DIR is taken; 126, 127: the
program cannot be executed, was not found. A failure to record changes that only
with --strict.
A first Ctrl-C is the program's; a second one skips sealing the recording.
Any other signal sent to trainprof run reaches the program, and ends it alone.
With too few file descriptors or processes left the program runs unrecorded;
with --strict it does not start.
With --check the exit code of a program that ends with 0 is that of trainprof check:
0 passed, 1 failed, 3 inconclusive; nothing recorded is 125, as with --strict.)";

// Longest --delay or --duration: past a year it is a slip, and milliseconds still fit anywhere.
constexpr double kMaxSeconds = 366.0 * 24 * 3600;

struct RunFlags {
  std::string output;
  bool force = false;
  bool share = false;
  bool no_command_line = false;
  std::string steps;
  std::string delay;
  std::string duration;
  std::string capture;
  std::string max_size;
  std::string cuda_graphs = "node";
  std::string gpu_buffers;
  bool no_gpu = false;
  bool ops = false;
  bool memory = false;
  double sample_hz = kDefaultSampleHz;
  double stack_hz = kDefaultStackHz;
  bool full = false;
  bool strict = false;
  bool quiet = false;
  bool no_report = false;
  bool check = false;
  CheckFlags gate;
  std::vector<std::string> reports;
};

// "1.5" or "90s", "500ms", "2m", "1h" in milliseconds.
Result<uint64_t> ParseMilliseconds(const std::string& flag, const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const std::string unit = end;
  const double scale = unit.empty() || unit == "s" ? 1
                       : unit == "ms"              ? 1e-3
                       : unit == "m"               ? 60
                       : unit == "h"               ? 3600
                                                   : -1;
  const double seconds = number * scale;
  if (end == text.c_str() || scale < 0 || !(seconds >= 0) || seconds > kMaxSeconds) {
    return Error{fmt::format("{} {}: give seconds, e.g. 30, 1.5, 500ms, 2m", flag, text)};
  }
  return static_cast<uint64_t>(std::llround(seconds * 1000));
}

// "2G", "512M", "100K", "4096" (powers of 1024) in bytes.
Result<uint64_t> ParseSize(const std::string& text) {
  char* end = nullptr;
  errno = 0;
  const double number = std::strtod(text.c_str(), &end);
  std::string unit = end;
  if (unit.size() > 1 && (unit.substr(1) == "B" || unit.substr(1) == "iB")) unit.resize(1);
  const std::string units = "KMGT";
  double scale = unit.empty() || unit == "B" ? 1 : -1;
  if (unit.size() == 1) {
    const size_t at = units.find(static_cast<char>(std::toupper(unit[0])));
    if (at != std::string::npos) scale = std::pow(1024.0, static_cast<double>(at + 1));
  }
  const double bytes = number * scale;
  if (end == text.c_str() || scale < 0 || !(bytes >= 1) || bytes > 9e18) {
    return Error{fmt::format("--max-size {}: give a size, e.g. 500M, 2G", text)};
  }
  return static_cast<uint64_t>(bytes);
}

// "100:110" -> itself, checked.
Result<std::string> ParseSteps(const std::string& text) {
  const auto number = [](const std::string& digits) -> long long {
    const bool plain = !digits.empty() && digits.size() <= 15 &&
                       digits.find_first_not_of("0123456789") == std::string::npos;
    return plain ? std::stoll(digits) : -1;
  };
  const size_t colon = text.find(':');
  const long long first = number(text.substr(0, colon));
  const long long last = colon == std::string::npos ? -1 : number(text.substr(colon + 1));
  if (first < 0 || last <= first) {
    return Error{fmt::format("--steps {}: give FIRST:END with END past FIRST, e.g. 100:110", text)};
  }
  return fmt::format("{}:{}", first, last);
}

Result<std::string> ParseCapture(const std::string& text) {
  const std::string prefix = "nvtx:";
  if (text.rfind(prefix, 0) != 0 || text.size() == prefix.size()) {
    return Error{fmt::format("--capture {}: give nvtx:NAME, NAME being a range's name", text)};
  }
  if (text.find(';') != std::string::npos) {
    return Error{fmt::format("--capture {}: a name with ';' cannot be asked for", text)};
  }
  return text.substr(prefix.size());
}

// An absolute path, of a folder that is there.
Result<std::string> ParseFolderOfBuffers(const std::string& text) {
  constexpr size_t kMostBytes = 127;  // slot_file.h
  std::error_code error;
  const std::string folder = std::filesystem::canonical(text, error);
  if (error || !std::filesystem::is_directory(folder, error)) {
    return Error{fmt::format("--gpu-buffers {}: no such folder", text)};
  }
  if (folder.size() > kMostBytes || folder.find(';') != std::string::npos) {
    return Error{fmt::format("--gpu-buffers {}: give a path of at most {} characters, without ';'",
                             text, kMostBytes)};
  }
  return folder;
}

// TRAINPROF_OPTIONS from the flags.
Result<std::string> CollectorOptions(const RunFlags& flags) {
  std::string options;
  const auto add = [&](const std::string& option) {
    options += (options.empty() ? "" : ";") + option;
  };
  if (!flags.steps.empty()) {
    auto steps = ParseSteps(flags.steps);
    if (!steps.ok()) return steps;
    add("steps=" + steps.value());
  }
  if (!flags.delay.empty()) {
    auto delay = ParseMilliseconds("--delay", flags.delay);
    if (!delay.ok()) return Error{delay.error()};
    add(fmt::format("delay_ms={}", delay.value()));
  }
  if (!flags.duration.empty()) {
    auto duration = ParseMilliseconds("--duration", flags.duration);
    if (!duration.ok()) return Error{duration.error()};
    add(fmt::format("duration_ms={}", duration.value()));
  }
  if (!flags.capture.empty()) {
    auto capture = ParseCapture(flags.capture);
    if (!capture.ok()) return capture;
    add("capture=" + capture.value());
  }
  if (flags.no_gpu) add("gpu=off");
  if (flags.cuda_graphs == "graph") add("graphs=graph");
  if (!flags.gpu_buffers.empty()) {
    auto folder = ParseFolderOfBuffers(flags.gpu_buffers);
    if (!folder.ok()) return folder;
    add("buffers=" + folder.value());
  }
  if (flags.full) add("full=1");
  if (flags.no_command_line) add("command=off");
  return options;
}

// What the end card says about the recording.
Result<std::string> CardVerdict(const std::filesystem::path& run_dir) {
  const Result<JobAnalysis> job = AnalyzePath(run_dir, {});
  if (!job.ok()) return Error{job.error()};
  return RenderCard(ForPeople(job.value()), {.color = WantsColor(STDERR_FILENO)});
}

Result<RunSettings> SettingsOf(const RunFlags& flags, const ProgramArguments& program) {
  RunSettings settings;
  settings.program = program;
  settings.output = flags.output;
  settings.force = flags.force;
  settings.share = flags.share;
  settings.keep_command_line = !flags.no_command_line;
  settings.sample_hz = flags.sample_hz;
  settings.stack_hz = flags.stack_hz;
  settings.operators = flags.ops;
  settings.memory = flags.memory;
  settings.strict = flags.strict;
  settings.quiet = flags.quiet;
  if (!flags.no_report) settings.verdict = CardVerdict;
  if (flags.force && flags.output.empty()) {
    return Error{"--force goes with -o DIR; without it each run gets a folder of its own"};
  }
  auto options = CollectorOptions(flags);
  if (!options.ok()) return Error{options.error()};
  settings.collector_options = options.value();
  if (flags.full) settings.max_bytes = UINT64_MAX;
  if (!flags.max_size.empty()) {
    auto size = ParseSize(flags.max_size);
    if (!size.ok()) return Error{size.error()};
    settings.max_bytes = size.value();
  }
  return settings;
}

// "markdown" -> beside the recording: "trainprof-20261120T101500Z.markdown"
std::vector<std::string> NamedReports(const std::vector<std::string>& reports,
                                      const std::filesystem::path& run_dir) {
  std::vector<std::string> named = reports;
  for (std::string& report : named) {
    if (report.find('=') != std::string::npos) continue;
    report +=
        fmt::format("={}.{}", (run_dir.lexically_normal() / "").parent_path().string(), report);
  }
  return named;
}

// The reports that were asked for, and the gate's word.
int AfterRun(const RunFlags& flags, const std::filesystem::path& run_dir) {
  CheckFlags gate = flags.gate;
  gate.paths = {run_dir.string()};
  gate.formats = NamedReports(flags.reports, run_dir);
  gate.beside_a_program = true;
  int code = kExitOk;
  if (flags.check) {
    code = RunCheck(gate, "run --check");
  } else {
    const auto outputs = ParseOutputs(gate.formats);
    EndOnCtrlC("run", run_dir.string());
    const auto job = AnalyzeWithProgress(run_dir.string());
    if (!job.ok()) return Fail("run", job.error(), kExitOk);
    const auto written = WriteOutputs(job.value(), outputs.value());
    if (!written.ok()) return Fail("run", written.error(), kExitOk);
  }
  if (flags.quiet) return code;
  for (const std::string& report : gate.formats) {
    const std::string file = report.substr(report.find('=') + 1);
    if (std::filesystem::exists(file)) Print(stderr, "trainprof: report: {}\n", file);
  }
  return code;
}

// Before the program starts: what could only fail when it has ended.
Result<void> CheckWhatFollows(const RunFlags& flags) {
  const CheckFlags& gate = flags.gate;
  const bool has_gate_flag = !gate.config.empty() || !gate.baseline.empty() || gate.changes.Any() ||
                             gate.allow_inconclusive;
  if (has_gate_flag && !flags.check) {
    return Error{
        "--config, --baseline, --budget, --fail-on and --allow-inconclusive go with --check"};
  }
  const auto outputs = ParseOutputs(flags.reports);
  if (!outputs.ok()) return Error{outputs.error()};
  for (const OutputSpec& output : outputs.value()) {
    if (output.file == "-") {
      return Error{fmt::format(
          "--report {0}=-: standard output is the program's; give a file, as in --report "
          "{0}=report.{0}",
          output.format)};
    }
  }
  if (const auto writable = CheckOutputs(outputs.value()); !writable.ok()) return writable;
  if (!flags.check) return {};
  const auto policy = FindPolicy(gate.config, gate.changes);
  if (!policy.ok()) return Error{policy.error()};
  if (gate.baseline.empty()) return {};
  const auto baseline = ReadBaseline(gate.baseline);
  return baseline.ok() ? Result<void>() : Error{baseline.error()};
}

int Run(const RunFlags& flags, const ProgramArguments& program) {
  auto settings = SettingsOf(flags, program);
  const auto follows = CheckWhatFollows(flags);
  if (!settings.ok() || !follows.ok()) {
    Print(stderr, "trainprof run: {}\n", settings.ok() ? follows.error() : settings.error());
    return kExitRunFailed;
  }
  // A gate does not pass for want of a recording.
  if (flags.check) settings.value().strict = true;
  if (flags.check || !flags.reports.empty()) {
    settings.value().afterwards = [&flags](const std::filesystem::path& run_dir) {
      try {
        return AfterRun(flags, run_dir);
      } catch (const std::exception& error) {  // the program's exit code stays its own
        return Fail("run", error.what(), flags.check ? kExitInternal : kExitOk);
      }
    };
  }
  return RunSession(settings.value());
}

Action SetUpRun(CLI::App& parser) {
  // Shared: the parser writes to the flags, the action reads them afterwards.
  auto flags = std::make_shared<RunFlags>();
  parser
      .add_option("-o,--output", flags->output,
                  "Folder of the recording, new or empty (default trainprof-<job or utc>)")
      ->type_name("DIR");
  parser.add_flag("--force", flags->force, "Replace an earlier recording in DIR, nothing else");
  parser.add_flag("--share", flags->share, "Your group may read the recording, too");
  parser.add_flag("--no-command-line", flags->no_command_line,
                  "Store the program's name, not its arguments (values of arguments that look like "
                  "secrets are left out anyway)");
  parser.add_option("--steps", flags->steps, "Record only steps FIRST to END, e.g. 100:110")
      ->type_name("FIRST:END");
  parser.add_option("--delay", flags->delay, "Record nothing in the first SECONDS")
      ->type_name("SECONDS");
  parser
      .add_option("--duration", flags->duration, "Record SECONDS from there; the program runs on")
      ->type_name("SECONDS");
  parser.add_option("--capture", flags->capture, "Record while the range nvtx:NAME is open")
      ->type_name("nvtx:NAME");
  parser
      .add_option("--cuda-graphs", flags->cuda_graphs,
                  "Record each node of a CUDA graph (default), or a launch as one: cheaper")
      ->check(CLI::IsMember({"node", "graph"}))
      ->type_name("node|graph");
  parser
      .add_option("--gpu-buffers", flags->gpu_buffers,
                  "Folder of the GPU's records until they are rows (default: beside the recording; "
                  "/dev/shm where that is on a network file system)")
      ->type_name("DIR");
  parser.add_flag("--no-gpu", flags->no_gpu, "Record the host alone");
  parser.add_flag("--ops", flags->ops,
                  "Record each operator of torch and each call of a module, too: about half a "
                  "microsecond each, which the report sums up");
  parser.add_flag(
      "--memory", flags->memory,
      "Record what a torch program holds at the end of each step and, over eight steps, "
      "which lines keep memory; the report says what it cost");
  parser
      .add_option("--max-size", flags->max_size, "Bound of the recording, e.g. 500M (default 2G)")
      ->type_name("SIZE");
  parser
      .add_option(
          "--sample-hz", flags->sample_hz,
          "Samples a second of CPUs, memory, disks and GPUs (default 10); 0: none, nor stacks")
      ->check(CLI::Range(0.0, kMostSampleHz))
      ->type_name("N");
  parser
      .add_option("--stack-hz", flags->stack_hz,
                  "Samples a second of what each Python thread does, without stopping it (default "
                  "50); 0: none")
      ->check(CLI::Range(0.0, kMostStackHz))
      ->type_name("N");
  parser.add_flag("--full", flags->full, "Record everything: GPU detail throughout, no bound");
  parser.add_flag("--strict", flags->strict, "A failure to record is a failure: exit code 125");
  parser.add_flag("-q,--quiet", flags->quiet, "No card at the end");
  parser.add_flag("--no-report", flags->no_report, "No verdict in the card: numbers only");
  parser.add_flag("--check", flags->check,
                  "Then check the recording, as trainprof check does: its exit code is the run's");
  AddGateFlags(parser, flags->gate);
  parser
      .add_option(
          "--report", flags->reports,
          "Then write the report, repeatable: FORMAT=FILE, or FORMAT alone for a file beside the "
          "recording; formats: trainprof help report")
      ->type_name("FORMAT")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  return [flags](const ProgramArguments& program) { return Run(*flags, program); };
}

}  // namespace

Command RunCommand() {
  return {"run", "record a program while it runs", kRunExamples, SetUpRun, kExitRunFailed, true};
}

}  // namespace trainprof::cli
