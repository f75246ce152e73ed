// What the virtual GPU takes of processors that other programs need too.
#include <cuda_runtime_api.h>
#include <cupti.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <thread>

#include "tests/virtual_gpu/cupti_client.h"
#include "tests/virtual_gpu/vgpu.h"

namespace vgpu::testing {
namespace {

void StayOnThisProcessor() {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<size_t>(std::max(0, sched_getcpu())), &one);
  ASSERT_EQ(pthread_setaffinity_np(pthread_self(), sizeof one, &one), 0);
}

TEST(VirtualGpuProcessor, WorkOfTwoThreadsOnOneTakesTwiceAsLong) {
  StayOnThisProcessor();  // as the thread that is made does
  const int64_t begin_ns = vgpuNowNs();
  std::thread other([] { vgpuHostWork(30e6); });
  vgpuHostWork(30e6);
  other.join();
  EXPECT_GE(vgpuNowNs() - begin_ns, 57'000'000);
}

TEST(VirtualGpuProcessor, ACallsWorkIsNotDoneWhileAnotherThreadHasIt) {
  ASSERT_EQ(vgpuSet("launch_call_ns", 30e6, 30e6), 0);
  StayOnThisProcessor();
  ASSERT_EQ(cudaFree(nullptr), cudaSuccess);
  VgpuKernelSpec spec = {};
  spec.name = "_Z6kernelv";
  const void* kernel = vgpuDeclareKernel(nullptr, &spec);
  const int64_t begin_ns = vgpuNowNs();
  std::thread other([] { vgpuHostWork(30e6); });
  ASSERT_EQ(cudaLaunchKernel(kernel, dim3(1), dim3(32), nullptr, 0, nullptr), cudaSuccess);
  other.join();
  EXPECT_GE(vgpuNowNs() - begin_ns, 57'000'000);
}

long TimesAThreadSlept() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nvcsw;
}

TEST(VirtualGpuProcessor, CuptiSleepsWhileKernelsRun) {
  Start({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  VgpuKernelSpec spec = {};
  spec.name = "_Z6kernelv";
  spec.least_ns = 1e6;
  const void* kernel = vgpuDeclareKernel(nullptr, &spec);
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(cudaLaunchKernel(kernel, dim3(1), dim3(32), nullptr, 0, nullptr), cudaSuccess);
  }
  const long before = TimesAThreadSlept();
  const timespec pause = {0, 200'000'000};
  nanosleep(&pause, nullptr);
  EXPECT_LE(TimesAThreadSlept() - before, 20);  // once a millisecond it was
  EXPECT_EQ(AllRecords().size(), 200u);
}

}  // namespace
}  // namespace vgpu::testing
