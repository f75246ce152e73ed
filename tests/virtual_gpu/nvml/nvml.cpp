// libnvidia-ml.so.1: what the machine's GPUs do, across processes (model/shared_state.h), and what
// the settings say.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>

#include "tests/virtual_gpu/model/clock.h"
#include "tests/virtual_gpu/model/faults.h"
#include "tests/virtual_gpu/model/settings.h"
#include "tests/virtual_gpu/model/shared_state.h"
#include "tests/virtual_gpu/nvml/nvml_abi.h"

using namespace vgpu;

namespace {

std::atomic<int> initialized = 0;
std::atomic<int64_t> calls = 0;

int DeviceCount() {
  return Has(Fault::no_device)
             ? 0
             : std::min(kSharedDevices, static_cast<int>(Least(Setting::devices)));
}

// Between two looks of this process at a device.
struct Window {
  int64_t at_ns = 0;
  DeviceLoad load;
  double utilisation = 0;  // 0 to 1
  double to_device_kbps = 0;
  double to_host_kbps = 0;
};
Window windows[kSharedDevices];
std::mutex windows_lock;

// The real library averages over a sixth of a second to a second; a shorter window only repeats the
// last figure.
constexpr int64_t kShortestWindowNs = 50'000'000;

Window LookAt(int device) {
  const std::lock_guard guard(windows_lock);
  Window& window = windows[device];
  const int64_t now = NowNs();
  const int64_t elapsed = now - window.at_ns;
  if (elapsed >= kShortestWindowNs) {
    const DeviceLoad load = LoadOf(device, now);
    if (window.at_ns != 0) {
      const auto seconds = static_cast<double>(elapsed) * 1e-9;
      const auto busy = static_cast<double>(load.busy_ns - window.load.busy_ns);
      const auto rate = [seconds](uint64_t after, uint64_t before) {
        return static_cast<double>(after - std::min(after, before)) / 1000 / seconds;
      };
      window.utilisation = std::clamp(busy / static_cast<double>(elapsed), 0.0, 1.0);
      window.to_device_kbps = rate(load.to_device_bytes, window.load.to_device_bytes);
      window.to_host_kbps = rate(load.to_host_bytes, window.load.to_host_bytes);
    }
    window.at_ns = now;
    window.load = load;
  }
  Window result = window;
  const double fixed = Least(Setting::utilisation);
  if (fixed >= 0) result.utilisation = fixed / 100;
  return result;
}

double Between(Setting setting, double share) {
  return Get(setting).least + (Get(setting).greatest - Get(setting).least) * share;
}

NvmlReturn Ready(const char* function) {
  const std::string* missing = FaultText(Fault::nvml_missing_function);
  if (missing != nullptr && *missing == function) return kNvmlFunctionNotFound;
  if (initialized == 0) return kNvmlUninitialized;
  const int64_t lost_at = FaultNumber(Fault::nvml_lost, -1);
  if (lost_at >= 0 && ++calls > lost_at) return kNvmlGpuIsLost;
  return kNvmlSuccess;
}

NvmlDevice Handle(int ordinal) {
  return reinterpret_cast<NvmlDevice>(static_cast<intptr_t>(ordinal + 1));
}
int Ordinal(NvmlDevice device) { return static_cast<int>(reinterpret_cast<intptr_t>(device)) - 1; }

NvmlReturn Write(char* text, unsigned length, const std::string& value) {
  if (text == nullptr) return kNvmlInvalidArgument;
  if (length <= value.size()) return kNvmlInsufficientSize;
  memcpy(text, value.c_str(), value.size() + 1);
  return kNvmlSuccess;
}

std::string Uuid(int ordinal) {
  char text[64];
  snprintf(text, sizeof text, "GPU-76697274-7561-6c20-6770-75203030%04x",
           static_cast<unsigned>(ordinal));
  return text;
}

std::string BusId(int ordinal) {
  char text[32];
  snprintf(text, sizeof text, "00000000:%02X:00.0", static_cast<unsigned>(ordinal + 1));
  return text;
}

}  // namespace

