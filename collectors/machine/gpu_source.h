// The GPUs, as NVML sees them. What a GPU does not support (utilisation with MIG on) is
// said once and not asked again; nothing is made up for it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "collectors/machine/nvml.h"
#include "trace/recording/files/host_encoder.h"

namespace trainprof {

class GpuSource {
 public:
  using Pids = std::function<std::vector<pid_t>()>;

  // Finds the GPUs and says them, and what cannot be sampled. `run_pids`: the processes of the run.
  GpuSource(const Nvml& nvml, Pids run_pids, recording::HostEncoder& out);

  void Sample(recording::HostEncoder& out);
  // One direction of one GPU at a time, in turn: the driver counts for 20 ms.
  void SamplePcieThroughput(recording::HostEncoder& out);
  // Which GPUs the run's processes use.
  void SampleUse(recording::HostEncoder& out);

  size_t size() const { return gpus_.size(); }

 private:
  enum Question : uint32_t {
    kUtilisation,
    kMemory,
    kClocks,
    kThrottle,
    kPower,
    kTemperature,
    kPcieLink,
    kPcieThroughput,
    kUse,
    kQuestions,
  };
  struct Gpu {
    Nvml::Device device;
    unsigned index;
    uint32_t id;
    std::string mode;          // kMigMode, or empty
    uint32_t unsupported = 0;  // bits of Question
    uint32_t failures[kQuestions] = {};
  };
  void AddGpu(unsigned index, recording::HostEncoder& out);
  // Asks unless it is known to be in vain. `ask` returns NVML's status.
  template <class Ask>
  void Try(Gpu& gpu, Question question, recording::HostEncoder& out, Ask ask);
  void GiveUp(Gpu& gpu, Question question, int status, recording::HostEncoder& out);
  int AskUtilisation(const Gpu& gpu, recording::HostEncoder& out);
  int AskMemory(const Gpu& gpu, recording::HostEncoder& out);
  int AskThrottle(const Gpu& gpu, recording::HostEncoder& out);
  int AskPower(const Gpu& gpu, recording::HostEncoder& out);
  int AskTemperature(const Gpu& gpu, recording::HostEncoder& out);
  int AskClocks(const Gpu& gpu, recording::HostEncoder& out);
  int AskPcieLink(const Gpu& gpu, recording::HostEncoder& out);
  int AskUse(const Gpu& gpu, const std::vector<pid_t>& ours, recording::HostEncoder& out);

  Nvml nvml_;
  Pids run_pids_;
  std::vector<Gpu> gpus_;
  size_t next_throughput_ = 0;
};

}  // namespace trainprof
