// Each fault by its name. Those that a process must have from its start are in injection_test.cpp.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <unwind.h>

#include <cuda.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <thread>

#include "tests/virtual_gpu/cupti_client.h"
#include "tests/virtual_gpu/vgpu.h"

namespace vgpu::testing {
namespace {

const void* Kernel() {
  VgpuKernelSpec spec = {};
  spec.name = "_Z1kv";
  spec.least_ns = 1000;
  return vgpuDeclareKernel(nullptr, &spec);
}

void LaunchMany(int count) {
  const void* kernel = Kernel();
  for (int i = 0; i < count; ++i) {
    ASSERT_EQ(cudaLaunchKernel(kernel, dim3(1), dim3(1), nullptr, 0, nullptr), cudaSuccess);
  }
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

void Fault(const char* name, const char* argument = nullptr) {
  ASSERT_EQ(vgpuSetFault(name, argument), 0) << name;
}

std::vector<CUpti_ActivityKernel10> Kernels() {
  return Select<CUpti_ActivityKernel10>(AllRecords(), CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
}

TEST(VirtualGpuFaults, AnUnknownOneIsRefused) { EXPECT_EQ(vgpuSetFault("no_drivr", nullptr), -1); }

TEST(VirtualGpuFaults, WithoutADriverCuptiAnswersAsTheRealOneDoes) {
  Fault("no_driver");
  CUpti_SubscriberHandle subscriber;
  EXPECT_EQ(cuptiSubscribe(&subscriber, nullptr, nullptr), CUPTI_ERROR_UNKNOWN);
  EXPECT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY), CUPTI_ERROR_UNKNOWN);
  EXPECT_EQ(cuptiActivityFlushAll(0), CUPTI_ERROR_UNKNOWN);
  uint32_t version = 0;
  EXPECT_EQ(cuptiGetVersion(&version), CUPTI_SUCCESS);
  EXPECT_EQ(version, static_cast<uint32_t>(CUPTI_API_VERSION));
  const char* name = nullptr;
  EXPECT_EQ(cuptiGetCallbackName(CUPTI_CB_DOMAIN_RUNTIME_API, 1, &name), CUPTI_SUCCESS);
  size_t dropped = 1;
  EXPECT_EQ(cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped), CUPTI_SUCCESS);
}

TEST(VirtualGpuFaults, SubscribingIsRefused) {
  CUpti_SubscriberHandle subscriber;
  char holder[64] = "";
  CUpti_SubscriberParams params = {};
  params.structSize = CUpti_SubscriberParams_STRUCT_SIZE;
  params.oldSubscriberName = holder;
  params.oldSubscriberSize = sizeof holder;
  Fault("another_subscriber", "Nsight Compute");
  EXPECT_EQ(cuptiSubscribe_v2(&subscriber, nullptr, nullptr, &params),
            CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
  EXPECT_STREQ(holder, "Nsight Compute");
  vgpuClearFaults();
  Fault("subscribe_unknown_error");
  EXPECT_EQ(cuptiSubscribe(&subscriber, nullptr, nullptr), CUPTI_ERROR_UNKNOWN);
  vgpuClearFaults();
  Fault("missing_function");
  EXPECT_EQ(cuptiSubscribe_v2(&subscriber, nullptr, nullptr, &params),
            CUPTI_ERROR_API_NOT_IMPLEMENTED);
  vgpuClearFaults();
  Fault("old_driver");
  EXPECT_EQ(cuptiSubscribe(&subscriber, nullptr, nullptr), CUPTI_ERROR_NOT_INITIALIZED);
  vgpuClearFaults();
  Fault("slow_setup", "60");
  const int64_t begin = vgpuNowNs();
  EXPECT_EQ(cuptiSubscribe(&subscriber, nullptr, nullptr), CUPTI_SUCCESS);
  EXPECT_GE(vgpuNowNs() - begin, 60'000'000);
}

TEST(VirtualGpuFaults, EnablingIsRefused) {
  Fault("enable_fails", "1");
  EXPECT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY), CUPTI_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET), CUPTI_SUCCESS);
  vgpuClearFaults();
  Fault("insufficient_privileges");
  EXPECT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY), CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
  EXPECT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME), CUPTI_SUCCESS);
}

