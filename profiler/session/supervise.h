// Waits for the profiled program, passing on the signals that are meant for it.
#pragma once

#include <sys/types.h>

#include <functional>

#include "profiler/process/signals.h"

namespace trainprof {

struct ProgramEnd {
  int exit_code = 0;          // of the program; 128 + N when signal N ended it
  int signal = 0;             // N, or 0
  int interrupts = 0;         // SIGINTs that reached us
  bool asked_to_end = false;  // one that ends programs reached us: someone waits for us to leave
};

// Returns when the program itself has ended; its orphaned descendants are not waited for. `on_tick`
// runs every kSupervisorTick and must not block.
ProgramEnd Supervise(pid_t program, SignalInbox& inbox, const std::function<void()>& on_tick);

}  // namespace trainprof
