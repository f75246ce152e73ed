#include <cuda_runtime_api.h>
#include <cupti.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "tests/virtual_gpu/cupti_client.h"
#include "tests/virtual_gpu/vgpu.h"

namespace vgpu::testing {
namespace {

const void* Gemm() {
  VgpuKernelSpec spec = {};
  spec.name = "_Z4gemmPKfS0_Pf";
  spec.registers = 128;
  spec.static_shared_bytes = 49152;
  spec.least_ns = 100'000;
  return vgpuDeclareKernel(nullptr, &spec);
}

cudaError_t Launch(const void* kernel, cudaStream_t stream) {
  return cudaLaunchKernel(kernel, dim3(4, 2, 1), dim3(128, 1, 1), nullptr, 1024, stream);
}

TEST(VirtualGpuRecords, AKernelHasItsNameSizesAndTimes) {
  Start({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_RUNTIME});
  const uint64_t before = MonotonicNs();
  ASSERT_EQ(Launch(Gemm(), nullptr), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  const auto records = AllRecords();
  const auto kernels =
      Select<CUpti_ActivityKernel10>(records, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  ASSERT_EQ(kernels.size(), 1u);
  const CUpti_ActivityKernel10& kernel = kernels[0];
  EXPECT_STREQ(kernel.name, "_Z4gemmPKfS0_Pf");
  EXPECT_EQ(kernel.end - kernel.start, 100'000u);
  EXPECT_GT(kernel.start, before);
  EXPECT_LT(kernel.end, MonotonicNs());
  EXPECT_EQ(kernel.completed, kernel.end);
  EXPECT_EQ(kernel.gridX, 4);
  EXPECT_EQ(kernel.gridY, 2);
  EXPECT_EQ(kernel.blockX, 128);
  EXPECT_EQ(kernel.registersPerThread, 128);
  EXPECT_EQ(kernel.staticSharedMemory, 49152);
  EXPECT_EQ(kernel.dynamicSharedMemory, 1024);
  EXPECT_EQ(kernel.streamId, 7u);
  EXPECT_EQ(kernel.contextId, 1u);

  const auto calls = Select<CUpti_ActivityAPI>(records, CUPTI_ACTIVITY_KIND_RUNTIME);
  const auto launch = std::find_if(calls.begin(), calls.end(), [](const CUpti_ActivityAPI& call) {
    return call.cbid == CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000;
  });
  ASSERT_NE(launch, calls.end());
  EXPECT_EQ(launch->correlationId, kernel.correlationId);
  EXPECT_LE(launch->start, kernel.start);
}

size_t CountOf(const std::vector<AnyRecord>& records, CUpti_ActivityKind kind) {
  return static_cast<size_t>(
      std::count_if(records.begin(), records.end(),
                    [kind](const AnyRecord& record) { return record.kind == kind; }));
}

TEST(VirtualGpuRecords, NestedDriverCallsHaveTheCorrelationOfTheRuntimeCall) {
  Start({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_RUNTIME,
         CUPTI_ACTIVITY_KIND_DRIVER});
  ASSERT_EQ(Launch(Gemm(), nullptr), cudaSuccess);
  const auto records = AllRecords();
  const auto runtime = Select<CUpti_ActivityAPI>(records, CUPTI_ACTIVITY_KIND_RUNTIME);
  const auto driver = Select<CUpti_ActivityAPI>(records, CUPTI_ACTIVITY_KIND_DRIVER);
  ASSERT_EQ(runtime.size(), 1u);
  const auto nested = std::find_if(driver.begin(), driver.end(), [](const CUpti_ActivityAPI& call) {
    return call.cbid == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel;
  });
  ASSERT_NE(nested, driver.end());
  EXPECT_EQ(nested->correlationId, runtime[0].correlationId);
  EXPECT_GE(nested->start, runtime[0].start);
  EXPECT_LE(nested->end, runtime[0].end);
}

TEST(VirtualGpuRecords, AFlushWithholdsBuffersWithIncompleteRecords) {
  Start({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  const void* kernel = Gemm();
  ASSERT_EQ(Launch(kernel, nullptr), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  vgpuNextKernelTakes(200e6);
  ASSERT_EQ(Launch(kernel, nullptr), cudaSuccess);
  ASSERT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
  EXPECT_EQ(Records().size(), 0u);  // the complete one shares the buffer of the one that runs
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  ASSERT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
  EXPECT_EQ(Records().size(), 2u);
}

TEST(VirtualGpuRecords, AForcedFlushGivesIncompleteRecordsWithoutTimes) {
  Start({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  vgpuNextKernelTakes(300e6);
  ASSERT_EQ(Launch(Gemm(), nullptr), cudaSuccess);
  const auto kernels =
      Select<CUpti_ActivityKernel10>(AllRecords(), CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0].start, 0u);
  EXPECT_EQ(kernels[0].end, 0u);
  EXPECT_STREQ(kernels[0].name, "_Z4gemmPKfS0_Pf");
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(AllRecords().size(), 1u);  // never delivered twice
}

TEST(VirtualGpuRecords, FullBuffersComeWithoutAFlush) {
  ASSERT_EQ(vgpuSet("scale", 0, 0), 0);
  ClientOptions options;
  options.buffer_bytes = 10 * sizeof(CUpti_ActivityKernel10);
  Start({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL}, options);
  const void* kernel = Gemm();
  for (int i = 0; i < 35; ++i) ASSERT_EQ(Launch(kernel, nullptr), cudaSuccess);
  const uint64_t limit = MonotonicNs() + 5'000'000'000;
  while (BuffersDelivered() < 3 && MonotonicNs() < limit) {
  }
  EXPECT_EQ(BuffersDelivered(), 3u);
  EXPECT_EQ(Records().size(), 30u);
  EXPECT_EQ(AllRecords().size(), 35u);
}

TEST(VirtualGpuRecords, WithoutABufferRecordsAreDroppedAndCounted) {
  ASSERT_EQ(vgpuSet("scale", 0, 0), 0);
  ClientOptions options;
  options.buffer_bytes = 10 * sizeof(CUpti_ActivityKernel10);
  options.max_buffers = 1;
  Start({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL}, options);
  const void* kernel = Gemm();
  for (int i = 0; i < 25; ++i) ASSERT_EQ(Launch(kernel, nullptr), cudaSuccess);
  EXPECT_EQ(AllRecords().size(), 10u);
  size_t dropped = 0;
  ASSERT_EQ(cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped), CUPTI_SUCCESS);
  EXPECT_EQ(dropped, 15u);
  ASSERT_EQ(cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped), CUPTI_SUCCESS);
  EXPECT_EQ(dropped, 0u);
}

TEST(VirtualGpuRecords, SynchronizationsAndMemoryAndObjectsAreRecorded) {
  Start({CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, CUPTI_ACTIVITY_KIND_MEMORY2,
         CUPTI_ACTIVITY_KIND_DEVICE, CUPTI_ACTIVITY_KIND_CONTEXT, CUPTI_ACTIVITY_KIND_STREAM,
         CUPTI_ACTIVITY_KIND_CUDA_EVENT, CUPTI_ACTIVITY_KIND_MEMSET});
  cudaStream_t stream;
  cudaEvent_t event;
  void* memory = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&memory, 1 << 20), cudaSuccess);
  ASSERT_EQ(cudaMemsetAsync(memory, 7, 1 << 20, stream), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event, stream), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  ASSERT_EQ(cudaEventSynchronize(event), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  ASSERT_EQ(cudaFree(memory), cudaSuccess);
  const auto records = AllRecords();
  const auto syncs =
      Select<CUpti_ActivitySynchronization2>(records, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
  ASSERT_EQ(syncs.size(), 3u);
  EXPECT_EQ(syncs[0].type, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE);
  EXPECT_EQ(syncs[0].streamId, 14u);  // the driver's own streams come before
  EXPECT_LE(syncs[0].start, syncs[0].end);
  EXPECT_EQ(syncs[1].type, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE);
  EXPECT_EQ(syncs[1].streamId, static_cast<uint32_t>(CUPTI_SYNCHRONIZATION_INVALID_VALUE));
  EXPECT_EQ(syncs[1].cudaEventId, 1u);
  EXPECT_EQ(syncs[2].type, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE);
  const auto memory_records = Select<CUpti_ActivityMemory4>(records, CUPTI_ACTIVITY_KIND_MEMORY2);
  ASSERT_EQ(memory_records.size(), 2u);
  EXPECT_EQ(memory_records[0].memoryOperationType, CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION);
  EXPECT_EQ(memory_records[1].memoryOperationType, CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE);
  EXPECT_EQ(memory_records[1].address, reinterpret_cast<uint64_t>(memory));
  EXPECT_EQ(memory_records[0].bytes, uint64_t{1} << 20);
  const auto memsets = Select<CUpti_ActivityMemset4>(records, CUPTI_ACTIVITY_KIND_MEMSET);
  ASSERT_EQ(memsets.size(), 1u);
  EXPECT_EQ(memsets[0].value, 7u);
  EXPECT_EQ(CountOf(records, CUPTI_ACTIVITY_KIND_CUDA_EVENT), 1u);
  EXPECT_EQ(CountOf(records, CUPTI_ACTIVITY_KIND_CONTEXT), 1u);
  EXPECT_GE(CountOf(records, CUPTI_ACTIVITY_KIND_DEVICE), 1u);
  EXPECT_EQ(CountOf(records, CUPTI_ACTIVITY_KIND_STREAM), 2u);  // the default stream and ours
}

TEST(VirtualGpuRecords, CopiesSayWhatMemoryTheyTouched) {
  Start({CUPTI_ACTIVITY_KIND_MEMCPY});
  void* device = nullptr;
  void* pinned = nullptr;
  int pageable = 0;
  ASSERT_EQ(cudaMalloc(&device, 4096), cudaSuccess);
  ASSERT_EQ(cudaMallocHost(&pinned, 4096), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(device, pinned, 4096, cudaMemcpyDefault, nullptr), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(&pageable, device, 4, cudaMemcpyDeviceToHost, nullptr), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(device, static_cast<char*>(device) + 8, 8, cudaMemcpyDeviceToDevice),
            cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  const auto copies = Select<CUpti_ActivityMemcpy6>(AllRecords(), CUPTI_ACTIVITY_KIND_MEMCPY);
  ASSERT_EQ(copies.size(), 3u);
  EXPECT_EQ(copies[0].copyKind, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD);
  EXPECT_EQ(copies[0].srcKind, CUPTI_ACTIVITY_MEMORY_KIND_PINNED);
  EXPECT_EQ(copies[0].dstKind, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE);
  EXPECT_EQ(copies[0].flags, CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC);
  EXPECT_EQ(copies[0].bytes, 4096u);
  EXPECT_EQ(copies[1].copyKind, CUPTI_ACTIVITY_MEMCPY_KIND_DTOH);
  EXPECT_EQ(copies[1].dstKind, CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE);
  EXPECT_EQ(copies[2].copyKind, CUPTI_ACTIVITY_MEMCPY_KIND_DTOD);
  EXPECT_EQ(copies[2].flags, 0u);
}

TEST(VirtualGpuRecords, SingleFunctionsAreSelectedBeforeTheFirstContext) {
  Start({});
  ASSERT_EQ(cuptiActivityEnableRuntimeApi(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, 1),
            CUPTI_SUCCESS);
  ASSERT_EQ(Launch(Gemm(), nullptr), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  ASSERT_EQ(cuptiActivityEnableRuntimeApi(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, 0),
            CUPTI_SUCCESS);
  ASSERT_EQ(Launch(Gemm(), nullptr), cudaSuccess);
  const auto calls = Select<CUpti_ActivityAPI>(AllRecords(), CUPTI_ACTIVITY_KIND_RUNTIME);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].cbid, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000);
  EXPECT_EQ(cuptiActivityEnableRuntimeApi(100'000, 1), CUPTI_ERROR_INVALID_PARAMETER);
}

TEST(VirtualGpuRecords, SingleFunctionsSelectedLaterNeedAKindTurnedOn) {
  ASSERT_EQ(cudaFree(nullptr), cudaSuccess);
  Start({});
  ASSERT_EQ(cuptiActivityEnableRuntimeApi(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, 1),
            CUPTI_SUCCESS);
  ASSERT_EQ(Launch(Gemm(), nullptr), cudaSuccess);
  EXPECT_EQ(AllRecords().size(), 0u);
  ASSERT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME), CUPTI_SUCCESS);
  ASSERT_EQ(cuptiActivityEnableRuntimeApi(CUPTI_RUNTIME_TRACE_CBID_cudaDeviceSynchronize_v3020, 0),
            CUPTI_SUCCESS);
  ASSERT_EQ(Launch(Gemm(), nullptr), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(AllRecords().size(), 1u);  // all but what was switched off
  ASSERT_EQ(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_RUNTIME), CUPTI_SUCCESS);
  ASSERT_EQ(cuptiActivityEnableRuntimeApi(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, 1),
            CUPTI_SUCCESS);
  ASSERT_EQ(Launch(Gemm(), nullptr), cudaSuccess);
  EXPECT_EQ(AllRecords().size(), 1u);  // the kind was turned off: choices are dead
}

// CUPTI_ACTIVITY_KIND_HOST_LAUNCH and CUpti_ActivityHostLaunch, which the headers of 13.0 lack.
constexpr auto kHostLaunch = static_cast<CUpti_ActivityKind>(58);
struct HostLaunch {
  uint32_t kind, stream, context, device, correlation, process, thread, padding;
  uint64_t start, end;
};

TEST(VirtualGpuRecords, HostFunctionsAreToldFrom13_1On) {
  setenv("VGPU_CUPTI_VERSION", "13.1", 1);
  Start({kHostLaunch, CUPTI_ACTIVITY_KIND_RUNTIME});
  ASSERT_EQ(cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM), CUPTI_SUCCESS);
  cudaStream_t stream;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  struct Seen {
    uint64_t begin = 0;
    uint64_t end = 0;
    pid_t thread = 0;
  } seen;
  const auto note = [](void* argument) {
    auto* seen = static_cast<Seen*>(argument);
    seen->thread = gettid();
    seen->begin = MonotonicNs();
    usleep(1000);
    seen->end = MonotonicNs();
  };
  ASSERT_EQ(cudaLaunchHostFunc(stream, note, &seen), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  const auto records = AllRecords();
  const auto functions = Select<HostLaunch>(records, kHostLaunch);
  ASSERT_EQ(functions.size(), 1u);
  const HostLaunch& function = functions[0];
  EXPECT_LE(function.start, seen.begin);
  EXPECT_GE(function.end, seen.end);
  EXPECT_LE(function.end, MonotonicNs());
  EXPECT_EQ(function.thread, static_cast<uint32_t>(seen.thread));
  EXPECT_EQ(function.process, static_cast<uint32_t>(getpid()));
  EXPECT_EQ(function.stream, 14u);
  EXPECT_EQ(function.context, 1u);
  EXPECT_EQ(function.device, 0u);
  const auto calls = Select<CUpti_ActivityAPI>(records, CUPTI_ACTIVITY_KIND_RUNTIME);
  const auto launch = std::find_if(calls.begin(), calls.end(), [](const CUpti_ActivityAPI& call) {
    return call.cbid == CUPTI_RUNTIME_TRACE_CBID_cudaLaunchHostFunc_v10000;
  });
  ASSERT_NE(launch, calls.end());
  EXPECT_EQ(function.correlation, launch->correlationId);
  // The size of the real library's record, 13.1.115.
  alignas(8) uint32_t bytes[64];
  std::fill(std::begin(bytes), std::end(bytes), static_cast<uint32_t>(kHostLaunch));
  auto* const buffer = reinterpret_cast<uint8_t*>(bytes);
  CUpti_Activity* record = nullptr;
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(cuptiActivityGetNextRecord(buffer, sizeof bytes, &record), CUPTI_SUCCESS);
  }
  EXPECT_EQ(reinterpret_cast<uint8_t*>(record) - buffer, 48);
}

TEST(VirtualGpuRecords, HostFunctionsAreAnUnknownKindBefore13_1) {
  setenv("VGPU_CUPTI_VERSION", "13.0", 1);
  Start({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  EXPECT_EQ(cuptiActivityEnable(kHostLaunch), CUPTI_ERROR_INVALID_KIND);
  ASSERT_EQ(cudaLaunchHostFunc(
                nullptr, [](void*) {}, nullptr),
            cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
  EXPECT_EQ(AllRecords().size(), 0u);
}

TEST(VirtualGpuRecords, OverheadsAreTold) {
  ASSERT_EQ(vgpuSet("queue_depth", 4, 4), 0);
  Start({CUPTI_ACTIVITY_KIND_OVERHEAD, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  const void* kernel = Gemm();
  vgpuNextKernelTakes(100e6);
  for (int i = 0; i < 8; ++i) ASSERT_EQ(Launch(kernel, nullptr), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  const auto overheads =
      Select<CUpti_ActivityOverhead3>(AllRecords(), CUPTI_ACTIVITY_KIND_OVERHEAD);
  ASSERT_GE(overheads.size(), 2u);
  EXPECT_EQ(overheads[0].overheadKind, CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST);
  EXPECT_EQ(overheads[1].overheadKind, CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL);
  EXPECT_GT(overheads[1].end, overheads[1].start);
  for (const auto& overhead : overheads) free(overhead.overheadData);
}

TEST(VirtualGpuRecords, ExternalIdsComeWithTheCall) {
  Start({CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, CUPTI_ACTIVITY_KIND_RUNTIME});
  ASSERT_EQ(cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 42),
            CUPTI_SUCCESS);
  ASSERT_EQ(Launch(Gemm(), nullptr), cudaSuccess);
  uint64_t id = 0;
  ASSERT_EQ(cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &id),
            CUPTI_SUCCESS);
  EXPECT_EQ(id, 42u);
  EXPECT_EQ(cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &id),
            CUPTI_ERROR_QUEUE_EMPTY);
  const auto records = AllRecords();
  const auto external =
      Select<CUpti_ActivityExternalCorrelation>(records, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
  const auto calls = Select<CUpti_ActivityAPI>(records, CUPTI_ACTIVITY_KIND_RUNTIME);
  ASSERT_EQ(external.size(), 1u);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(external[0].externalId, 42u);
  EXPECT_EQ(external[0].correlationId, calls[0].correlationId);
}

TEST(VirtualGpuRecords, CallbacksFrameTheCall) {
  const CUpti_SubscriberHandle subscriber = SubscribeAll();
  ASSERT_EQ(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API,
                                CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000),
            CUPTI_SUCCESS);
  ASSERT_EQ(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API,
                                CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel),
            CUPTI_SUCCESS);
  ASSERT_EQ(Launch(Gemm(), nullptr), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  const auto calls = Callbacks();
  ASSERT_EQ(calls.size(), 4u);
  EXPECT_EQ(calls[0].function, "cudaLaunchKernel");
  EXPECT_EQ(calls[0].site, CUPTI_API_ENTER);
  EXPECT_EQ(calls[1].function, "cuLaunchKernel");
  EXPECT_EQ(calls[2].function, "cuLaunchKernel");
  EXPECT_EQ(calls[3].site, CUPTI_API_EXIT);
  EXPECT_EQ(calls[3].symbol, "_Z4gemmPKfS0_Pf");
  for (const Callback& call : calls) EXPECT_EQ(call.correlation, calls[0].correlation);
  CUpti_SubscriberHandle second;
  EXPECT_EQ(cuptiSubscribe(&second, nullptr, nullptr),
            CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
  ASSERT_EQ(cuptiUnsubscribe(subscriber), CUPTI_SUCCESS);
  ASSERT_EQ(Launch(Gemm(), nullptr), cudaSuccess);
  EXPECT_EQ(Callbacks().size(), 4u);
}

TEST(VirtualGpuRecords, AMillionKernelsAreAllThere) {
  ASSERT_EQ(vgpuSet("scale", 0, 0), 0);
  Start({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  const void* kernel = Gemm();
  for (int i = 0; i < 1'000'000; ++i) ASSERT_EQ(Launch(kernel, nullptr), cudaSuccess);
  ASSERT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
  EXPECT_EQ(Records().size(), 1'000'000u);
  size_t dropped = 1;
  ASSERT_EQ(cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped), CUPTI_SUCCESS);
  EXPECT_EQ(dropped, 0u);
}

}  // namespace
}  // namespace vgpu::testing
