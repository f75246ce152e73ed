// A short-lived process of ours, started from within the profiled program and unseen by it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trainprof::collectors {

struct OwnProcess {
  const char* program;             // executed as it is: no search in PATH
  const char* const* arguments;    // end with nullptr; the first is the program's name
  const char* const* environment;  // ends with nullptr
  int64_t limit_ns;                // then it is killed
};

// What the process finds open, besides /dev/null as its standard streams.
inline constexpr int kOwnProcessOutput = 3;

struct OwnProcessEnd {
  int error = 0;  // negative errno when it could not be started, else 0
  bool timed_out = false;
  int exit_code = 0;
  int signal = 0;           // that ended it, or 0
  size_t output_bytes = 0;  // written to kOwnProcessOutput
};

// Runs it, waits for its end, and keeps the first `size` bytes of its output. Copies no memory,
// however large the program is; runs no pthread_atfork handler; sends the program no SIGCHLD, is
// never what its wait() returns, and takes none of its descriptors. The process starts with all
// signals blocked and leaves no core file.
OwnProcessEnd RunOwnProcess(const OwnProcess& process, void* output, size_t size);

}  // namespace trainprof::collectors
