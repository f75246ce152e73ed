#include "collectors/machine/gpu_source.h"

#include <fmt/format.h>

#include <algorithm>

#include "trace/recording/wire/facts.h"

namespace trainprof {
namespace {

using recording::GpuMetric;
using recording::HostEncoder;
using recording::HostEntityKind;

// A question that failed so often in a row is not asked again.
constexpr uint32_t kMostFailures = 10;
// More processes on one GPU than MPS allows.
constexpr unsigned kMostProcesses = 128;

constexpr const char* kQuestionNames[] = {
    "utilisation", "memory",    "clocks",          "throttle reasons", "power",
    "temperature", "PCIe link", "PCIe throughput", "processes",
};

}  // namespace

GpuSource::GpuSource(const Nvml& nvml, Pids run_pids, HostEncoder& out)
    : nvml_(nvml), run_pids_(std::move(run_pids)) {
  unsigned count = 0;
  if (nvml_.device_count(&count) != Nvml::kSuccess) return;
  for (unsigned i = 0; i < count; ++i) AddGpu(i, out);
}

void GpuSource::AddGpu(unsigned index, HostEncoder& out) {
  const std::string who = fact::kGpuPrefix + std::to_string(index);
  Nvml::Device device = nullptr;
  if (const int status = nvml_.device(index, &device); status != Nvml::kSuccess) {
    out.Fact(who,
             fmt::format("{}NVML does not give it: {}", fact::kNotSampled, nvml_.Describe(status)));
    return;
  }
  char name[96] = "GPU";
  char uuid[96] = "";
  if (nvml_.name != nullptr) nvml_.name(device, name, sizeof name);
  if (nvml_.uuid != nullptr) nvml_.uuid(device, uuid, sizeof uuid);
  Gpu gpu{device, index, 0, "", 0, {}};
  unsigned mig = 0;
  unsigned pending = 0;
  if (nvml_.mig_mode != nullptr && nvml_.mig_mode(device, &mig, &pending) == Nvml::kSuccess &&
      mig != 0) {
    gpu.mode = fact::kMigMode;
  }
  const std::string text = fmt::format("{} {}", uuid, name);
  gpu.id = out.Add({.kind = HostEntityKind::kGpu, .number = index, .text = text});
  out.Fact(who, gpu.mode.empty() ? text : text + ", " + gpu.mode);
  gpus_.push_back(gpu);
}

void GpuSource::GiveUp(Gpu& gpu, Question question, int status, HostEncoder& out) {
  const std::string cause =
      status == Nvml::kFunctionNotFound
          ? "this NVML lacks it"
          : nvml_.Describe(status) + (gpu.mode.empty() ? "" : ", as the GPU is in " + gpu.mode);
  out.Fact(fmt::format("{}{} {}", fact::kGpuPrefix, gpu.index, kQuestionNames[question]),
           fact::kNotSampled + cause);
  gpu.unsupported |= 1u << question;
}

template <class Ask>
void GpuSource::Try(Gpu& gpu, Question question, HostEncoder& out, Ask ask) {
  if ((gpu.unsupported >> question & 1) != 0) return;
  const int status = ask();
  if (status == Nvml::kSuccess) {
    gpu.failures[question] = 0;
    return;
  }
  const bool for_good = status == Nvml::kNotSupported || status == Nvml::kNoPermission ||
                        status == Nvml::kFunctionNotFound;
  if (for_good || ++gpu.failures[question] >= kMostFailures) GiveUp(gpu, question, status, out);
}

int GpuSource::AskClocks(const Gpu& gpu, HostEncoder& out) {
  if (nvml_.clock == nullptr) return Nvml::kFunctionNotFound;
  unsigned mhz = 0;
  const int status = nvml_.clock(gpu.device, Nvml::kClockSm, &mhz);
  if (status != Nvml::kSuccess) return status;
  out.Observe(gpu.id, GpuMetric::kSmClock, mhz);
  if (nvml_.clock(gpu.device, Nvml::kClockMemory, &mhz) == Nvml::kSuccess) {
    out.Observe(gpu.id, GpuMetric::kMemoryClock, mhz);
  }
  if (nvml_.clock_max != nullptr &&
      nvml_.clock_max(gpu.device, Nvml::kClockSm, &mhz) == Nvml::kSuccess) {
    out.Observe(gpu.id, GpuMetric::kSmClockMax, mhz);
  }
  return Nvml::kSuccess;
}

int GpuSource::AskPcieLink(const Gpu& gpu, HostEncoder& out) {
  const struct {
    int (*ask)(Nvml::Device, unsigned*);
    GpuMetric metric;
  } questions[] = {{nvml_.pcie_generation, GpuMetric::kPcieGeneration},
                   {nvml_.pcie_width, GpuMetric::kPcieWidth},
                   {nvml_.pcie_generation_max, GpuMetric::kPcieGenerationMax},
                   {nvml_.pcie_width_max, GpuMetric::kPcieWidthMax}};
  int first_status = Nvml::kFunctionNotFound;
  for (const auto& question : questions) {
    unsigned value = 0;
    const int status =
        question.ask == nullptr ? Nvml::kFunctionNotFound : question.ask(gpu.device, &value);
    if (&question == questions) first_status = status;
    if (status == Nvml::kSuccess) out.Observe(gpu.id, question.metric, value);
  }
  return first_status;
}

int GpuSource::AskUtilisation(const Gpu& gpu, HostEncoder& out) {
  if (nvml_.utilisation == nullptr) return Nvml::kFunctionNotFound;
  Nvml::Utilisation rates{};
  const int status = nvml_.utilisation(gpu.device, &rates);
  if (status != Nvml::kSuccess) return status;
  out.Observe(gpu.id, GpuMetric::kUtilisation, rates.gpu);
  out.Observe(gpu.id, GpuMetric::kMemoryUtilisation, rates.memory);
  return status;
}

int GpuSource::AskMemory(const Gpu& gpu, HostEncoder& out) {
  if (nvml_.memory == nullptr) return Nvml::kFunctionNotFound;
  Nvml::Memory memory{};
  const int status = nvml_.memory(gpu.device, &memory);
  if (status != Nvml::kSuccess) return status;
  out.Observe(gpu.id, GpuMetric::kMemoryUsed, memory.used);
  out.Observe(gpu.id, GpuMetric::kMemoryTotal, memory.total);
  return status;
}

int GpuSource::AskThrottle(const Gpu& gpu, HostEncoder& out) {
  if (nvml_.throttle == nullptr) return Nvml::kFunctionNotFound;
  unsigned long long reasons = 0;
  const int status = nvml_.throttle(gpu.device, &reasons);
  if (status == Nvml::kSuccess) out.Observe(gpu.id, GpuMetric::kThrottle, reasons);
  return status;
}

int GpuSource::AskPower(const Gpu& gpu, HostEncoder& out) {
  if (nvml_.power == nullptr) return Nvml::kFunctionNotFound;
  unsigned milliwatts = 0;
  const int status = nvml_.power(gpu.device, &milliwatts);
  if (status != Nvml::kSuccess) return status;
  out.Observe(gpu.id, GpuMetric::kPower, milliwatts);
  if (nvml_.power_limit != nullptr &&
      nvml_.power_limit(gpu.device, &milliwatts) == Nvml::kSuccess) {
    out.Observe(gpu.id, GpuMetric::kPowerLimit, milliwatts);
  }
  return status;
}

int GpuSource::AskTemperature(const Gpu& gpu, HostEncoder& out) {
  if (nvml_.temperature == nullptr) return Nvml::kFunctionNotFound;
  unsigned celsius = 0;
  const int status = nvml_.temperature(gpu.device, Nvml::kTemperatureGpu, &celsius);
  if (status == Nvml::kSuccess) out.Observe(gpu.id, GpuMetric::kTemperature, celsius);
  return status;
}

void GpuSource::Sample(HostEncoder& out) {
  for (Gpu& gpu : gpus_) {
    Try(gpu, kUtilisation, out, [&] { return AskUtilisation(gpu, out); });
    Try(gpu, kMemory, out, [&] { return AskMemory(gpu, out); });
    Try(gpu, kThrottle, out, [&] { return AskThrottle(gpu, out); });
    Try(gpu, kClocks, out, [&] { return AskClocks(gpu, out); });
    Try(gpu, kPower, out, [&] { return AskPower(gpu, out); });
    Try(gpu, kTemperature, out, [&] { return AskTemperature(gpu, out); });
    Try(gpu, kPcieLink, out, [&] { return AskPcieLink(gpu, out); });
  }
}

void GpuSource::SamplePcieThroughput(HostEncoder& out) {
  if (gpus_.empty()) return;
  Gpu& gpu = gpus_[next_throughput_ / 2 % gpus_.size()];
  const bool sent = next_throughput_++ % 2 == 0;
  Try(gpu, kPcieThroughput, out, [&] {
    if (nvml_.pcie_throughput == nullptr) return Nvml::kFunctionNotFound;
    unsigned kilobytes = 0;
    const int status =
        nvml_.pcie_throughput(gpu.device, sent ? Nvml::kPcieSent : Nvml::kPcieReceived, &kilobytes);
    if (status == Nvml::kSuccess) {
      out.Observe(gpu.id, sent ? GpuMetric::kPcieSent : GpuMetric::kPcieReceived, kilobytes);
    }
    return status;
  });
}

int GpuSource::AskUse(const Gpu& gpu, const std::vector<pid_t>& ours, HostEncoder& out) {
  const auto is_ours = [&](const auto& process) {
    return std::find(ours.begin(), ours.end(), static_cast<pid_t>(process.pid)) != ours.end();
  };
  unsigned count = kMostProcesses;
  int status = Nvml::kFunctionNotFound;
  bool used = false;
  if (nvml_.processes != nullptr) {
    std::vector<Nvml::Process> processes(kMostProcesses);
    status = nvml_.processes(gpu.device, &count, processes.data());
    if (status == Nvml::kSuccess) {
      processes.resize(std::min(count, kMostProcesses));
      used = std::any_of(processes.begin(), processes.end(), is_ours);
    }
  } else if (nvml_.old_processes != nullptr) {
    std::vector<Nvml::OldProcess> processes(kMostProcesses);
    status = nvml_.old_processes(gpu.device, &count, processes.data());
    if (status == Nvml::kSuccess) {
      processes.resize(std::min(count, kMostProcesses));
      used = std::any_of(processes.begin(), processes.end(), is_ours);
    }
  }
  if (status == Nvml::kSuccess) out.Observe(gpu.id, GpuMetric::kUsedByRun, used);
  return status;
}

void GpuSource::SampleUse(HostEncoder& out) {
  const std::vector<pid_t> ours = run_pids_();
  for (Gpu& gpu : gpus_) {
    Try(gpu, kUse, out, [&] { return AskUse(gpu, ours, out); });
  }
}

}  // namespace trainprof
