// What the sampler's process does: three threads, one for /proc, one for NVML, whose calls may take
// long, one for stacks. None waits for another.
#pragma once

#include <optional>

#include "collectors/machine/host_sampler.h"
#include "collectors/machine/sample_log.h"
#include "collectors/machine/schedule.h"

namespace trainprof {

class ProcessSource;
class MachineSource;
class DiskSource;
class CgroupSource;

// The most of one core that each source may take; 0.9 % in all; stacks
// have their own (stack_sampler.cpp).
struct CoreShares {
  static constexpr double kStat = 0.0030;  // of all processes
  static constexpr double kRest = 0.0015;
  static constexpr double kScan = 0.0010;
  static constexpr double kCpu = 0.0010;
  static constexpr double kMemory = 0.0004;
  static constexpr double kPressure = 0.0003;
  static constexpr double kDisks = 0.0003;
  static constexpr double kCgroup = 0.0003;
  static constexpr double kNvml = 0.0008;
  static constexpr double kPcieThroughput = 0.0003;
  static constexpr double kGpuUse = 0.0001;
};

struct SampleLogs {
  SampleLog host;
  std::optional<SampleLog> stacks;
};

// The sources of /proc on one schedule. The machine's own are asked only while `samples_machine`.
void AddProcessSources(Schedule& schedule, ProcessSource& processes, CgroupSource& cgroup);
void AddMachineSources(Schedule& schedule, MachineSource& machine, DiskSource& disks,
                       const bool& samples_machine);

// Samples until `stop_fd` can be read or hangs up. Returns the exit status: 0, or 1 when the disk
// refused something. The caller exits at once: threads that hang in a driver's call are left.
int SampleUntilStopped(const SamplerSettings& settings, SampleLogs& logs, int stop_fd);

}  // namespace trainprof
