#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/virtual_gpu/nvml/nvml_abi.h"
#include "tests/virtual_gpu/vgpu.h"

namespace vgpu::testing {
namespace {

// The library, loaded as a tool loads it, and this process's own state file.
class VirtualGpuNvml : public ::testing::Test {
 protected:
  void SetUp() override {
    state_ = std::filesystem::temp_directory_path() / ("vgpu-state-" + std::to_string(getpid()));
    setenv("VGPU_STATE", state_.c_str(), 1);
    library_ = dlopen(TEST_LIBRARIES "/libnvidia-ml.so.1", RTLD_NOW);
    ASSERT_NE(library_, nullptr) << dlerror();
  }
  void TearDown() override { std::filesystem::remove(state_); }

  template <class... Arguments>
  NvmlReturn Call(const char* function, Arguments... arguments) {
    auto* found = reinterpret_cast<NvmlReturn (*)(Arguments...)>(dlsym(library_, function));
    return found == nullptr ? kNvmlFunctionNotFound : found(arguments...);
  }
  NvmlDevice Device(unsigned index = 0) {
    NvmlDevice device = nullptr;
    EXPECT_EQ(Call("nvmlDeviceGetHandleByIndex_v2", index, &device), kNvmlSuccess);
    return device;
  }

  std::filesystem::path state_;
  void* library_ = nullptr;
};

TEST_F(VirtualGpuNvml, SaysWhatTheMachineHas) {
  ASSERT_EQ(vgpuSet("devices", 2, 2), 0);
  unsigned count = 0;
  EXPECT_EQ(Call("nvmlDeviceGetCount_v2", &count), kNvmlUninitialized);
  ASSERT_EQ(Call("nvmlInit_v2"), kNvmlSuccess);
  ASSERT_EQ(Call("nvmlDeviceGetCount_v2", &count), kNvmlSuccess);
  EXPECT_EQ(count, 2u);
  NvmlDevice third = nullptr;
  EXPECT_EQ(Call("nvmlDeviceGetHandleByIndex_v2", 2u, &third), kNvmlInvalidArgument);
  char name[96];
  ASSERT_EQ(Call("nvmlDeviceGetName", Device(), &name[0], unsigned{sizeof name}), kNvmlSuccess);
  EXPECT_STREQ(name, "Virtual GPU (trainprof)");
  EXPECT_EQ(Call("nvmlDeviceGetName", Device(), &name[0], 5u), kNvmlInsufficientSize);
  char uuid[96];
  ASSERT_EQ(Call("nvmlDeviceGetUUID", Device(1), &uuid[0], unsigned{sizeof uuid}), kNvmlSuccess);
  NvmlDevice same = nullptr;
  ASSERT_EQ(Call("nvmlDeviceGetHandleByUUID", static_cast<const char*>(uuid), &same), kNvmlSuccess);
  EXPECT_EQ(same, Device(1));
  unsigned generation = 0;
  ASSERT_EQ(Call("nvmlDeviceGetCurrPcieLinkGeneration", Device(), &generation), kNvmlSuccess);
  EXPECT_EQ(generation, 5u);
}

TEST_F(VirtualGpuNvml, FollowsWhatTheDeviceDoes) {
  ASSERT_EQ(Call("nvmlInit_v2"), kNvmlSuccess);
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 64 << 20), cudaSuccess);
  NvmlMemory info = {};
  ASSERT_EQ(Call("nvmlDeviceGetMemoryInfo", Device(), &info), kNvmlSuccess);
  EXPECT_EQ(info.used, 64u << 20);
  EXPECT_EQ(info.total, 81920ull << 20);
  NvmlUtilization utilization = {};
  ASSERT_EQ(Call("nvmlDeviceGetUtilizationRates", Device(), &utilization), kNvmlSuccess);
  EXPECT_EQ(utilization.gpu, 0u);
  unsigned idle_mw = 0;
  ASSERT_EQ(Call("nvmlDeviceGetPowerUsage", Device(), &idle_mw), kNvmlSuccess);
  // Half of the time busy.
  VgpuKernelSpec spec = {};
  spec.name = "_Z1kv";
  spec.least_ns = 50e6;
  const void* kernel = vgpuDeclareKernel(nullptr, &spec);
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(cudaLaunchKernel(kernel, dim3(1), dim3(1), nullptr, 0, nullptr), cudaSuccess);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    usleep(50'000);
  }
  ASSERT_EQ(Call("nvmlDeviceGetUtilizationRates", Device(), &utilization), kNvmlSuccess);
  EXPECT_GE(utilization.gpu, 10u);  // less where the machine delayed the test
  EXPECT_LE(utilization.gpu, 55u);
  unsigned busy_mw = 0;
  ASSERT_EQ(Call("nvmlDeviceGetPowerUsage", Device(), &busy_mw), kNvmlSuccess);
  EXPECT_GT(busy_mw, idle_mw);
  NvmlProcessInfo users[4];
  unsigned count = 4;
  ASSERT_EQ(Call("nvmlDeviceGetComputeRunningProcesses_v3", Device(), &count, &users[0]),
            kNvmlSuccess);
  ASSERT_EQ(count, 1u);
  EXPECT_EQ(users[0].pid, static_cast<unsigned>(getpid()));
  EXPECT_EQ(users[0].used_memory_bytes, 64u << 20);
}

TEST_F(VirtualGpuNvml, FaultsAreItsErrors) {
  ASSERT_EQ(vgpuSetFault("no_driver", nullptr), 0);
  EXPECT_EQ(Call("nvmlInit_v2"), kNvmlDriverNotLoaded);
  vgpuClearFaults();
  ASSERT_EQ(Call("nvmlInit_v2"), kNvmlSuccess);
  const NvmlDevice device = Device();
  unsigned long long reasons = 1;
  ASSERT_EQ(vgpuSetFault("nvml_missing_function", nullptr), 0);
  EXPECT_EQ(Call("nvmlDeviceGetCurrentClocksEventReasons", device, &reasons),
            kNvmlFunctionNotFound);
  EXPECT_EQ(Call("nvmlDeviceGetCurrentClocksThrottleReasons", device, &reasons), kNvmlSuccess);
  EXPECT_EQ(reasons, 0u);
  ASSERT_EQ(vgpuSetFault("mig", nullptr), 0);
  unsigned current = 0;
  unsigned pending = 0;
  ASSERT_EQ(Call("nvmlDeviceGetMigMode", device, &current, &pending), kNvmlSuccess);
  EXPECT_EQ(current, 1u);
  ASSERT_EQ(vgpuSetFault("nvml_lost", "2"), 0);
  NvmlUtilization utilization = {};
  EXPECT_EQ(Call("nvmlDeviceGetUtilizationRates", device, &utilization), kNvmlSuccess);
  EXPECT_EQ(Call("nvmlDeviceGetUtilizationRates", device, &utilization), kNvmlSuccess);
  EXPECT_EQ(Call("nvmlDeviceGetUtilizationRates", device, &utilization), kNvmlGpuIsLost);
}

}  // namespace
}  // namespace vgpu::testing
