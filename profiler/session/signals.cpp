// Signals of the supervisor: held back while a program is profiled and taken one by one.
#include "profiler/session/signals.h"

#include "profiler/session/process_info.h"

namespace trainprof {
namespace {

// Deeper than any real chain of launchers; bounds the walk should /proc change under it.
constexpr int kMaxAncestors = 256;

constexpr int kWatched[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM, SIGUSR1,
                            SIGUSR2, SIGCONT, SIGCHLD, SIGPIPE, SIGXFSZ};

}  // namespace

SignalInbox::SignalInbox() {
  sigemptyset(&watched_);
  for (const int signal : kWatched) sigaddset(&watched_, signal);
  sigprocmask(SIG_BLOCK, &watched_, &inherited_mask_);
  // With SIGCHLD ignored (some launchers leave it so) the kernel would reap the program for us and
  // its exit code would be lost.
  struct sigaction standard = {};
  standard.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &standard, &inherited_child_action_);
}

std::optional<siginfo_t> SignalInbox::Wait(std::chrono::nanoseconds timeout) {
  if (timeout.count() < 0) timeout = timeout.zero();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout);
  const timespec limit = {static_cast<time_t>(seconds.count()),
                          static_cast<long>((timeout - seconds).count())};
  siginfo_t info = {};
  if (sigtimedwait(&watched_, &info, &limit) < 0) return std::nullopt;  // EAGAIN or EINTR
  return info;
}

void SignalInbox::RestoreInherited() const {
  sigaction(SIGCHLD, &inherited_child_action_, nullptr);
  sigprocmask(SIG_SETMASK, &inherited_mask_, nullptr);
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
    case SIGHUP:
    case SIGINT:
    case SIGQUIT:
    case SIGTERM:
    case SIGUSR1:
    case SIGUSR2: {
      const bool from_a_process =
          signal.si_code == SI_USER || signal.si_code == SI_QUEUE || signal.si_code == SI_TKILL;
      return from_a_process && !DescendsFrom(signal.si_pid, program);
    }
    case SIGCONT: {
      // `fg` continues the whole group; only a program that still sleeps needs it from us.
      const auto info = ReadProcessInfo(program);
      return info && info->state == 'T';
    }
    default:
      return false;
  }
}

}  // namespace trainprof
