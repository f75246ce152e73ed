// The machine as a whole, from /proc: CPUs, run queue, memory, swapping, pressure, disks.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "collectors/machine/proc_file.h"
#include "trace/recording/files/host_encoder.h"

namespace trainprof {

class MachineSource {
 public:
  // Reads below root/proc.
  explicit MachineSource(const std::filesystem::path& root);

  // What a kernel does not have is not observed. The three cost different amounts. The first says what processor this
  // is, once.
  void SampleCpu(recording::HostEncoder& out);
  void SampleMemory(recording::HostEncoder& out);
  void SamplePressure(recording::HostEncoder& out);

 private:
  uint32_t Id(recording::HostEncoder& out);
  void Describe(recording::HostEncoder& out) const;
  void ObserveCpuLine(std::string_view line, recording::HostEncoder& out);
  void ObservePressure(ProcFile& file, std::optional<recording::MachineMetric> some,
                       std::optional<recording::MachineMetric> full, recording::HostEncoder& out);

  std::filesystem::path processor_;
  ProcFile stat_;
  ProcFile load_;
  ProcFile vmstat_;
  ProcFile meminfo_;
  ProcFile pressure_cpu_;
  ProcFile pressure_memory_;
  ProcFile pressure_io_;
  uint64_t page_bytes_;
  uint32_t samples_ = 0;
  std::optional<uint32_t> machine_;
  std::optional<uint32_t> cores_;
  std::string buffer_;
};

class DiskSource {
 public:
  // Reads root/proc/diskstats; root/sys/block tells whole disks from partitions.
  explicit DiskSource(const std::filesystem::path& root);

  void Sample(recording::HostEncoder& out);

 private:
  bool IsDisk(const std::string& name) const;

  std::filesystem::path blocks_;
  ProcFile stats_;
  // Nothing: a partition, or a device that holds memory or files.
  std::map<std::string, std::optional<uint32_t>, std::less<>> known_;
  std::string buffer_;
};

}  // namespace trainprof
