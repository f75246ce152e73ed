// A made-up libnvidia-ml.so.1 of two GPUs. FAKE_NVML says how it behaves: "mig" (GPU 1 in MIG mode,
// without utilisation), "hang" (power never answers), "crash" (temperature aborts), "none" (no
// driver). FAKE_NVML_PID is a process that uses GPU 1. Built with FAKE_NVML_OLD it is a library of
// ten years ago, which lacks half of the functions.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace {

constexpr int kNoDriver = 9;
constexpr int kNotSupported = 3;

bool Is(const char* mode) {
  const char* value = getenv("FAKE_NVML");
  return value != nullptr && strcmp(value, mode) == 0;
}

uintptr_t IndexOf(void* device) { return reinterpret_cast<uintptr_t>(device) - 1; }

void Copy(char* out, unsigned size, const char* text) {
  strncpy(out, text, size - 1);
  out[size - 1] = '\0';
}

int Number(unsigned* out, unsigned value) {
  *out = value;
  return 0;
}

}  // namespace

extern "C" {

const char* nvmlErrorString(int status) {
  return status == kNotSupported ? "Not Supported" : "Driver Not Loaded";
}
int nvmlInit() { return Is("none") ? kNoDriver : 0; }
int nvmlDeviceGetCount(unsigned* count) { return Number(count, 2); }
int nvmlDeviceGetHandleByIndex(unsigned index, void** device) {
  *device = reinterpret_cast<void*>(uintptr_t{index} + 1);
  return 0;
}
int nvmlDeviceGetName(void*, char* name, unsigned size) {
  Copy(name, size, "Fake H100");
  return 0;
}
int nvmlDeviceGetUUID(void* device, char* uuid, unsigned size) {
  Copy(uuid, size, IndexOf(device) == 0 ? "GPU-aaaa" : "GPU-bbbb");
  return 0;
}
int nvmlDeviceGetUtilizationRates(void* device, unsigned* rates) {
  if (Is("mig") && IndexOf(device) == 1) return kNotSupported;
  rates[0] = 87;
  rates[1] = 45;
  return 0;
}
int nvmlDeviceGetMemoryInfo(void*, unsigned long long* memory) {
  memory[0] = 80ull << 30;
  memory[1] = 70ull << 30;
  memory[2] = 10ull << 30;
  return 0;
}
int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  if (Is("hang")) {
    for (;;) pause();
  }
  return Number(milliwatts, 345678);
}
int nvmlDeviceGetTemperature(void*, int, unsigned* celsius) {
  if (Is("crash")) abort();
  return Number(celsius, 66);
}
struct OldProcess {
  unsigned pid;
  unsigned long long memory;
};
#ifdef FAKE_NVML_OLD
int nvmlDeviceGetComputeRunningProcesses(void* device, unsigned* count, OldProcess* processes) {
  const char* pid = getenv("FAKE_NVML_PID");
  *count = pid != nullptr && IndexOf(device) == 1 ? 1 : 0;
  if (*count == 1) processes[0] = {static_cast<unsigned>(atoi(pid)), 0};
  return 0;
}
#else
struct Process {
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance;
  unsigned compute_instance;
};
int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, Process* processes) {
  const char* pid = getenv("FAKE_NVML_PID");
  *count = pid != nullptr && IndexOf(device) == 1 ? 2 : 1;
  processes[0] = {1, 0, 0, 0};
  if (*count == 2) processes[1] = {static_cast<unsigned>(atoi(pid)), 0, 0, 0};
  return 0;
}
int nvmlSystemGetDriverVersion(char* version, unsigned size) {
  Copy(version, size, "580.65.06");
  return 0;
}
int nvmlDeviceGetMigMode(void* device, unsigned* current, unsigned* pending) {
  *pending = *current = Is("mig") && IndexOf(device) == 1;
  return 0;
}
int nvmlDeviceGetClockInfo(void*, int type, unsigned* mhz) {
  return Number(mhz, type == 1 ? 1410 : 2619);
}
int nvmlDeviceGetMaxClockInfo(void*, int, unsigned* mhz) { return Number(mhz, 1980); }
int nvmlDeviceGetCurrentClocksEventReasons(void* device, unsigned long long* reasons) {
  *reasons = IndexOf(device) == 0 ? 0x4 : 0x1;  // SW power cap; idle
  return 0;
}
int nvmlDeviceGetEnforcedPowerLimit(void*, unsigned* milliwatts) {
  return Number(milliwatts, 350000);
}
int nvmlDeviceGetCurrPcieLinkGeneration(void*, unsigned* value) { return Number(value, 1); }
int nvmlDeviceGetCurrPcieLinkWidth(void*, unsigned* value) { return Number(value, 4); }
int nvmlDeviceGetMaxPcieLinkGeneration(void*, unsigned* value) { return Number(value, 5); }
int nvmlDeviceGetMaxPcieLinkWidth(void*, unsigned* value) { return Number(value, 16); }
int nvmlDeviceGetPcieThroughput(void*, int counter, unsigned* kilobytes) {
  usleep(20'000);
  return Number(kilobytes, counter == 0 ? 1000 : 250'000);
}
#endif
}
