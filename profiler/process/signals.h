// Signals of the supervisor: held back while a program is profiled and taken one by one, so that no
// handler runs and the program gets each one exactly as it would without us.
//
// What `kill` can send and a process can hold back never ends the supervisor:
//
// - Sent by a process: passed on, whatever its number (1 to 64).
// - By a timer or descriptor that whoever executed us had armed: passed on.
//   (SIGALRM, SIGVTALRM, SIGPROF, SIGIO, real-time signals)
// - By the kernel, about the supervisor: dropped. (SIGPIPE, SIGXFSZ, SIGXCPU, SIGCHLD)
// - By the terminal: dropped, as its whole group has them.
//
// SIGKILL and SIGSTOP cannot be held back. SIGTSTP, SIGTTIN and SIGTTOU stop the supervisor, as job
// control wants it. A crash of the supervisor itself is not held back by the kernel.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>

#include "trace/base/held_signals.h"

namespace trainprof {

// Blocks the signals that `run` deals with. Single-threaded by design: the supervisor has no other
// thread, so the mask is the process's and fork() is safe at any time.
class SignalInbox {
 public:
  SignalInbox();
  SignalInbox(const SignalInbox&) = delete;
  SignalInbox& operator=(const SignalInbox&) = delete;

  // The next signal, or nothing when `timeout` passes first.
  std::optional<siginfo_t> Wait(std::chrono::nanoseconds timeout);

  // Async-signal-safe; called in the forked child: mask and dispositions as we inherited them.
  void RestoreInherited() const;

 private:
  SignalBits inherited_mask_;
  struct sigaction inherited_child_action_;
};

// Takes one of these signals out of what waits for this process; nothing when none waits so long.
std::optional<siginfo_t> TakeSignal(SignalBits among, std::chrono::nanoseconds timeout);

// True when the sender means the program but reached only us: `kill PID` of trainprof. False when
// the program has it already: the terminal sends Ctrl-C, Ctrl-\ and hang-up to the whole foreground
// group, and what the program or its descendants send to their group (`kill 0`) is no request.
bool ShouldForward(const siginfo_t& signal, pid_t program);

// Sends it on, with the value that came with it.
void Forward(const siginfo_t& signal, pid_t program);

// True when `pid` is `ancestor` or descends from it.
bool DescendsFrom(pid_t pid, pid_t ancestor);

}  // namespace trainprof
