#include "collectors/machine/nvml.h"

#include <dlfcn.h>

#include <fmt/format.h>

namespace trainprof {
namespace {

constexpr char kLibrary[] = "libnvidia-ml.so.1";

// The first of the names that the library has: newer ones stand first.
template <class Function>
void Find(void* library, Function& function, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (function == nullptr) function = reinterpret_cast<Function>(dlsym(library, name));
  }
}

Nvml FunctionsOf(void* library) {
  Nvml nvml;
  Find(library, nvml.init, {"nvmlInit_v2", "nvmlInit"});
  Find(library, nvml.error_string, {"nvmlErrorString"});
  Find(library, nvml.driver_version, {"nvmlSystemGetDriverVersion"});
  Find(library, nvml.device_count, {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"});
  Find(library, nvml.device, {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"});
  Find(library, nvml.name, {"nvmlDeviceGetName"});
  Find(library, nvml.uuid, {"nvmlDeviceGetUUID"});
  Find(library, nvml.mig_mode, {"nvmlDeviceGetMigMode"});
  Find(library, nvml.utilisation, {"nvmlDeviceGetUtilizationRates"});
  Find(library, nvml.memory, {"nvmlDeviceGetMemoryInfo"});
  Find(library, nvml.clock, {"nvmlDeviceGetClockInfo"});
  Find(library, nvml.clock_max, {"nvmlDeviceGetMaxClockInfo"});
  Find(library, nvml.throttle,
       {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"});
  Find(library, nvml.power, {"nvmlDeviceGetPowerUsage"});
  Find(library, nvml.power_limit, {"nvmlDeviceGetEnforcedPowerLimit"});
  Find(library, nvml.temperature, {"nvmlDeviceGetTemperature"});
  Find(library, nvml.pcie_generation, {"nvmlDeviceGetCurrPcieLinkGeneration"});
  Find(library, nvml.pcie_width, {"nvmlDeviceGetCurrPcieLinkWidth"});
  Find(library, nvml.pcie_generation_max, {"nvmlDeviceGetMaxPcieLinkGeneration"});
  Find(library, nvml.pcie_width_max, {"nvmlDeviceGetMaxPcieLinkWidth"});
  Find(library, nvml.pcie_throughput, {"nvmlDeviceGetPcieThroughput"});
  Find(library, nvml.processes,
       {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"});
  Find(library, nvml.old_processes, {"nvmlDeviceGetComputeRunningProcesses"});
  return nvml;
}

}  // namespace

std::string Nvml::Describe(int status) const {
  const char* const text = error_string == nullptr ? nullptr : error_string(status);
  return text == nullptr ? fmt::format("error {}", status)
                         : fmt::format("error {} ({})", status, text);
}

Result<Nvml> LoadNvml() {
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return Error{fmt::format("no GPU samples: {} is not installed", kLibrary)};
  }
  const Nvml nvml = FunctionsOf(library);
  if (nvml.init == nullptr || nvml.device_count == nullptr || nvml.device == nullptr) {
    return Error{fmt::format("no GPU samples: {} lacks nvmlInit or its devices", kLibrary)};
  }
  if (const int status = nvml.init(); status != Nvml::kSuccess) {
    return Error{"no GPU samples: nvmlInit fails with " + nvml.Describe(status)};
  }
  return nvml;
}

Result<std::string> DescribeNvml() {
  const Result<Nvml> nvml = LoadNvml();
  if (!nvml.ok()) return Error{nvml.error()};
  char version[96] = "of unknown version";
  if (nvml.value().driver_version != nullptr) {
    nvml.value().driver_version(version, sizeof version);
  }
  unsigned count = 0;
  if (const int status = nvml.value().device_count(&count); status != Nvml::kSuccess) {
    return Error{"no GPU samples: NVML cannot count GPUs: " + nvml.value().Describe(status)};
  }
  return fmt::format("driver {}, {} GPU{}", version, count, count == 1 ? "" : "s");
}

}  // namespace trainprof
