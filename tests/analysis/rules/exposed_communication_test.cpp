#include <gtest/gtest.h>

#include "tests/analysis/rules/findings_text.h"

namespace trainprof {
namespace {

// Nothing waits for them but the host, and that for their end: hiding them would not bring it nearer.
TEST(ExposedCommunication, CollectivesThatNoKernelHides) {
  constexpr char kExposed[] = R"(
    thread 1
    repeat 5 every 1000
      step 0 1000 step
      call 1 2 cudaLaunchKernel | corr=1
      call 3 4 cudaLaunchKernel | corr=2
      call 5 1000 cudaDeviceSynchronize
    end
    stream 0 7
    repeat 5 every 1000
      kernel 10 700 gemm | corr=1
    end
    stream 0 9
    repeat 5 every 1000
      kernel 600 1000 ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*) | corr=2
    end)";
  EXPECT_EQ(OutcomeOf("exposed-communication", kExposed),
            "note count=5 cost=0.300 gain=0.000..0.000 where=:0  x5");
  for (const Finding& finding : Analyze(TraceFromScript(kExposed)).findings) {
    if (finding.rule != "exposed-communication") continue;
    EXPECT_EQ(finding.title,
              "Exposed communication: no kernel hides 0.30 ms/step of it: "
              "ncclDevKernel_AllReduce_Sum_f32_RING_LL 0.30 (1.0 a step)");
    EXPECT_LT(finding.confidence, 1);
  }
}

TEST(ExposedCommunication, WhatComputeHidesIsFine) {
  EXPECT_EQ(OutcomeOf("exposed-communication", R"(
    thread 1
    repeat 5 every 1000
      step 0 1000 step
      call 1 2 cudaLaunchKernel | corr=1
      call 3 4 cudaLaunchKernel | corr=2
    end
    stream 0 7
    repeat 5 every 1000
      kernel 10 1000 gemm | corr=1
    end
    stream 0 9
    repeat 5 every 1000
      kernel 600 1000 ncclDevKernel_AllReduce_Sum_f32_RING_LL | corr=2
    end)"),
            "passed");
}

TEST(ExposedCommunication, WithoutDeviceWorkItIsNotChecked) {
  EXPECT_EQ(OutcomeOf("exposed-communication", "thread 1\nstep 0 100 step"),
            "skipped: the trace holds no device work");
}

}  // namespace
}  // namespace trainprof
