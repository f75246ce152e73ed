#include "collectors/machine/host_sampler.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <thread>
#include <utility>

#include "collectors/machine/sampling.h"
#include "trace/base/held_signals.h"
#include "trace/recording/wire/tick_clock.h"

namespace trainprof {
namespace {

// The sampler's exit code without memory or threads; 1 is what SampleUntilStopped gives.
constexpr int kNoRoom = 2;

// To reap what was killed; what hangs in the kernel is left to init.
constexpr std::chrono::milliseconds kKillLimit{20};

recording::HostHeader HeaderOf(const SamplerSettings& settings) {
  recording::HostHeader header{};
  header.ticks_per_second = static_cast<uint32_t>(sysconf(_SC_CLK_TCK));
  header.rank = settings.rank;
  header.pid = getpid();
  header.program_pid = settings.program;
  header.cores = static_cast<uint32_t>(std::max(sysconf(_SC_NPROCESSORS_ONLN), 1L));
  header.opened_monotonic_ns = recording::MonotonicNs();
  header.opened_realtime_ns = recording::ReadClock(CLOCK_REALTIME);
  gethostname(header.host, sizeof header.host - 1);
  std::ifstream boot(settings.root / "proc/sys/kernel/random/boot_id");
  boot.getline(header.boot_id, sizeof header.boot_id);
  return header;
}

// Nobody's terminal, pipe or lock may depend on this process: only these descriptors stay.
void KeepOnly(std::vector<int> kept) {
  std::sort(kept.begin(), kept.end());
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (kept.front() > STDERR_FILENO && null >= 0) {
    for (int fd = 0; fd <= STDERR_FILENO; ++fd) dup2(null, fd);
  }
  unsigned next = static_cast<unsigned>(STDERR_FILENO) + 1;
  for (const int fd : kept) {
    const auto number = static_cast<unsigned>(fd);
    if (next < number) close_range(next, number - 1, 0);
    next = std::max(next, number + 1);
  }
  close_range(next, ~0U, 0);
}

[[noreturn]] void RunSampler(const SamplerSettings& settings, SampleLogs& logs, int stop_fd,
                             pid_t supervisor) {
  SetSignalMask(kAllSignals);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NAME, "trainprof-host");
  if (getppid() != supervisor) _exit(0);
  std::vector<int> kept = {logs.host.fd(), stop_fd};
  if (logs.stacks) kept.push_back(logs.stacks->fd());
  if (settings.memory_door >= 0) kept.push_back(settings.memory_door);
  KeepOnly(std::move(kept));
  int status = kNoRoom;
  try {
    status = SampleUntilStopped(settings, logs, stop_fd);
  } catch (...) {
    // The samples end here.
  }
  _exit(status);
}

}  // namespace

Result<HostSampler> HostSampler::Start(const SamplerSettings& settings) {
  const recording::HostHeader header = HeaderOf(settings);
  const uint64_t bound = recording::HostBound(settings.max_bytes);
  auto host = SampleLog::Create(settings.run_dir, header, bound);
  if (!host.ok()) return Error{host.error()};
  SampleLogs logs{std::move(host).value(), std::nullopt};
  std::vector<std::filesystem::path> files = {logs.host.path()};
  if (settings.stack_hz > 0) {
    auto stacks = SampleLog::Create(settings.run_dir, header, bound, recording::kStacksPrefix);
    if (!stacks.ok()) return Error{stacks.error()};
    logs.stacks.emplace(std::move(stacks).value());
    files.push_back(logs.stacks->path());
  }
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return Error{std::string("no host samples: cannot create a pipe: ") + strerror(errno)};
  }
  const pid_t supervisor = getpid();
  const pid_t pid = fork();
  if (pid == 0) RunSampler(settings, logs, ends[0], supervisor);
  const std::string cause = strerror(errno);
  close(ends[0]);
  if (pid < 0) {
    close(ends[1]);
    return Error{"no host samples: cannot fork: " + cause};
  }
  return HostSampler(pid, ends[1], std::move(files));
}

HostSampler::HostSampler(HostSampler&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      stop_pipe_(std::exchange(other.stop_pipe_, -1)),
      files_(std::move(other.files_)) {}

HostSampler& HostSampler::operator=(HostSampler&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(stop_pipe_, other.stop_pipe_);
  std::swap(files_, other.files_);
  return *this;
}

HostSampler::~HostSampler() { Stop(); }

bool HostSampler::WaitForEnd(std::chrono::milliseconds limit, int& status) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + limit;
  for (;;) {
    const pid_t ended = waitpid(pid_, &status, WNOHANG);
    if (ended == pid_ || (ended < 0 && errno != EINTR)) return true;
    if (Clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

std::string HostSampler::Stop() {
  if (pid_ <= 0) return {};
  close(stop_pipe_);
  stop_pipe_ = -1;
  int status = 0;
  const bool in_time = WaitForEnd(kStopLimit, status);
  if (!in_time) {
    kill(pid_, SIGKILL);
    WaitForEnd(kKillLimit, status);
  }
  pid_ = -1;
  if (!in_time) return "host samples: the last one is missing, as the sampler did not end in time";
  if (WIFSIGNALED(status)) {
    return std::string("host samples end early: the sampler died of signal ") +
           std::to_string(WTERMSIG(status));
  }
  if (WEXITSTATUS(status) == 0) return {};
  return WEXITSTATUS(status) == kNoRoom
             ? "host samples are incomplete: there was no memory or no thread left for them"
             : "host samples are incomplete: the disk did not take them";
}

}  // namespace trainprof
