// Waits for the profiled program, passing on the signals that are meant for it.
#include "profiler/session/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <optional>

#include "profiler/process/group_witness.h"

namespace trainprof {
namespace {

// Clock samples are taken at this rate: a step of the clock is placed to a tenth of a second.
constexpr std::chrono::milliseconds kSupervisorTick{100};

// What is sent to end a program: by people, schedulers, watchdogs, time limits.
bool EndsPrograms(int signal) {
  constexpr int kEnding[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGABRT, SIGALRM, SIGXCPU, SIGPWR};
  return std::find(std::begin(kEnding), std::end(kEnding), signal) != std::end(kEnding);
}

bool WeAreInTheForeground() {
  const int terminal = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);
  if (terminal < 0) return false;
  const bool foreground = tcgetpgrp(terminal) == getpgrp();
  close(terminal);
  return foreground;
}

// A program that stops only itself (not the group, as Ctrl-Z does) leaves a shell waiting for us
// with the terminal in nobody's hands: stop too, so that the shell takes over and `fg` continues
// both. SIGSTOP is not followed: tools send it to the program alone and continue it alone.
void FollowStop(int stop_signal) {
  const bool job_control =
      stop_signal == SIGTSTP || stop_signal == SIGTTIN || stop_signal == SIGTTOU;
  if (job_control && WeAreInTheForeground()) raise(SIGSTOP);
}

// Collects the program's changes of state; a value once it has ended.
std::optional<ProgramEnd> Collect(pid_t program) {
  int status = 0;
  for (;;) {
    const pid_t changed = waitpid(program, &status, WNOHANG | WUNTRACED);
    if (changed < 0 && errno == EINTR) continue;
    if (changed != program) return std::nullopt;
    if (WIFSTOPPED(status)) {
      FollowStop(WSTOPSIG(status));
      continue;
    }
    ProgramEnd end;
    end.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    end.exit_code = end.signal != 0 ? 128 + end.signal : WEXITSTATUS(status);
    return end;
  }
}

}  // namespace

ProgramEnd Supervise(pid_t program, SignalInbox& inbox, const std::function<void()>& on_tick) {
  using Clock = std::chrono::steady_clock;
  GroupWitness witness;
  int interrupts = 0;
  bool asked_to_end = false;
  Clock::time_point next_tick = Clock::now();
  for (;;) {
    if (Clock::now() >= next_tick) {
      on_tick();
      next_tick = Clock::now() + kSupervisorTick;
    }
    if (const auto signal = inbox.Wait(next_tick - Clock::now())) {
      interrupts += signal->si_signo == SIGINT ? 1 : 0;
      asked_to_end = asked_to_end || EndsPrograms(signal->si_signo);
      // The program is not reaped yet, so its pid is still its own.
      if (ShouldForward(*signal, program) &&
          (signal->si_signo == SIGCONT || !witness.AlsoReceived(signal->si_signo))) {
        Forward(*signal, program);
      }
    }
    if (auto end = Collect(program)) {
      end->interrupts = interrupts;
      end->asked_to_end = asked_to_end;
      return *end;
    }
  }
}

}  // namespace trainprof
