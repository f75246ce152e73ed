// What /proc/PID/stat says of a process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace trainprof {

struct ProcessInfo {
  char state;  // 'R', 'S', 'T' (stopped), 'Z', ...
  pid_t parent;
  uint64_t start_ticks;  // since boot; with the pid it names one process for good
};

// Nothing when there is no such process.
std::optional<ProcessInfo> ReadProcessInfo(pid_t pid);

}  // namespace trainprof
