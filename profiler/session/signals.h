// Signals of the supervisor: held back while a program is profiled and taken one by one, so that no
// handler runs and the program gets each one exactly as it would without us.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <optional>

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
  sigset_t watched_;
  sigset_t inherited_mask_;
  struct sigaction inherited_child_action_;
};

// True when the sender means the program but reached only us: `kill PID` of trainprof. False when
// the program has it already: the terminal sends Ctrl-C, Ctrl-\ and hang-up to the whole foreground
// group, and what the program or its descendants send to their group (`kill 0`) is no request.
bool ShouldForward(const siginfo_t& signal, pid_t program);

// True when `pid` is `ancestor` or descends from it.
bool DescendsFrom(pid_t pid, pid_t ancestor);

}  // namespace trainprof
