// Limits that are absent or unreadable count as unlimited.
#include "trace/formats/io/memory_limit.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <new>

namespace trainprof {
namespace {

constexpr uint64_t kShare = 3;
constexpr uint64_t kOfShares = 4;

uint64_t ProcessLimit(int which) {
  rlimit limit{};
  if (getrlimit(static_cast<__rlimit_resource_t>(which), &limit) != 0) return UINT64_MAX;
  return limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
}

// Version 2's file, then version 1's; in a container both describe the container's own group.
uint64_t ControlGroupLimit() {
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    uint64_t bytes = 0;
    if (std::ifstream(path) >> bytes && bytes > 0) return bytes;
  }
  return UINT64_MAX;
}

}  // namespace

uint64_t AvailableMemoryBytes() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_bytes = sysconf(_SC_PAGESIZE);
  const uint64_t machine = pages > 0 && page_bytes > 0
                               ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(page_bytes)
                               : UINT64_MAX;
  return std::min(
      {machine, ProcessLimit(RLIMIT_AS), ProcessLimit(RLIMIT_DATA), ControlGroupLimit()});
}

uint64_t ReadableMemoryBytes() { return AvailableMemoryBytes() / kOfShares * kShare; }

void CheckMemory(uint64_t most_bytes) {
  if (ResidentMemoryBytes() > most_bytes) throw std::bad_alloc();
}

uint64_t ResidentMemoryBytes() {
  const int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[128] = {};
  const bool read_it = read(fd, text, sizeof text - 1) > 0;
  close(fd);
  unsigned long long all = 0;
  unsigned long long resident = 0;
  if (!read_it || sscanf(text, "%llu %llu", &all, &resident) != 2) return 0;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace trainprof
