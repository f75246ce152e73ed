// What the program must find as we found it, although the supervisor needs it otherwise.
#pragma once

#include <sys/resource.h>
#include <sys/time.h>

namespace trainprof {

class Inherited {
 public:
  // Takes as many descriptors as are allowed, and stops the timers that whoever executed us has
  // armed (`perl -e 'alarm 60; exec @ARGV'`): they outlive execve, and are meant for the program.
  Inherited();
  Inherited(const Inherited&) = delete;
  Inherited& operator=(const Inherited&) = delete;

  // Async-signal-safe; called in the process that becomes the program.
  void Restore() const;

 private:
  static constexpr int kTimers = 3;  // ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF

  rlimit descriptors_{};
  itimerval timers_[kTimers]{};
};

}  // namespace trainprof
