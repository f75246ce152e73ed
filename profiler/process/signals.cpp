// Signals of the supervisor: held back while a program is profiled and taken one by one.
#include "profiler/process/signals.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "profiler/process/process_info.h"

namespace trainprof {
namespace {

// Deeper than any real chain of launchers; bounds the walk should /proc change under it.
constexpr int kMaxAncestors = 256;
// glibc's SIGRTMIN leaves out the two that it uses itself.
constexpr int kFirstRealTime = 32;

constexpr SignalBits kWatched = ~(SignalBit(SIGKILL) | SignalBit(SIGSTOP) | SignalBit(SIGTSTP) |
                                  SignalBit(SIGTTIN) | SignalBit(SIGTTOU));

bool SentByAProcess(const siginfo_t& signal) {
  const bool sent =
      signal.si_code == SI_USER || signal.si_code == SI_QUEUE || signal.si_code == SI_TKILL;
  return sent && signal.si_pid != getpid();  // so the kernel says that our own write failed
}

// From the kernel: an alarm or a descriptor's owner outlives execve.
bool WasArmedBeforeUs(int signal) {
  return signal == SIGALRM || signal == SIGVTALRM || signal == SIGPROF || signal == SIGIO ||
         signal >= kFirstRealTime;
}

}  // namespace

std::optional<siginfo_t> TakeSignal(SignalBits among, std::chrono::nanoseconds timeout) {
  if (timeout.count() < 0) timeout = timeout.zero();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout);
  const timespec limit = {static_cast<time_t>(seconds.count()),
                          static_cast<long>((timeout - seconds).count())};
  siginfo_t info = {};
  const long taken = syscall(SYS_rt_sigtimedwait, &among, &info, &limit, sizeof among);
  if (taken < 0) return std::nullopt;  // EAGAIN or EINTR
  return info;
}

SignalInbox::SignalInbox() {
  syscall(SYS_rt_sigprocmask, SIG_BLOCK, &kWatched, &inherited_mask_, sizeof kWatched);
  // With SIGCHLD ignored (some launchers leave it so) the kernel would reap the program for us and
  // its exit code would be lost.
  struct sigaction standard = {};
  standard.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &standard, &inherited_child_action_);
}

std::optional<siginfo_t> SignalInbox::Wait(std::chrono::nanoseconds timeout) {
  return TakeSignal(kWatched, timeout);
}

void SignalInbox::RestoreInherited() const {
  sigaction(SIGCHLD, &inherited_child_action_, nullptr);
  SetSignalMask(inherited_mask_);
}

bool DescendsFrom(pid_t pid, pid_t ancestor) {
  for (int depth = 0; pid > 1 && depth < kMaxAncestors; ++depth) {
    if (pid == ancestor) return true;
    const auto info = ReadProcessInfo(pid);
    if (!info) return false;
    pid = info->parent;
  }
  return false;
}

bool ShouldForward(const siginfo_t& signal, pid_t program) {
  switch (signal.si_signo) {
    case SIGCHLD:
      return false;
    case SIGCONT: {
      // `fg` continues the whole group; only a program that still sleeps needs it from us.
      const auto info = ReadProcessInfo(program);
      return info && info->state == 'T';
    }
    default:
      if (SentByAProcess(signal)) return !DescendsFrom(signal.si_pid, program);
      return signal.si_code != SI_USER && WasArmedBeforeUs(signal.si_signo);
  }
}

void Forward(const siginfo_t& signal, pid_t program) {
  if (signal.si_code == SI_QUEUE) {
    sigqueue(program, signal.si_signo, signal.si_value);
  } else {
    kill(program, signal.si_signo);
  }
}

}  // namespace trainprof
