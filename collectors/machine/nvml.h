// NVIDIA's management library (what nvidia-smi asks), loaded when it is there; never linked. Only
// the functions that the sampler calls, each optional: an old library lacks some.
#pragma once

#include <cstdint>
#include <string>

#include "trace/base/result.h"

namespace trainprof {

struct Nvml {
  using Device = void*;
  // nvmlReturn_t.
  static constexpr int kSuccess = 0;
  static constexpr int kNotSupported = 3;
  static constexpr int kNoPermission = 4;
  static constexpr int kFunctionNotFound = 13;
  // nvmlClockType_t, nvmlTemperatureSensors_t, nvmlPcieUtilCounter_t.
  static constexpr int kClockSm = 1;
  static constexpr int kClockMemory = 2;
  static constexpr int kTemperatureGpu = 0;
  static constexpr int kPcieSent = 0;
  static constexpr int kPcieReceived = 1;

  struct Utilisation {
    unsigned gpu;
    unsigned memory;
  };
  struct Memory {
    unsigned long long total;
    unsigned long long free;
    unsigned long long used;
  };
  // nvmlProcessInfo_v2_t, of the functions _v2 and _v3.
  struct Process {
    unsigned pid;
    unsigned long long used_memory;
    unsigned gpu_instance;
    unsigned compute_instance;
  };
  // nvmlProcessInfo_v1_t.
  struct OldProcess {
    unsigned pid;
    unsigned long long used_memory;
  };

  int (*init)() = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*driver_version)(char*, unsigned) = nullptr;
  int (*device_count)(unsigned*) = nullptr;
  int (*device)(unsigned, Device*) = nullptr;
  int (*name)(Device, char*, unsigned) = nullptr;
  int (*uuid)(Device, char*, unsigned) = nullptr;
  int (*mig_mode)(Device, unsigned*, unsigned*) = nullptr;
  int (*utilisation)(Device, Utilisation*) = nullptr;
  int (*memory)(Device, Memory*) = nullptr;
  int (*clock)(Device, int, unsigned*) = nullptr;
  int (*clock_max)(Device, int, unsigned*) = nullptr;
  int (*throttle)(Device, unsigned long long*) = nullptr;
  int (*power)(Device, unsigned*) = nullptr;
  int (*power_limit)(Device, unsigned*) = nullptr;
  int (*temperature)(Device, int, unsigned*) = nullptr;
  int (*pcie_generation)(Device, unsigned*) = nullptr;
  int (*pcie_width)(Device, unsigned*) = nullptr;
  int (*pcie_generation_max)(Device, unsigned*) = nullptr;
  int (*pcie_width_max)(Device, unsigned*) = nullptr;
  int (*pcie_throughput)(Device, int, unsigned*) = nullptr;
  int (*processes)(Device, unsigned*, Process*) = nullptr;
  int (*old_processes)(Device, unsigned*, OldProcess*) = nullptr;

  // "error 3 (Not Supported)".
  std::string Describe(int status) const;
};

// Loads libnvidia-ml.so.1 and initialises it; it stays loaded. May take a second while the driver
// wakes up. The error says why there are no GPU samples.
Result<Nvml> LoadNvml();

// One line for `trainprof doctor`: "NVML of driver 580.65.06, 8 GPUs".
Result<std::string> DescribeNvml();

}  // namespace trainprof
