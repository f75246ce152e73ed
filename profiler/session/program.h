// Starts the profiled program as execvp would, with a changed environment and nothing else changed.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "profiler/session/signals.h"

namespace trainprof {

struct StartedProgram {
  pid_t pid = -1;     // -1: it did not start
  int exit_code = 0;  // when it did not: 125 fork failed, 126 cannot execute, 127 not found
  std::string error;  // and why, with what to do
};

// `environment` is the whole of it ("NAME=value"). Inherits descriptors, folder, umask, limits,
// process group, signal mask and dispositions. Returns once the program runs or failed to.
StartedProgram StartProgram(const std::vector<std::string>& arguments,
                            const std::vector<std::string>& environment, const SignalInbox& inbox);

}  // namespace trainprof
