// The part of NVML's interface that the virtual libnvidia-ml has, as its documentation describes
// it: the machine may lack nvml.h. Numbers and layouts are NVML's; names are ours where they are
// not part of the ABI.
#pragma once

#include <cstdint>

extern "C" {

using NvmlDevice = struct nvmlDevice_st*;

enum NvmlReturn : unsigned {
  kNvmlSuccess = 0,
  kNvmlUninitialized = 1,
  kNvmlInvalidArgument = 2,
  kNvmlNotSupported = 3,
  kNvmlNotFound = 6,
  kNvmlInsufficientSize = 7,
  kNvmlDriverNotLoaded = 9,
  kNvmlFunctionNotFound = 13,
  kNvmlGpuIsLost = 15,
  kNvmlUnknown = 999,
};

enum NvmlClock : unsigned { kNvmlClockGraphics = 0, kNvmlClockSm, kNvmlClockMem, kNvmlClockVideo };

struct NvmlUtilization {  // per cent
  unsigned gpu;
  unsigned memory;
};

struct NvmlMemory {  // bytes
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

struct NvmlMemoryV2 {
  unsigned version;
  unsigned long long total;
  unsigned long long reserved;
  unsigned long long free;
  unsigned long long used;
};

struct NvmlPciInfo {
  char bus_id_legacy[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned pci_device_id;
  unsigned pci_subsystem_id;
  char bus_id[32];
};

struct NvmlProcessInfo {
  unsigned pid;
  unsigned long long used_memory_bytes;
  unsigned gpu_instance;
  unsigned compute_instance;
};

}  // extern "C"
