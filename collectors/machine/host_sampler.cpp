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

// Nobody's terminal, pipe or lock may depend on this process: only the two descriptors stay.
void KeepOnly(int first, int second) {
  const int low = std::min(first, second);
  const int high = std::max(first, second);
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (low > STDERR_FILENO && null >= 0) {
    for (int fd = 0; fd <= STDERR_FILENO; ++fd) dup2(null, fd);
  }
  const auto first_extra = static_cast<unsigned>(STDERR_FILENO) + 1;
  if (first_extra < static_cast<unsigned>(low)) {
    close_range(first_extra, static_cast<unsigned>(low) - 1, 0);
  }
  if (low + 1 < high) {
    close_range(static_cast<unsigned>(low) + 1, static_cast<unsigned>(high) - 1, 0);
  }
  close_range(static_cast<unsigned>(high) + 1, ~0U, 0);
}

[[noreturn]] void RunSampler(const SamplerSettings& settings, SampleLog& log, int stop_fd,
                             pid_t supervisor) {
  SetSignalMask(kAllSignals);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NAME, "trainprof-host");
  if (getppid() != supervisor) _exit(0);
  KeepOnly(log.fd(), stop_fd);
  int status = kNoRoom;
  try {
    status = SampleUntilStopped(settings, log, stop_fd);
  } catch (...) {
    // The samples end here.
  }
  _exit(status);
}

}  // namespace

Result<HostSampler> HostSampler::Start(const SamplerSettings& settings) {
  auto log = SampleLog::Create(settings.run_dir, HeaderOf(settings),
                               recording::HostBound(settings.max_bytes));
  if (!log.ok()) return Error{log.error()};
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return Error{std::string("no host samples: cannot create a pipe: ") + strerror(errno)};
  }
  const pid_t supervisor = getpid();
  const pid_t pid = fork();
  if (pid == 0) RunSampler(settings, log.value(), ends[0], supervisor);
  const std::string cause = strerror(errno);
  close(ends[0]);
  if (pid < 0) {
    close(ends[1]);
    return Error{"no host samples: cannot fork: " + cause};
  }
  return HostSampler(pid, ends[1], log.value().path());
}

HostSampler::HostSampler(HostSampler&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      stop_pipe_(std::exchange(other.stop_pipe_, -1)),
      file_(std::move(other.file_)) {}

HostSampler& HostSampler::operator=(HostSampler&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(stop_pipe_, other.stop_pipe_);
  std::swap(file_, other.file_);
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
