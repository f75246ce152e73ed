#include "trace/io/side_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <thread>
#include <utility>

#include "trace/base/held_signals.h"

namespace trainprof {
namespace {

// To reap what was killed; what hangs in the kernel is left to init.
constexpr std::chrono::milliseconds kKillLimit{20};

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

[[noreturn]] void Run(const char* name, std::vector<int> kept, int stop_fd, pid_t parent,
                      const std::function<int(int)>& work) {
  SetSignalMask(kAllSignals);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NAME, name);
  if (getppid() != parent) _exit(0);
  kept.push_back(stop_fd);
  KeepOnly(std::move(kept));
  int status = SideProcess::kNoRoom;
  try {
    status = work(stop_fd);
  } catch (...) {
    // The work ends here.
  }
  _exit(status);
}

}  // namespace

Result<SideProcess> SideProcess::Start(const char* name, std::vector<int> kept,
                                       const std::function<int(int stop_fd)>& work) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return Error{std::string("cannot create a pipe: ") + strerror(errno)};
  }
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) Run(name, std::move(kept), ends[0], parent, work);
  const std::string cause = strerror(errno);
  close(ends[0]);
  if (pid < 0) {
    close(ends[1]);
    return Error{"cannot fork: " + cause};
  }
  return SideProcess(pid, ends[1]);
}

SideProcess::SideProcess(SideProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), stop_pipe_(std::exchange(other.stop_pipe_, -1)) {}

SideProcess& SideProcess::operator=(SideProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(stop_pipe_, other.stop_pipe_);
  return *this;
}

SideProcess::~SideProcess() { Stop(std::chrono::milliseconds(0)); }

bool SideProcess::WaitForEnd(std::chrono::milliseconds limit, int& status) const {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + limit;
  for (;;) {
    const pid_t ended = waitpid(pid_, &status, WNOHANG);
    if (ended == pid_ || (ended < 0 && errno != EINTR)) return true;
    if (Clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

SideProcess::End SideProcess::Stop(std::chrono::milliseconds limit) {
  if (pid_ <= 0) return {true, 0};
  close(stop_pipe_);
  stop_pipe_ = -1;
  End end;
  end.in_time = WaitForEnd(limit, end.status);
  if (!end.in_time) {
    kill(pid_, SIGKILL);
    WaitForEnd(kKillLimit, end.status);
  }
  pid_ = -1;
  return end;
}

}  // namespace trainprof
