// Samples the machine, its GPUs, the processes of a run and the stacks of their Python threads into the
// run directory, in a process of its own beside the supervisor (side_process.h).
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "collectors/machine/sample_log.h"
#include "trace/base/result.h"
#include "trace/io/side_process.h"

namespace trainprof {

inline constexpr double kDefaultSampleHz = 10;
inline constexpr double kMostSampleHz = 100;
inline constexpr double kDefaultStackHz = 50;
inline constexpr double kMostStackHz = 1000;

struct SamplerSettings {
  std::filesystem::path run_dir;
  pid_t program = 0;                  // root of the process tree
  int rank = -1;                      // of this supervisor
  double hz = kDefaultSampleHz;       // > 0
  double stack_hz = kDefaultStackHz;  // of Python threads; 0: none
  uint64_t max_bytes = UINT64_MAX;    // bound of the whole recording
  int memory_door = -1;               // where processes hand in their memory (MemoryDoor), or -1
  std::filesystem::path root = "/";   // /proc and /sys are read below it
};

class HostSampler {
 public:
  // What Stop() waits for the last sample; then the sampler is killed and left behind.
  static constexpr std::chrono::milliseconds kStopLimit{150};

  // Forks: call it while the supervisor has one thread. The error says what could not be made.
  static Result<HostSampler> Start(const SamplerSettings& settings);
  HostSampler(HostSampler&& other) noexcept;
  HostSampler& operator=(HostSampler&& other) noexcept;
  ~HostSampler();  // stops it

  // Asks for a last sample and ends it. What went wrong in words, or empty.
  std::string Stop();
  const std::vector<std::filesystem::path>& files() const { return files_; }

 private:
  HostSampler(SideProcess process, std::vector<std::filesystem::path> files)
      : process_(std::move(process)), files_(std::move(files)) {}

  SideProcess process_;
  std::vector<std::filesystem::path> files_;
};

}  // namespace trainprof
