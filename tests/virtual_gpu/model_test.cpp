// The device model, through CUDA's own calls. Each test is a process of its own under ctest.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <thread>

#include "tests/virtual_gpu/cupti_client.h"
#include "tests/virtual_gpu/model/engine.h"
#include "tests/virtual_gpu/vgpu.h"

namespace vgpu::testing {
namespace {

// Long beside what a busy machine may delay a launch.
constexpr double kKernelNs = 100e6;

const void* Kernel(double nanoseconds, const char* name = "_Z6kernelv") {
  VgpuKernelSpec spec = {};
  spec.name = name;
  spec.least_ns = nanoseconds;
  return vgpuDeclareKernel(nullptr, &spec);
}

void Launch(const void* kernel, cudaStream_t stream) {
  ASSERT_EQ(cudaLaunchKernel(kernel, dim3(1), dim3(32), nullptr, 0, stream), cudaSuccess);
}

double MsSince(int64_t begin_ns) { return static_cast<double>(vgpuNowNs() - begin_ns) * 1e-6; }

struct Times {
  uint64_t start;
  uint64_t end;
};

// Of the kernels, by the order of their launches.
std::vector<Times> KernelTimes() {
  std::vector<Times> times;
  for (const auto& kernel :
       Select<CUpti_ActivityKernel10>(AllRecords(), CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)) {
    times.push_back({kernel.start, kernel.end});
  }
  return times;
}

TEST(VirtualGpuModel, OnlyBlockingCallsWaitForTheDevice) {
  const void* kernel = Kernel(kKernelNs);
  ASSERT_EQ(cudaFree(nullptr), cudaSuccess);
  const int64_t begin = vgpuNowNs();
  Launch(kernel, nullptr);
  EXPECT_EQ(cudaStreamQuery(nullptr), cudaErrorNotReady);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_GE(MsSince(begin), 100);
  EXPECT_EQ(cudaStreamQuery(nullptr), cudaSuccess);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST(VirtualGpuModel, KernelsOfAStreamFollowEachOther) {
  Start({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  const void* kernel = Kernel(kKernelNs);
  for (int i = 0; i < 4; ++i) Launch(kernel, nullptr);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  const auto times = KernelTimes();
  ASSERT_EQ(times.size(), 4u);
  for (size_t i = 1; i < 4; ++i) {
    EXPECT_GE(times[i].start, times[i - 1].end);
    EXPECT_LE(times[i].start, times[i - 1].end + 1500);
  }
}

TEST(VirtualGpuModel, StreamsOverlapUpToTheLimit) {
  ASSERT_EQ(vgpuSet("kernel_slots", 2, 2), 0);
  Start({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  const void* kernel = Kernel(kKernelNs);
  for (int i = 0; i < 3; ++i) {
    cudaStream_t stream;
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    Launch(kernel, stream);
  }
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  const auto times = KernelTimes();
  ASSERT_EQ(times.size(), 3u);
  EXPECT_LT(times[1].start, times[0].end);
  EXPECT_GE(times[2].start, std::min(times[0].end, times[1].end));
}

TEST(VirtualGpuModel, TheDefaultStreamIsOrderedWithBlockingStreamsOnly) {
  Start({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  const void* kernel = Kernel(kKernelNs);
  cudaStream_t blocking;
  cudaStream_t free;
  ASSERT_EQ(cudaStreamCreate(&blocking), cudaSuccess);
  ASSERT_EQ(cudaStreamCreateWithFlags(&free, cudaStreamNonBlocking), cudaSuccess);
  Launch(kernel, blocking);
  Launch(kernel, nullptr);
  Launch(kernel, blocking);
  Launch(kernel, free);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  const auto times = KernelTimes();
  ASSERT_EQ(times.size(), 4u);
  EXPECT_GE(times[1].start, times[0].end);
  EXPECT_GE(times[2].start, times[1].end);
  EXPECT_LT(times[3].start, times[0].end);
}

TEST(VirtualGpuModel, AStreamWaitsForAnEventOfAnother) {
  Start({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  const void* kernel = Kernel(kKernelNs);
  cudaStream_t first;
  cudaStream_t second;
  cudaEvent_t event;
  ASSERT_EQ(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);  // never recorded
  Launch(kernel, first);
  ASSERT_EQ(cudaEventRecord(event, first), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  ASSERT_EQ(cudaStreamWaitEvent(second, event, 0), cudaSuccess);
  Launch(kernel, second);
  ASSERT_EQ(cudaEventSynchronize(event), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  const auto times = KernelTimes();
  ASSERT_EQ(times.size(), 2u);
  EXPECT_GE(times[1].start, times[0].end);
}

TEST(VirtualGpuModel, EventsMeasureWhatRanBetweenThem) {
  cudaEvent_t begin;
  cudaEvent_t end;
  ASSERT_EQ(cudaEventCreate(&begin), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&end), cudaSuccess);
  Launch(Kernel(kKernelNs), nullptr);  // the device does not wait for the host in between
  ASSERT_EQ(cudaEventRecord(begin, nullptr), cudaSuccess);
  Launch(Kernel(5e6), nullptr);
  ASSERT_EQ(cudaEventRecord(end, nullptr), cudaSuccess);
  float ms = 0;
  EXPECT_EQ(cudaEventElapsedTime(&ms, begin, end), cudaErrorNotReady);
  ASSERT_EQ(cudaEventSynchronize(end), cudaSuccess);
  ASSERT_EQ(cudaEventElapsedTime(&ms, begin, end), cudaSuccess);
  EXPECT_GE(ms, 5.0f);
  EXPECT_LT(ms, 5.1f);
}

TEST(VirtualGpuModel, ALaunchWaitsWhenTheQueueIsFull) {
  ASSERT_EQ(vgpuSet("queue_depth", 4, 4), 0);
  const void* kernel = Kernel(kKernelNs);
  ASSERT_EQ(cudaFree(nullptr), cudaSuccess);
  const int64_t begin = vgpuNowNs();
  for (int i = 0; i < 4; ++i) Launch(kernel, nullptr);
  EXPECT_LT(MsSince(begin), 80);
  Launch(kernel, nullptr);  // the first must have ended
  EXPECT_GE(MsSince(begin), 100);
}

TEST(VirtualGpuModel, ScaleZeroWaitsForNothing) {
  ASSERT_EQ(vgpuSet("scale", 0, 0), 0);
  const void* kernel = Kernel(1e9);
  const int64_t begin = vgpuNowNs();
  for (int i = 0; i < 10'000; ++i) Launch(kernel, nullptr);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_LT(MsSince(begin), 2000);
}

TEST(VirtualGpuModel, PinnedCopiesReturnAtOnceAndPageableOnesWait) {
  for (const char* rate :
       {"h2d_pinned_gbps", "d2h_pinned_gbps", "h2d_pageable_gbps", "d2h_pageable_gbps"}) {
    ASSERT_EQ(vgpuSet(rate, 1, 1), 0);
  }
  constexpr size_t kBytes = 200'000'000;  // 200 ms
  void* device = nullptr;
  void* pinned = nullptr;
  ASSERT_EQ(cudaMalloc(&device, kBytes), cudaSuccess);
  ASSERT_EQ(cudaMallocHost(&pinned, kBytes), cudaSuccess);
  const std::unique_ptr<char[]> pageable(new char[kBytes]);  // never touched
  const auto to_device = [&](const void* source) {
    const int64_t begin = vgpuNowNs();
    EXPECT_EQ(cudaMemcpyAsync(device, source, kBytes, cudaMemcpyHostToDevice, nullptr),
              cudaSuccess);
    return MsSince(begin);
  };
  const auto to_host = [&](void* target) {
    const int64_t begin = vgpuNowNs();
    EXPECT_EQ(cudaMemcpyAsync(target, device, kBytes, cudaMemcpyDeviceToHost, nullptr),
              cudaSuccess);
    return MsSince(begin);
  };
  EXPECT_LT(to_device(pinned), 150);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_GE(to_device(pageable.get()), 200);
  EXPECT_GE(to_host(pageable.get()), 200);
  ASSERT_EQ(cudaHostRegister(pageable.get(), kBytes, 0), cudaSuccess);
  EXPECT_LT(to_host(pageable.get()), 150);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  ASSERT_EQ(cudaHostUnregister(pageable.get()), cudaSuccess);
}

TEST(VirtualGpuModel, ASmallPageableCopyToTheDeviceReturnsBeforeItsTurn) {
  void* device = nullptr;
  ASSERT_EQ(cudaMalloc(&device, 4096), cudaSuccess);
  float value = 1;
  const int64_t begin = vgpuNowNs();
  Launch(Kernel(kKernelNs), nullptr);
  ASSERT_EQ(cudaMemcpyAsync(device, &value, sizeof value, cudaMemcpyHostToDevice, nullptr),
            cudaSuccess);
  EXPECT_LT(MsSince(begin), 80);
  // Reading it back waits for the kernel: what .item() does.
  ASSERT_EQ(cudaMemcpyAsync(&value, device, sizeof value, cudaMemcpyDeviceToHost, nullptr),
            cudaSuccess);
  EXPECT_GE(MsSince(begin), 90);
}

TEST(VirtualGpuModel, CopiesInBothDirectionsOverlap) {
  for (const char* rate : {"h2d_pinned_gbps", "d2h_pinned_gbps"})
    ASSERT_EQ(vgpuSet(rate, 0.5, 0.5), 0);
  Start({CUPTI_ACTIVITY_KIND_MEMCPY});
  constexpr size_t kBytes = 50 << 20;  // 105 ms
  void* device = nullptr;
  void* pinned = nullptr;
  ASSERT_EQ(cudaMalloc(&device, 3 * kBytes), cudaSuccess);
  ASSERT_EQ(cudaMallocHost(&pinned, 3 * kBytes), cudaSuccess);
  cudaStream_t streams[3];
  for (cudaStream_t& stream : streams) {
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  }
  ASSERT_EQ(cudaMemcpyAsync(device, pinned, kBytes, cudaMemcpyHostToDevice, streams[0]),
            cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(pinned, device, kBytes, cudaMemcpyDeviceToHost, streams[1]),
            cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(device, pinned, kBytes, cudaMemcpyHostToDevice, streams[2]),
            cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  const auto copies = Select<CUpti_ActivityMemcpy6>(AllRecords(), CUPTI_ACTIVITY_KIND_MEMCPY);
  ASSERT_EQ(copies.size(), 3u);
  EXPECT_LT(copies[1].start, copies[0].end);
  EXPECT_GE(copies[2].start, copies[0].end);  // one engine a direction
}

TEST(VirtualGpuModel, MemoryEndsAndComesBack) {
  ASSERT_EQ(vgpuSet("memory_mib", 100, 100), 0);
  void* first = nullptr;
  void* second = nullptr;
  ASSERT_EQ(cudaMalloc(&first, 80 << 20), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&second, 80 << 20), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  ASSERT_EQ(cudaMemGetInfo(&free_bytes, &total_bytes), cudaSuccess);
  EXPECT_EQ(total_bytes, size_t{100} << 20);
  EXPECT_EQ(free_bytes, size_t{20} << 20);
  ASSERT_EQ(cudaFree(first), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&second, 80 << 20), cudaSuccess);
  EXPECT_EQ(cudaFree(first), cudaErrorInvalidValue);
}

TEST(VirtualGpuModel, PointersSayWhatTheyAre) {
  void* device = nullptr;
  void* pinned = nullptr;
  void* managed = nullptr;
  int local = 0;
  ASSERT_EQ(cudaMalloc(&device, 1000), cudaSuccess);
  ASSERT_EQ(cudaMallocHost(&pinned, 1000), cudaSuccess);
  ASSERT_EQ(cudaMallocManaged(&managed, 1000, cudaMemAttachGlobal), cudaSuccess);
  const auto type = [](const void* pointer) {
    cudaPointerAttributes attributes;
    EXPECT_EQ(cudaPointerGetAttributes(&attributes, pointer), cudaSuccess);
    return attributes.type;
  };
  EXPECT_EQ(type(static_cast<char*>(device) + 999), cudaMemoryTypeDevice);
  EXPECT_EQ(type(static_cast<char*>(pinned) + 999), cudaMemoryTypeHost);
  EXPECT_EQ(type(managed), cudaMemoryTypeManaged);
  EXPECT_EQ(type(&local), cudaMemoryTypeUnregistered);
}

TEST(VirtualGpuModel, DevicesWorkIndependently) {
  ASSERT_EQ(vgpuSet("devices", 2, 2), 0);
  Start({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY2});
  int count = 0;
  ASSERT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  ASSERT_EQ(count, 2);
  EXPECT_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
  const void* kernel = Kernel(kKernelNs);
  void* memory[2];
  for (int device : {0, 1}) {
    ASSERT_EQ(cudaSetDevice(device), cudaSuccess);
    ASSERT_EQ(cudaMalloc(&memory[device], 1 << 20), cudaSuccess);
    Launch(kernel, nullptr);
  }
  ASSERT_EQ(cudaMemcpyPeerAsync(memory[0], 0, memory[1], 1, 1 << 20, nullptr), cudaSuccess);
  for (int device : {0, 1}) {
    ASSERT_EQ(cudaSetDevice(device), cudaSuccess);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  }
  const auto records = AllRecords();
  const auto kernels =
      Select<CUpti_ActivityKernel10>(records, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].deviceId, 0u);
  EXPECT_EQ(kernels[1].deviceId, 1u);
  EXPECT_NE(kernels[0].contextId, kernels[1].contextId);
  EXPECT_LT(kernels[1].start, kernels[0].end);
  const auto copies = Select<CUpti_ActivityMemcpyPtoP4>(records, CUPTI_ACTIVITY_KIND_MEMCPY2);
  ASSERT_EQ(copies.size(), 1u);
  EXPECT_EQ(copies[0].srcDeviceId, 1u);
  EXPECT_EQ(copies[0].dstDeviceId, 0u);
  EXPECT_GE(copies[0].start, kernels[1].end);  // in device 1's default stream
}

TEST(VirtualGpuModel, WrongLaunchesAreRefused) {
  const void* kernel = Kernel(1000);
  int nobody = 0;
  EXPECT_EQ(cudaLaunchKernel(&nobody, dim3(1), dim3(1), nullptr, 0, nullptr),
            cudaErrorInvalidDeviceFunction);
  EXPECT_EQ(cudaLaunchKernel(kernel, dim3(1), dim3(2048), nullptr, 0, nullptr),
            cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaLaunchKernel(kernel, dim3(0), dim3(1), nullptr, 0, nullptr),
            cudaErrorInvalidConfiguration);
  VgpuCounts counts;
  vgpuGetCounts(&counts);
  EXPECT_EQ(counts.kernels, 0u);
}

TEST(VirtualGpuModel, KernelTimesFollowTheirModel) {
  Start({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  VgpuKernelSpec spec = {};
  spec.name = "_Z3addPfi";
  spec.least_ns = 1000;
  spec.greatest_ns = 2000;
  const void* random = vgpuDeclareKernel(nullptr, &spec);
  spec.greatest_ns = 0;
  spec.ns_per_thread = 0.5;
  const void* by_threads = vgpuDeclareKernel(nullptr, &spec);
  for (int i = 0; i < 100; ++i) Launch(random, nullptr);
  ASSERT_EQ(cudaLaunchKernel(by_threads, dim3(100), dim3(256), nullptr, 0, nullptr), cudaSuccess);
  vgpuNextKernelTakes(77'000);
  Launch(random, nullptr);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  const auto times = KernelTimes();
  ASSERT_EQ(times.size(), 102u);
  uint64_t least = UINT64_MAX;
  uint64_t greatest = 0;
  for (size_t i = 0; i < 100; ++i) {
    least = std::min(least, times[i].end - times[i].start);
    greatest = std::max(greatest, times[i].end - times[i].start);
  }
  EXPECT_GE(least, 1000u);
  EXPECT_LE(greatest, 2000u);
  EXPECT_GT(greatest - least, 500u);
  EXPECT_EQ(times[100].end - times[100].start, 1000u + 12'800u);
  EXPECT_EQ(times[101].end - times[101].start, 77'000u);
}

TEST(VirtualGpuModel, TheDriverApiWorksWithoutTheRuntime) {
  Start({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  Kernel(1000, "triton_kernel");
  CUcontext context;
  EXPECT_EQ(cuCtxGetCurrent(&context), CUDA_ERROR_NOT_INITIALIZED);
  ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxCreate(&context, nullptr, 0, 0), CUDA_SUCCESS);
  CUmodule module;
  CUfunction function;
  ASSERT_EQ(cuModuleLoadData(&module, "cubin"), CUDA_SUCCESS);
  ASSERT_EQ(cuModuleGetFunction(&function, module, "triton_kernel"), CUDA_SUCCESS);
  EXPECT_EQ(cuModuleGetFunction(&function, module, "another"), CUDA_ERROR_NOT_FOUND);
  ASSERT_EQ(cuModuleGetFunction(&function, module, "triton_kernel"), CUDA_SUCCESS);
  void* launch = nullptr;
  CUdriverProcAddressQueryResult status;
  ASSERT_EQ(cuGetProcAddress("cuLaunchKernelEx", &launch, 12000, 0, &status), CUDA_SUCCESS);
  ASSERT_EQ(launch, reinterpret_cast<void*>(&cuLaunchKernelEx));
  CUlaunchConfig config = {};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = 64;
  config.blockDimY = config.blockDimZ = 1;
  ASSERT_EQ(cuLaunchKernelEx(&config, function, nullptr, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(KernelTimes().size(), 1u);
}

TEST(VirtualGpuModel, HostFunctionsAreCalledInTheirTurn) {
  struct Seen {
    int64_t at_ns = 0;
    std::thread::id thread;
  } seen;
  ASSERT_EQ(cudaFree(nullptr), cudaSuccess);
  const int64_t begin = vgpuNowNs();
  Launch(Kernel(kKernelNs), nullptr);
  const auto note = [](void* argument) {
    static_cast<Seen*>(argument)->at_ns = vgpuNowNs();
    static_cast<Seen*>(argument)->thread = std::this_thread::get_id();
  };
  ASSERT_EQ(cudaLaunchHostFunc(nullptr, note, &seen), cudaSuccess);
  EXPECT_LT(MsSince(begin), 80);
  ASSERT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
  EXPECT_GE(seen.at_ns, begin + 100'000'000);
  EXPECT_NE(seen.thread, std::this_thread::get_id());
}

extern "C" {
void** __cudaRegisterFatBinary(void*);
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, uint3*, uint3*, dim3*,
                            dim3*, int*);
unsigned __cudaPushCallConfiguration(dim3, dim3, size_t, CUstream_st*);
cudaError_t __cudaPopCallConfiguration(dim3*, dim3*, size_t*, void*);
}

TEST(VirtualGpuModel, KernelsOfNvccAreLaunchedAsItsCodeDoes) {
  Start({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  static const char stub = 0;
  char device_name[] = "_Z3addPfS_i";
  __cudaRegisterFunction(__cudaRegisterFatBinary(nullptr), &stub, device_name, device_name, -1,
                         nullptr, nullptr, nullptr, nullptr, nullptr);
  ASSERT_EQ(__cudaPushCallConfiguration(dim3(3), dim3(5), 7, nullptr), 0u);
  dim3 grid;
  dim3 block;
  size_t shared_bytes = 0;
  cudaStream_t stream = nullptr;
  ASSERT_EQ(__cudaPopCallConfiguration(&grid, &block, &shared_bytes, &stream), cudaSuccess);
  ASSERT_EQ(cudaLaunchKernel(&stub, grid, block, nullptr, shared_bytes, stream), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  const auto kernels =
      Select<CUpti_ActivityKernel10>(AllRecords(), CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_STREQ(kernels[0].name, "_Z3addPfS_i");
  EXPECT_EQ(kernels[0].gridX, 3);
  EXPECT_EQ(kernels[0].blockX, 5);
  EXPECT_EQ(kernels[0].dynamicSharedMemory, 7);
}

// The same calls from several threads at once lose nothing.
TEST(VirtualGpuModel, ThreadsLaunchAtTheSameTime) {
  ASSERT_EQ(vgpuSet("scale", 0, 0), 0);
  Start({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  const void* kernel = Kernel(1000);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([kernel] {
      cudaStream_t stream;
      ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
      for (int i = 0; i < 5000; ++i) Launch(kernel, stream);
    });
  }
  for (std::thread& thread : threads) thread.join();
  auto kernels =
      Select<CUpti_ActivityKernel10>(AllRecords(), CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  EXPECT_EQ(kernels.size(), 20'000u);
  // Buffers come in any order.
  std::sort(kernels.begin(), kernels.end(),
            [](const auto& a, const auto& b) { return a.correlationId < b.correlationId; });
  std::map<uint32_t, uint64_t> end_of_stream;
  for (const auto& kernel_record : kernels) {
    uint64_t& end = end_of_stream[kernel_record.streamId];
    EXPECT_GE(kernel_record.start, end);
    end = kernel_record.end;
  }
  EXPECT_EQ(end_of_stream.size(), 4u);
}

// An obvious twin: every nanosecond of a slot is marked.
TEST(VirtualGpuEngine, TakesTheFirstFreeTimeAsTheTwinDoes) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const int slots = 1 + static_cast<int>(random() % 3);
    Engine engine(slots);
    std::vector<std::vector<bool>> taken(static_cast<size_t>(slots), std::vector<bool>(2000));
    for (int i = 0; i < 40; ++i) {
      const auto ready = static_cast<int64_t>(random() % 400);
      const auto duration = 1 + static_cast<int64_t>(random() % 30);
      int64_t expected = INT64_MAX;
      size_t chosen = 0;
      for (size_t slot = 0; slot < taken.size(); ++slot) {
        for (int64_t begin = ready; begin < expected; ++begin) {
          const auto first = taken[slot].begin() + begin;
          if (std::find(first, first + duration, true) != first + duration) continue;
          expected = begin;
          chosen = slot;
          break;
        }
      }
      ASSERT_EQ(engine.Reserve(ready, duration, 0), expected);
      const auto first = taken[chosen].begin() + expected;
      std::fill(first, first + duration, true);
    }
  }
}

}  // namespace
}  // namespace vgpu::testing
