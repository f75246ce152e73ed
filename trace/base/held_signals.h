// The signal mask, by the kernel's own call.
//
// glibc's functions take signals 32 and 33, which it uses itself, out of any mask
// that they set: a thread that holds all signals back would lose these two to a write in between.
#pragma once

#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>

namespace trainprof {

// A bit for each signal, 1 << (number - 1), as the kernel has it.
using SignalBits = uint64_t;
constexpr SignalBits SignalBit(int number) { return SignalBits{1} << (number - 1); }
inline constexpr SignalBits kAllSignals = ~SignalBits{0};
// Without glibc's own: setuid() waits for all threads to take the second one.
inline constexpr SignalBits kSignalsToHold = ~(SignalBit(32) | SignalBit(33));

// The mask before. Async-signal-safe.
inline SignalBits SetSignalMask(SignalBits blocked) {
  SignalBits before = 0;
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &blocked, &before, sizeof blocked);
  return before;
}

// Signals wait while one of these lives, for the thread that made it and those that it starts.
class HeldSignals {
 public:
  explicit HeldSignals(SignalBits signals) : held_(signals) {
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, &held_, &before_, sizeof held_);
  }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
  ~HeldSignals() { syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before_, nullptr, sizeof before_); }

  // Takes away one that our own failed call has raised; no handler sees it. One that was held
  // before is not to be told from somebody else's, and stays.
  void Swallow() {
    const SignalBits ours = held_ & ~before_;
    const timespec at_once{};
    if (ours != 0) syscall(SYS_rt_sigtimedwait, &ours, nullptr, &at_once, sizeof ours);
  }

 private:
  SignalBits held_;
  SignalBits before_ = 0;
};

}  // namespace trainprof