#define VGPU_NVML(function) \
  if (const NvmlReturn ready = Ready(#function); ready != kNvmlSuccess) return ready
#define VGPU_NVML_DEVICE(function)     \
  VGPU_NVML(function);                 \
  const int ordinal = Ordinal(device); \
  if (ordinal < 0 || ordinal >= DeviceCount()) return kNvmlInvalidArgument

extern "C" {

NvmlReturn nvmlInit_v2(void) {
  if (Has(Fault::no_driver)) return kNvmlDriverNotLoaded;
  ++initialized;
  return kNvmlSuccess;
}
NvmlReturn nvmlInit(void) { return nvmlInit_v2(); }
NvmlReturn nvmlInitWithFlags(unsigned) { return nvmlInit_v2(); }

NvmlReturn nvmlShutdown(void) {
  if (initialized == 0) return kNvmlUninitialized;
  --initialized;
  return kNvmlSuccess;
}

const char* nvmlErrorString(NvmlReturn result) {
  switch (result) {
    case kNvmlSuccess:
      return "Success";
    case kNvmlUninitialized:
      return "Uninitialized";
    case kNvmlInvalidArgument:
      return "Invalid Argument";
    case kNvmlNotSupported:
      return "Not Supported";
    case kNvmlNotFound:
      return "Not Found";
    case kNvmlInsufficientSize:
      return "Insufficient Size";
    case kNvmlDriverNotLoaded:
      return "Driver Not Loaded";
    case kNvmlFunctionNotFound:
      return "Function Not Found";
    case kNvmlGpuIsLost:
      return "GPU is lost";
    case kNvmlUnknown:
      break;
  }
  return "Unknown Error";
}

NvmlReturn nvmlSystemGetDriverVersion(char* version, unsigned length) {
  VGPU_NVML(nvmlSystemGetDriverVersion);
  return Write(version, length, Has(Fault::old_driver) ? "525.60.13" : "580.65.06");
}

NvmlReturn nvmlSystemGetNVMLVersion(char* version, unsigned length) {
  VGPU_NVML(nvmlSystemGetNVMLVersion);
  return Write(version, length, "13.580.65.06");
}

NvmlReturn nvmlSystemGetCudaDriverVersion_v2(int* version) {
  VGPU_NVML(nvmlSystemGetCudaDriverVersion_v2);
  *version = static_cast<int>(
      FaultNumber(Fault::old_driver, static_cast<int64_t>(Least(Setting::driver_version))));
  return kNvmlSuccess;
}
NvmlReturn nvmlSystemGetCudaDriverVersion(int* version) {
  return nvmlSystemGetCudaDriverVersion_v2(version);
}

NvmlReturn nvmlDeviceGetCount_v2(unsigned* count) {
  VGPU_NVML(nvmlDeviceGetCount_v2);
  *count = static_cast<unsigned>(DeviceCount());
  return kNvmlSuccess;
}

NvmlReturn nvmlDeviceGetHandleByIndex_v2(unsigned index, NvmlDevice* device) {
  VGPU_NVML(nvmlDeviceGetHandleByIndex_v2);
  if (index >= static_cast<unsigned>(DeviceCount())) return kNvmlInvalidArgument;
  *device = Handle(static_cast<int>(index));
  return kNvmlSuccess;
}

NvmlReturn nvmlDeviceGetHandleByUUID(const char* uuid, NvmlDevice* device) {
  VGPU_NVML(nvmlDeviceGetHandleByUUID);
  for (int i = 0; i < DeviceCount(); ++i) {
    if (Uuid(i) != uuid) continue;
    *device = Handle(i);
    return kNvmlSuccess;
  }
  return kNvmlNotFound;
}

NvmlReturn nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, NvmlDevice* device) {
  VGPU_NVML(nvmlDeviceGetHandleByPciBusId_v2);
  for (int i = 0; i < DeviceCount(); ++i) {
    if (BusId(i) != bus_id) continue;
    *device = Handle(i);
    return kNvmlSuccess;
  }
  return kNvmlNotFound;
}

NvmlReturn nvmlDeviceGetIndex(NvmlDevice device, unsigned* index) {
  VGPU_NVML_DEVICE(nvmlDeviceGetIndex);
  *index = static_cast<unsigned>(ordinal);
  return kNvmlSuccess;
}

NvmlReturn nvmlDeviceGetName(NvmlDevice device, char* name, unsigned length) {
  VGPU_NVML_DEVICE(nvmlDeviceGetName);
  return Write(name, length, "Virtual GPU (trainprof)");
}

NvmlReturn nvmlDeviceGetUUID(NvmlDevice device, char* uuid, unsigned length) {
  VGPU_NVML_DEVICE(nvmlDeviceGetUUID);
  return Write(uuid, length, Uuid(ordinal));
}

NvmlReturn nvmlDeviceGetPciInfo_v3(NvmlDevice device, NvmlPciInfo* info) {
  VGPU_NVML_DEVICE(nvmlDeviceGetPciInfo_v3);
  *info = {};
  info->bus = static_cast<unsigned>(ordinal + 1);
  info->pci_device_id = 0x233010DE;
  const std::string bus_id = BusId(ordinal);
  bus_id.copy(info->bus_id, sizeof info->bus_id - 1);
  bus_id.copy(info->bus_id_legacy, sizeof info->bus_id_legacy - 1, 4);  // a domain of four digits
  return kNvmlSuccess;
}

NvmlReturn nvmlDeviceGetCudaComputeCapability(NvmlDevice device, int* major, int* minor) {
  VGPU_NVML_DEVICE(nvmlDeviceGetCudaComputeCapability);
  *major = 9;
  *minor = 0;
  return kNvmlSuccess;
}

NvmlReturn nvmlDeviceGetUtilizationRates(NvmlDevice device, NvmlUtilization* utilization) {
  VGPU_NVML_DEVICE(nvmlDeviceGetUtilizationRates);
  const double share = LookAt(ordinal).utilisation;
  utilization->gpu = static_cast<unsigned>(share * 100 + 0.5);
  utilization->memory = static_cast<unsigned>(share * 40 + 0.5);
  return kNvmlSuccess;
}

NvmlReturn nvmlDeviceGetMemoryInfo(NvmlDevice device, NvmlMemory* memory) {
  VGPU_NVML_DEVICE(nvmlDeviceGetMemoryInfo);
  memory->total = static_cast<unsigned long long>(Least(Setting::memory_mib)) << 20;
  memory->used =
      std::min<unsigned long long>(memory->total, LoadOf(ordinal, NowNs()).memory_used_bytes);
  memory->free = memory->total - memory->used;
  return kNvmlSuccess;
}

NvmlReturn nvmlDeviceGetMemoryInfo_v2(NvmlDevice device, NvmlMemoryV2* memory) {
  NvmlMemory plain;
  const NvmlReturn result = nvmlDeviceGetMemoryInfo(device, &plain);
  if (result != kNvmlSuccess) return result;
  memory->total = plain.total;
  memory->used = plain.used;
  memory->free = plain.free;
  memory->reserved = 0;
  return kNvmlSuccess;
}

NvmlReturn nvmlDeviceGetClockInfo(NvmlDevice device, NvmlClock clock, unsigned* mhz) {
  VGPU_NVML_DEVICE(nvmlDeviceGetClockInfo);
  if (clock > kNvmlClockVideo) return kNvmlInvalidArgument;
  const double sm = Between(Setting::clock_mhz, LookAt(ordinal).utilisation > 0 ? 1 : 0);
  *mhz = clock == kNvmlClockMem ? 2619 : static_cast<unsigned>(sm);
  return kNvmlSuccess;
}

NvmlReturn nvmlDeviceGetMaxClockInfo(NvmlDevice device, NvmlClock clock, unsigned* mhz) {
  VGPU_NVML_DEVICE(nvmlDeviceGetMaxClockInfo);
  *mhz = clock == kNvmlClockMem ? 2619 : static_cast<unsigned>(Get(Setting::clock_mhz).greatest);
  return kNvmlSuccess;
}

NvmlReturn nvmlDeviceGetCurrentClocksEventReasons(NvmlDevice device, unsigned long long* reasons) {
  VGPU_NVML_DEVICE(nvmlDeviceGetCurrentClocksEventReasons);
  *reasons = static_cast<unsigned long long>(Least(Setting::clocks_event_reasons));
  return kNvmlSuccess;
}

// The name of the same before driver 535.
NvmlReturn nvmlDeviceGetCurrentClocksThrottleReasons(NvmlDevice device,
                                                     unsigned long long* reasons) {
  VGPU_NVML_DEVICE(nvmlDeviceGetCurrentClocksThrottleReasons);
  *reasons = static_cast<unsigned long long>(Least(Setting::clocks_event_reasons));
  return kNvmlSuccess;
}

NvmlReturn nvmlDeviceGetPowerUsage(NvmlDevice device, unsigned* milliwatts) {
  VGPU_NVML_DEVICE(nvmlDeviceGetPowerUsage);
  *milliwatts =
      static_cast<unsigned>(1000 * Between(Setting::power_w, LookAt(ordinal).utilisation));
  return kNvmlSuccess;
}

NvmlReturn nvmlDeviceGetEnforcedPowerLimit(NvmlDevice device, unsigned* milliwatts) {
  VGPU_NVML_DEVICE(nvmlDeviceGetEnforcedPowerLimit);
  *milliwatts = 700'000;
  return kNvmlSuccess;
}

NvmlReturn nvmlDeviceGetTemperature(NvmlDevice device, unsigned sensor, unsigned* celsius) {
  VGPU_NVML_DEVICE(nvmlDeviceGetTemperature);
  if (sensor != 0) return kNvmlInvalidArgument;
  *celsius = static_cast<unsigned>(Between(Setting::temperature_c, LookAt(ordinal).utilisation));
  return kNvmlSuccess;
}

// counter 0: sent by the GPU, 1: received by it. KB/s.
NvmlReturn nvmlDeviceGetPcieThroughput(NvmlDevice device, unsigned counter, unsigned* kbps) {
  VGPU_NVML_DEVICE(nvmlDeviceGetPcieThroughput);
  if (counter > 1) return kNvmlInvalidArgument;
  const Window window = LookAt(ordinal);
  *kbps = static_cast<unsigned>(counter == 0 ? window.to_host_kbps : window.to_device_kbps);
  return kNvmlSuccess;
}

NvmlReturn nvmlDeviceGetCurrPcieLinkGeneration(NvmlDevice device, unsigned* generation) {
  VGPU_NVML_DEVICE(nvmlDeviceGetCurrPcieLinkGeneration);
  *generation = static_cast<unsigned>(Least(Setting::pcie_generation));
  return kNvmlSuccess;
}

NvmlReturn nvmlDeviceGetCurrPcieLinkWidth(NvmlDevice device, unsigned* width) {
  VGPU_NVML_DEVICE(nvmlDeviceGetCurrPcieLinkWidth);
  *width = static_cast<unsigned>(Least(Setting::pcie_width));
  return kNvmlSuccess;
}

NvmlReturn nvmlDeviceGetMaxPcieLinkGeneration(NvmlDevice device, unsigned* generation) {
  VGPU_NVML_DEVICE(nvmlDeviceGetMaxPcieLinkGeneration);
  *generation = 5;
  return kNvmlSuccess;
}

NvmlReturn nvmlDeviceGetMaxPcieLinkWidth(NvmlDevice device, unsigned* width) {
  VGPU_NVML_DEVICE(nvmlDeviceGetMaxPcieLinkWidth);
  *width = 16;
  return kNvmlSuccess;
}

NvmlReturn nvmlDeviceGetPerformanceState(NvmlDevice device, unsigned* state) {
  VGPU_NVML_DEVICE(nvmlDeviceGetPerformanceState);
  *state = 0;
  return kNvmlSuccess;
}

NvmlReturn nvmlDeviceGetMigMode(NvmlDevice device, unsigned* current, unsigned* pending) {
  VGPU_NVML_DEVICE(nvmlDeviceGetMigMode);
  *current = *pending = Has(Fault::mig) ? 1 : 0;
  return kNvmlSuccess;
}

// infos may be null where *count is 0, to ask how many there are.
NvmlReturn nvmlDeviceGetComputeRunningProcesses_v3(NvmlDevice device, unsigned* count,
                                                   NvmlProcessInfo* infos) {
  VGPU_NVML_DEVICE(nvmlDeviceGetComputeRunningProcesses_v3);
  DeviceUser users[64];
  const auto found = static_cast<unsigned>(UsersOf(ordinal, users, 64));
  const unsigned room = *count;
  *count = found;
  if (room < found) return kNvmlInsufficientSize;
  for (unsigned i = 0; i < found; ++i) {
    infos[i] = {users[i].pid, users[i].memory_used_bytes, ~0u, ~0u};
  }
  return kNvmlSuccess;
}

}  // extern "C"