// As CUPTI before 13.3 update 1: CUDA knows the slice, the record says the whole GPU.
TEST(VirtualGpuFaults, ASliceIsRecordedUnderTheUuidOfItsGpuAndWithoutAName) {
  Fault("mig");
  Start({CUPTI_ACTIVITY_KIND_DEVICE, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  LaunchMany(3);
  EXPECT_EQ(Kernels().size(), 3u);
  const auto devices = Select<CUpti_ActivityDevice5>(AllRecords(), CUPTI_ACTIVITY_KIND_DEVICE);
  ASSERT_FALSE(devices.empty());
  EXPECT_EQ(devices[0].isMigEnabled, 1);
  EXPECT_EQ(devices[0].name, nullptr);
  cudaDeviceProp properties;
  ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
  EXPECT_NE(memcmp(&properties.uuid, &devices[0].uuid, sizeof properties.uuid), 0);
  vgpuClearFaults();
  ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
  EXPECT_EQ(memcmp(&properties.uuid, &devices[0].uuid, sizeof properties.uuid), 0);
}

TEST(VirtualGpuFaults, RecordsAreDroppedAndCounted) {
  Fault("drop_records", "7");
  Start({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  LaunchMany(20);
  EXPECT_EQ(Kernels().size(), 13u);
  size_t dropped = 0;
  ASSERT_EQ(cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped), CUPTI_SUCCESS);
  EXPECT_EQ(dropped, 7u);
}

TEST(VirtualGpuFaults, AFlushHangs) {
  Fault("flush_hangs", "1");
  Start({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  LaunchMany(1);
  const int64_t begin = vgpuNowNs();
  EXPECT_EQ(cuptiActivityFlushAll(1), CUPTI_SUCCESS);
  EXPECT_GE(vgpuNowNs() - begin, 1'000'000'000);
}

TEST(VirtualGpuFaults, BuffersComeOutOfOrder) {
  ASSERT_EQ(vgpuSet("scale", 0, 0), 0);
  Fault("out_of_order");
  ClientOptions options;
  options.buffer_bytes = 10 * sizeof(CUpti_ActivityKernel10);
  Start({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL}, options);
  LaunchMany(100);
  const auto kernels = Kernels();
  ASSERT_EQ(kernels.size(), 100u);
  EXPECT_FALSE(std::is_sorted(kernels.begin(), kernels.end(), [](const auto& a, const auto& b) {
    return a.correlationId < b.correlationId;
  }));
}

TEST(VirtualGpuFaults, SomeRecordsHaveNoTimes) {
  Fault("zero_start_records", "5");
  Start({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  LaunchMany(20);
  const auto kernels = Kernels();
  EXPECT_EQ(std::count_if(kernels.begin(), kernels.end(),
                          [](const auto& kernel) { return kernel.start == 0; }),
            5);
}

size_t FreeBytes() {
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  EXPECT_EQ(cudaMemGetInfo(&free_bytes, &total_bytes), cudaSuccess);
  return free_bytes;
}

void SetAttribute(CUpti_ActivityAttribute attribute, size_t value) {
  size_t bytes = sizeof value;
  ASSERT_EQ(cuptiActivitySetAttribute(attribute, &bytes, &value), CUPTI_SUCCESS);
}

size_t WithoutTimes() {
  const auto kernels = Kernels();
  return static_cast<size_t>(std::count_if(kernels.begin(), kernels.end(), [](const auto& kernel) {
    return kernel.start == 0 && kernel.end == 0;
  }));
}

TEST(VirtualGpuFaults, WorkBeyondTheBuffersOnTheDeviceHasNoTimes) {
  Fault("device_buffers", "2");
  Fault("complete_at_flush");
  SetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, 3200);  // 100 operations
  Start({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  LaunchMany(250);
  EXPECT_EQ(WithoutTimes(), 50u);
  LaunchMany(200);  // the flush has made room
  EXPECT_EQ(WithoutTimes(), 50u);
}

TEST(VirtualGpuFaults, BuffersOnTheDeviceAreOfItsMemory) {
  ASSERT_EQ(vgpuSet("memory_mib", 1, 1), 0);
  Fault("complete_at_flush");
  SetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, 3200);
  const size_t all = FreeBytes();
  Start({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  EXPECT_EQ(all - FreeBytes(), 3 * 3200u);
  LaunchMany(1000);
  EXPECT_EQ(all - FreeBytes(), 10 * 3200u);
  EXPECT_EQ(WithoutTimes(), 0u);
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, FreeBytes() - 512), cudaSuccess);  // the program has the rest
  LaunchMany(1200);
  EXPECT_EQ(WithoutTimes(), 200u);
}

// How far the kernel's record begins behind its launch's, at most; a flush `later` ns after it.
int64_t BeginsBehindLaunch(int64_t later) {
  Start({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_RUNTIME});
  LaunchMany(1);
  const timespec pause = {0, later};
  nanosleep(&pause, nullptr);
  const auto records = AllRecords();
  const auto kernels =
      Select<CUpti_ActivityKernel10>(records, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  const auto calls = Select<CUpti_ActivityAPI>(records, CUPTI_ACTIVITY_KIND_RUNTIME);
  return static_cast<int64_t>(kernels.at(0).start - calls.at(0).start);
}

TEST(VirtualGpuFaults, TimesOfTheDeviceMayBeOff) {
  ASSERT_EQ(vgpuSet("clock_jitter_ns", -900e6, -800e6), 0);
  const int64_t behind = BeginsBehindLaunch(0);
  EXPECT_GT(behind, -900'000'000);
  EXPECT_LT(behind, -700'000'000);  // before its launch
}

TEST(VirtualGpuFaults, TheClockOfTheDeviceMayDrift) {
  ASSERT_EQ(vgpuSet("clock_drift_ppm", 1e6, 1e6), 0);  // twice as fast
  Fault("complete_at_flush");
  EXPECT_LT(BeginsBehindLaunch(300'000'000), -250'000'000);
}

TEST(VirtualGpuFaults, WhileOneThreadIsInCuInitCuptiWaits) {
  ASSERT_EQ(vgpuSet("cuinit_ms", 300, 300), 0);
  const int64_t begin = vgpuNowNs();
  std::thread other([] { cuInit(0); });
  const timespec pause = {0, 50'000'000};
  nanosleep(&pause, nullptr);
  EXPECT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY), CUPTI_SUCCESS);
  EXPECT_GE(vgpuNowNs() - begin, 300'000'000);
  other.join();
}

TEST(VirtualGpuFaults, OtherThreadsWaitForTheContextThatOneCreates) {
  ASSERT_EQ(vgpuSet("context_create_ns", 300e6, 300e6), 0);
  Start({CUPTI_ACTIVITY_KIND_RUNTIME});
  std::thread other([] { LaunchMany(1); });
  const timespec pause = {0, 50'000'000};
  nanosleep(&pause, nullptr);
  LaunchMany(1);
  other.join();
  EXPECT_EQ(AllRecords().size(), 4u);  // calls are recorded from the first context on
}

TEST(VirtualGpuFaults, LaunchesWaitForAFlush) {
  ASSERT_EQ(vgpuSet("flush_ms", 300, 300), 0);
  Start({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  LaunchMany(1);
  std::thread other([] { cuptiActivityFlushAll(0); });
  const timespec pause = {0, 50'000'000};
  nanosleep(&pause, nullptr);
  const int64_t begin = vgpuNowNs();
  LaunchMany(1);
  EXPECT_GE(vgpuNowNs() - begin, 150'000'000);
  other.join();
  EXPECT_EQ(Kernels().size(), 2u);
}

TEST(VirtualGpuFaults, NoSynchronizationIsRecorded) {
  Fault("no_sync_records");
  Start({CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, CUPTI_ACTIVITY_KIND_RUNTIME});
  LaunchMany(1);
  EXPECT_EQ(AllRecords().size(), 2u);  // the launch and the synchronizing call
}

TEST(VirtualGpuFaults, OnlyAForcedFlushReturnsBuffers) {
  Fault("withheld_until_exit");
  ClientOptions options;
  options.buffer_bytes = 10 * sizeof(CUpti_ActivityKernel10);
  Start({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL}, options);
  LaunchMany(100);
  ASSERT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
  EXPECT_EQ(Records().size(), 0u);
  EXPECT_EQ(Kernels().size(), 100u);
}

TEST(VirtualGpuFaults, KernelsLeaveNoRecordButTheirLaunchesDo) {
  Fault("zero_kernel_records");
  Start({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_RUNTIME});
  LaunchMany(10);
  const auto records = AllRecords();
  EXPECT_EQ(records.size(), 11u);
  for (const AnyRecord& record : records) EXPECT_EQ(record.kind, CUPTI_ACTIVITY_KIND_RUNTIME);
}

TEST(VirtualGpuFaults, AnIncompleteRecordIsBlank) {
  Fault("blank_incomplete");
  ClientOptions options;
  options.zeroes_buffers = true;
  Start({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL}, options);
  vgpuNextKernelTakes(300e6);
  ASSERT_EQ(cudaLaunchKernel(Kernel(), dim3(1), dim3(1), nullptr, 0, nullptr), cudaSuccess);
  EXPECT_EQ(Kernels().size(), 0u);  // a record of kind 0 ends the walk
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  LaunchMany(1);
  EXPECT_EQ(Kernels().size(), 1u);
}

TEST(VirtualGpuFaults, NamesAreNullOrHuge) {
  Start({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  Fault("null_name");
  LaunchMany(1);
  vgpuClearFaults();
  Fault("huge_names", "100000");
  LaunchMany(1);
  const auto kernels = Kernels();
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].name, nullptr);
  EXPECT_EQ(strlen(kernels[1].name), 100'000u);
}

TEST(VirtualGpuFaults, ARecordOfAnUnknownKindEndsTheWalk) {
  Fault("garbage_kind", "900");
  Start({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  LaunchMany(150);
  EXPECT_EQ(Kernels().size(), 100u);
}

TEST(VirtualGpuFaults, CallbacksComeTwice) {
  Fault("callback_twice");
  const CUpti_SubscriberHandle subscriber = SubscribeAll();
  ASSERT_EQ(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API,
                                CUPTI_RUNTIME_TRACE_CBID_cudaDeviceSynchronize_v3020),
            CUPTI_SUCCESS);
  LaunchMany(1);
  EXPECT_EQ(Callbacks().size(), 4u);
}

int frames_of_callback = 0;

int FramesOfCallback() {
  CUpti_SubscriberHandle subscriber = nullptr;
  const auto count = [](void*, CUpti_CallbackDomain, CUpti_CallbackId, const void* data) {
    if (static_cast<const CUpti_CallbackData*>(data)->callbackSite != CUPTI_API_EXIT) return;
    frames_of_callback = 0;
    _Unwind_Backtrace(
        [](_Unwind_Context*, void*) {
          ++frames_of_callback;
          return _URC_NO_REASON;
        },
        nullptr);
  };
  EXPECT_EQ(cuptiSubscribe(&subscriber, count, nullptr), CUPTI_SUCCESS);
  EXPECT_EQ(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API,
                                CUPTI_RUNTIME_TRACE_CBID_cudaDeviceSynchronize_v3020),
            CUPTI_SUCCESS);
  LaunchMany(1);
  cuptiUnsubscribe(subscriber);
  return frames_of_callback;
}

#if defined(__x86_64__)
TEST(VirtualGpuFaults, ACallbackCannotBeUnwound) {
  const int all = FramesOfCallback();
  Fault("no_unwind_info");
  EXPECT_LT(FramesOfCallback(), all - 8);  // the test's own are gone
}
#endif

TEST(VirtualGpuFaults, MemoryEndsAtAnAllocation) {
  Fault("oom_at", "3");
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, 1024), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&memory, 1024), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&memory, 1024), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaMallocAsync(&memory, 1024, nullptr), cudaErrorMemoryAllocation);
}

}  // namespace
}  // namespace vgpu::testing
