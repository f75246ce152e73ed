// What /proc/PID/stat says of a process.
#include "profiler/process/process_info.h"

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

namespace trainprof {

std::optional<ProcessInfo> ReadProcessInfo(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  // The command's name may hold spaces and parentheses: fields are counted from the last ')'.
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  ProcessInfo info{};
  int parent = 0;
  unsigned long long start = 0;
  // proc(5): state is field 3, ppid 4, starttime 22.
  const int matched = std::sscanf(text.c_str() + name_end + 1,
                                  " %c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                                  "%*s %*s %*s %llu",
                                  &info.state, &parent, &start);
  if (matched != 3) return std::nullopt;
  info.parent = parent;
  info.start_ticks = start;
  return info;
}

}  // namespace trainprof
