// Starts the profiled program as execvp would, with a changed environment and nothing else changed.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "profiler/process/inherited.h"
#include "profiler/process/signals.h"

namespace trainprof {

struct StartedProgram {
  pid_t pid = -1;           // -1: it did not start
  bool no_process = false;  // as there may be no further process
  int exit_code = 0;        // when it did not: 125 fork failed, 126 cannot execute, 127 not found
  std::string error;        // and why, with what to do
};

// How the program finds its surroundings: as we did.
struct Surroundings {
  const SignalInbox& inbox;
  const Inherited& inherited;
};

// `environment` is the whole of it ("NAME=value"). Inherits descriptors, folder, umask, limits,
// process group, signal mask and dispositions. Returns once the program runs or failed to. Needs no
// descriptor.
StartedProgram StartProgram(const std::vector<std::string>& arguments,
                            const std::vector<std::string>& environment,
                            const Surroundings& surroundings);

// The same in place of the supervisor, where no further process may be. Returns when it failed.
StartedProgram BecomeProgram(const std::vector<std::string>& arguments,
                             const std::vector<std::string>& environment,
                             const Surroundings& surroundings);

}  // namespace trainprof
