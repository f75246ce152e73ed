// One `trainprof run`: prepare the recording, start the program, wait for it, seal, print the card.
#include "profiler/session/run_session.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <system_error>

#include "collectors/stacks/given_memory.h"
#include "collectors/stacks/python_start.h"
#include "profiler/doctor/machine.h"
#include "profiler/process/inject.h"
#include "profiler/report/text.h"
#include "profiler/session/end_card.h"
#include "profiler/session/finalise.h"
#include "profiler/session/naming.h"
#include "profiler/session/program.h"
#include "profiler/session/supervise.h"
#include "trace/base/exit_codes.h"
#include "trace/io/print.h"
#include "trace/recording/files/clock_log.h"
#include "trace/recording/files/stored_command.h"
#include "trace/recording/seal/drainer.h"
#include "trace/recording/seal/sealer.h"

#ifndef TRAINPROF_VERSION
#error "profiler/CMakeLists.txt defines TRAINPROF_VERSION"
#endif

namespace trainprof {
namespace {

// To end with the chunk that it is at.
constexpr std::chrono::milliseconds kDrainerLimit{100};
constexpr int kSkipFinalising = 2;  // Ctrl-C pressed twice

void Say(const std::string& message) { Print(stderr, "trainprof: {}\n", message); }

// A recording that is ready before the program starts.
struct Preparation {
  RunPlace place;
  recording::RunDescription run;
  std::vector<std::pair<std::string, std::string>> variables{};
  std::optional<recording::ClockLog> clocks{};
  std::optional<MemoryDoor> memory_door{};
  std::optional<HostSampler> sampler{};
  std::optional<SideProcess> drainer{};
  std::chrono::steady_clock::time_point started{};
};

// What preparing, sealing and the verdict have open at most at the same time, and some to spare.
constexpr int kNeededDescriptors = 16;

// Nothing when there are enough, else how many are free.
std::optional<int> TooFewDescriptors() {
  std::vector<int> taken;
  while (taken.size() < kNeededDescriptors) {
    const int descriptor = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
    if (descriptor < 0) break;
    taken.push_back(descriptor);
  }
  for (const int descriptor : taken) close(descriptor);
  if (taken.size() == kNeededDescriptors) return std::nullopt;
  return static_cast<int>(taken.size());
}

// The program, the sampler with its threads, the drainer, the witness, the verdict, and some for the program.
constexpr int kNeededProcesses = 9;

// Nothing when so many may be started, else how many may.
std::optional<int> TooFewProcesses() {
  std::vector<pid_t> started;
  const pid_t supervisor = getpid();
  while (started.size() < kNeededProcesses) {
    const pid_t pid = fork();
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != supervisor) _exit(0);  // it died before the line above
      for (;;) pause();
    }
    if (pid < 0) break;
    started.push_back(pid);
  }
  for (const pid_t pid : started) kill(pid, SIGKILL);
  for (const pid_t pid : started) {
    while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  if (started.size() == kNeededProcesses) return std::nullopt;
  return static_cast<int>(started.size());
}

// With standard descriptors closed (`2>&-`) the first files that we open would take their numbers
// and our messages would go into the recording. The placeholders close when the program starts.
void OccupyStandardDescriptors() {
  for (;;) {
    const int placeholder = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (placeholder < 0) return;
    if (placeholder > STDERR_FILENO) {
      close(placeholder);
      return;
    }
  }
}

int64_t UnixNow() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

recording::RunDescription Describe(const RunSettings& settings) {
  recording::RunDescription run;
  run.command = recording::StoredCommand(settings.program, settings.keep_command_line);
  run.trainprof_version = TRAINPROF_VERSION;
  char host[256] = {};
  if (gethostname(host, sizeof host - 1) == 0) run.host = host;
  std::error_code error;
  run.working_directory = std::filesystem::current_path(error).string();
  run.collector_options = settings.collector_options;
  run.max_bytes = settings.max_bytes;
  run.shared = settings.share;
  run.start_unix_ns = UnixNow();
  return run;
}

// What becomes of a program that cannot be recorded.
enum class Instead { kSupervise, kBecomeProgram, kDoNotStart };

// Nothing is recorded. Where the program runs nevertheless, an earlier recording there would be
// taken for its own.
void GiveUp(RunPlace& place, bool program_runs) {
  if (program_runs) KeepRunDirectory(place);
  ReleaseRunDirectory(place);
}

// What the program is recorded with, or why it is not.
Result<std::filesystem::path> UsableCollector(Instead& instead) {
  if (const auto holder = InjectionHolder()) {
    return Error{"NVTX is held by " + *holder + ": end that tool, or unset the variable"};
  }
  if (const auto free = TooFewDescriptors()) {
    return Error{fmt::format(
        "it needs {} free file descriptors and finds {}: raise the limit, see ulimit -n",
        kNeededDescriptors, *free)};
  }
  if (const auto free = TooFewProcesses()) {
    instead = Instead::kBecomeProgram;
    return Error{
        fmt::format("it needs {} more processes and can start {}: raise the limit, see ulimit -u",
                    kNeededProcesses, *free)};
  }
  return FindCollector();
}

// The library lies in the interpreter from its beginning, and asks it for our hooks.
void AddPreload(const std::filesystem::path& collector, Preparation& preparation) {
  if (collector.string().find_first_of(": ") != std::string::npos)
    return;  // LD_PRELOAD splits there
  const char* users = std::getenv(kPreloadVariable);
  const bool has_own = users != nullptr && *users != 0;
  preparation.variables.emplace_back(
      kPreloadVariable, (has_own ? std::string(users) + ":" : "") + collector.string());
}

// Python finds our hooks before the user's own folders, which stay.
void AddPython(const std::filesystem::path& collector, const RunSettings& settings,
               Preparation& preparation) {
  const std::filesystem::path folder = PythonFolderOf(collector);
  if (folder.empty()) return;
  const char* users = std::getenv(kPythonPathVariable);
  const bool has_own = users != nullptr && *users != 0;
  preparation.variables.emplace_back(kPythonPathVariable,
                                     folder.string() + (has_own ? std::string(":") + users : ""));
  preparation.variables.emplace_back(kPythonFolderVariable, folder.string());
  if (!OptionThatHidesHooks(settings.program).empty()) AddPreload(collector, preparation);
}

// Processes hand in their memory where our sampler, which is none of their ancestors, may not read it.
void AddMemoryDoor(const RunSettings& settings, Preparation& preparation) {
  if (settings.sample_hz <= 0 || settings.stack_hz <= 0 || MayReadSiblings()) return;
  preparation.memory_door = MemoryDoor::Open();
  if (!preparation.memory_door) return;
  preparation.variables.emplace_back(recording::kEnvMemory, preparation.memory_door->name());
}

// What operators are told through has one listener, too.
void AddOperators(const std::filesystem::path& collector, Preparation& preparation) {
  if (const auto holder = InjectionHolder(kIttVariable)) {
    preparation.run.warnings.push_back("--ops: operators are not recorded: ITT is held by " +
                                       *holder + ": end that tool, or unset the variable");
    return;
  }
  preparation.variables.emplace_back(kIttVariable, collector.string());
  // Without any group ITT gives no function at all; tasks come with every one.
  preparation.variables.emplace_back("INTEL_ITTNOTIFY_GROUPS", "structure");
  preparation.variables.emplace_back("TRAINPROF_OPS", "1");
}

// The error says why the program cannot be recorded.
Result<Preparation> Prepare(const RunSettings& settings, Instead& instead) {
  if (InsideAnotherRun()) {
    return Error{"inside another trainprof run, which records this program too"};
  }
  const auto collector = UsableCollector(instead);
  // Also where nothing can be recorded a folder that the user named must not hold an earlier run.
  if (!collector.ok() && settings.output.empty()) return Error{collector.error()};
  recording::RunDescription run = Describe(settings);
  ClaimOutcome claimed = ClaimRunDirectory({settings.output, settings.force}, run);
  if (claimed.refused) {
    instead = Instead::kDoNotStart;
    return Error{claimed.error + ". The program was not started"};
  }
  if (!collector.ok()) {
    if (claimed.place) GiveUp(*claimed.place, !settings.strict);
    return Error{collector.error()};
  }
  if (!claimed.place) return Error{claimed.error};
  Preparation preparation{std::move(*claimed.place), std::move(run)};
  if (!preparation.place.note.empty()) preparation.run.warnings.push_back(preparation.place.note);
  preparation.variables = {
      {recording::kEnvRunDirectory, preparation.place.directory.string()},
      {recording::kEnvOptions, settings.collector_options},
      {kNvtxInjectionVariable, collector.value().string()},
  };
  AddPython(collector.value(), settings, preparation);
  AddMemoryDoor(settings, preparation);
  if (settings.operators) AddOperators(collector.value(), preparation);
  if (settings.memory) preparation.variables.emplace_back("TRAINPROF_MEMORY", "1");
  if (const auto holder = InjectionHolder(kCudaInjectionVariable)) {
    preparation.run.warnings.push_back("GPU work is not recorded: CUDA is held by " + *holder +
                                       ": end that tool, or unset the variable");
  } else {
    preparation.variables.emplace_back(kCudaInjectionVariable, collector.value().string());
    // torch would end CUPTI for all, and not only for itself, after a profile of its own.
    preparation.variables.emplace_back("TEARDOWN_CUPTI", "0");
  }
  // One log a folder: the ranks of one machine share its clock, and other machines' are not used.
  if (preparation.place.joined) return preparation;
  auto clocks = recording::ClockLog::Open(preparation.place.directory);
  if (clocks.ok()) {
    preparation.clocks = std::move(clocks).value();
  } else {
    preparation.run.warnings.push_back(clocks.error());
  }
  return preparation;
}

// What the user can only change before the program runs.
void WarnOfDaemon(const RunSettings& settings) {
  if (settings.quiet || std::getenv("KINETO_USE_DAEMON") == nullptr) return;
  Say("KINETO_USE_DAEMON is set: where that daemon asks torch for a profile, the GPU work that comes "
      "after is lost to the recording. Unset it");
}

// From the program's start on. Its failure costs the samples, nothing else.
void StartSampler(const RunSettings& settings, pid_t program, Preparation& preparation) {
  if (settings.sample_hz <= 0) return;
  SamplerSettings sampling;
  sampling.run_dir = preparation.place.directory;
  sampling.program = program;
  sampling.rank = preparation.place.rank;
  sampling.hz = settings.sample_hz;
  sampling.stack_hz = settings.stack_hz;
  sampling.max_bytes = settings.max_bytes;
  if (preparation.memory_door) sampling.memory_door = preparation.memory_door->fd();
  auto sampler = HostSampler::Start(sampling);
  if (sampler.ok()) {
    preparation.sampler.emplace(std::move(sampler).value());
  } else {
    preparation.run.warnings.push_back(sampler.error());
  }
}

// Its failure costs nothing but room: what is not drained is recorded as well.
void StartDrainer(Preparation& preparation) {
  auto drainer = SideProcess::Start("trainprof-drain", {}, [&](int stop_fd) {
    return recording::DrainUntilStopped(preparation.place.directory, stop_fd);
  });
  if (drainer.ok()) preparation.drainer.emplace(std::move(drainer).value());
}

// The files of its samples.
std::vector<std::filesystem::path> StopSampler(Preparation& preparation) {
  if (!preparation.sampler) return {};
  if (const std::string trouble = preparation.sampler->Stop(); !trouble.empty()) {
    preparation.run.warnings.push_back(trouble);
  }
  return preparation.sampler->files();
}

std::chrono::milliseconds VerdictTime(const ProgramEnd& end,
                                      std::chrono::steady_clock::time_point ended) {
  if (!end.asked_to_end) return kVerdictLimit;
  return kFinaliseLimit - std::chrono::duration_cast<std::chrono::milliseconds>(
                              std::chrono::steady_clock::now() - ended);
}

bool HasNothingToJudge(const RecordingFacts& facts) {
  return facts.processes == 0 && facts.without_hooks.empty();
}

void AddVerdict(CardContents& card, const RunSettings& settings,
                std::chrono::steady_clock::time_point ended, SignalInbox& inbox) {
  if (!settings.verdict || HasNothingToJudge(card.facts)) return;
  const auto limit = VerdictTime(card.end, ended);
  if (card.facts.bytes > kVerdictMaxRecordingBytes) {
    card.no_verdict_reason =
        fmt::format("{} take long to analyse; run the report below", HumanBytes(card.facts.bytes));
  } else if (limit.count() <= 0) {
    card.no_verdict_reason = "the run was asked to end; run the report below";
  } else {
    const IsolatedResult verdict = AskVerdict(settings.verdict, card.directory, limit, inbox);
    (verdict.ok ? card.verdict : card.no_verdict_reason) = verdict.text;
  }
}

// Seals, prints the card. False when something could not be recorded.
bool Finalise(const RunSettings& settings, Preparation& preparation, const ProgramEnd& end,
              SignalInbox& inbox) {
  const auto ended = std::chrono::steady_clock::now();
  recording::RunDescription& run = preparation.run;
  run.end_unix_ns = UnixNow();
  run.exit_code = end.exit_code;
  if (end.signal != 0) run.signal = end.signal;
  const std::string folder = ShellQuoted(preparation.place.directory.lexically_normal().string());
  const bool show = !settings.quiet && preparation.place.rank <= 0;
  if (end.interrupts >= kSkipFinalising) {
    if (show)
      Say("interrupted twice: the recording is left unsealed, and can be read as it is: trainprof "
          "report " +
          folder);
    return true;
  }
  if (preparation.clocks) preparation.clocks->Append();
  const std::vector<std::filesystem::path> sampler_files = StopSampler(preparation);
  if (preparation.drainer) preparation.drainer->Stop(kDrainerLimit);
  const SealOutcome outcome = Seal(preparation.place, run, sampler_files, end.interrupts, inbox);
  if (!outcome.sealed) {
    if (show)
      Say("sealing stopped (" + outcome.error +
          "): the recording is left unsealed, and can be read as it is: trainprof report " +
          folder);
    return outcome.interrupted;
  }
  if (show) {
    CardContents card;
    card.program = run.command;
    card.end = end;
    card.wall_time = ended - preparation.started;
    card.directory = preparation.place.directory;
    card.facts = outcome.facts;
    card.sampled = !sampler_files.empty();
    card.notes = run.warnings;
    if (card.facts.processes == 0 && !end.asked_to_end) {
      const std::string trouble = DriverTrouble(inbox);
      if (!trouble.empty()) card.notes.push_back("GPU: " + trouble);
    }
    AddVerdict(card, settings, ended, inbox);
    const bool color = WantsColor(STDERR_FILENO);
    const std::string text = RenderEndCard(card, color);
    PrintText(stderr, text, color);
  }
  return outcome.facts.failed_processes == 0 && outcome.facts.failure.empty();
}

// In our place, so that the program has every process that there may be.
int RunUnrecorded(const RunSettings& settings, const Surroundings& surroundings) {
  // A signal that waits goes with us; that our own children have ended concerns nobody.
  while (TakeSignal(SignalBits{1} << (SIGCHLD - 1), {})) {
  }
  const StartedProgram failed = BecomeProgram(settings.program, EnvironmentWith({}), surroundings);
  Say(failed.error);
  return failed.exit_code;
}

}  // namespace

