#include <cuda_runtime_api.h>
#include <cupti.h>
#include <gtest/gtest.h>

#include <algorithm>
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

}  // namespace
}  // namespace vgpu::testing