int RunSession(const RunSettings& settings) {
  SignalInbox inbox;
  const Inherited inherited;
  const Surroundings surroundings{inbox, inherited};
  OccupyStandardDescriptors();
  Instead instead = Instead::kSupervise;
  auto prepared = Prepare(settings, instead);
  if (!prepared.ok()) {
    Say((instead == Instead::kDoNotStart ? "" : "not recording: ") + prepared.error());
    if (settings.strict || instead == Instead::kDoNotStart) return kExitRunFailed;
    if (instead == Instead::kBecomeProgram) return RunUnrecorded(settings, surroundings);
  }
  std::optional<Preparation> preparation;
  if (prepared.ok()) preparation = std::move(prepared).value();

  const auto environment =
      EnvironmentWith(preparation ? preparation->variables : decltype(preparation->variables){});
  if (preparation) WarnOfDaemon(settings);
  if (preparation) preparation->started = std::chrono::steady_clock::now();
  const StartedProgram program = StartProgram(settings.program, environment, surroundings);
  if (program.pid < 0) {
    const bool runs_unrecorded = program.no_process && !settings.strict;
    if (preparation) GiveUp(preparation->place, runs_unrecorded);
    if (runs_unrecorded) {
      Say("not recording: " + program.error);
      return RunUnrecorded(settings, surroundings);
    }
    Say(program.error);
    return program.exit_code;
  }
  if (preparation) {
    KeepRunDirectory(preparation->place);
    preparation->run.program_pid = program.pid;
    StartSampler(settings, program.pid, *preparation);
    StartDrainer(*preparation);
  }
  const ProgramEnd end = Supervise(program.pid, inbox, [&] {
    if (preparation && preparation->clocks) preparation->clocks->Append();
  });
  if (!preparation) return end.exit_code;
  const bool recorded = Finalise(settings, *preparation, end, inbox);
  int said = kExitOk;
  if (end.interrupts >= kSkipFinalising) {
    // Nobody waits for more. A program that ended well nevertheless was not judged.
    said = settings.afterwards && settings.strict ? kExitRunFailed : kExitOk;
  } else if (settings.afterwards && preparation->place.rank <= 0) {
    inbox.RestoreInherited();
    said = settings.afterwards(preparation->place.directory);
  }
  if (end.exit_code != 0) return end.exit_code;
  if (said != kExitOk) return said;
  return settings.strict && !recorded ? kExitRunFailed : kExitOk;
}

}  // namespace trainprof
