#include <fmt/format.h>
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

// One collective waits 300 us on the first device, another one as long on the second.
TEST(ExposedCommunication, ADeviceThatWaitsInACollectiveWaitsForAnotherOne) {
  const auto text = [](int64_t second_begins_on_first) {
    const RankAnalysis rank = Analyze(TraceFromScript(fmt::format(
        R"(
    thread 1
    repeat 20 every 2000
      step 0 2000 step
      call 1 2 cudaLaunchKernel | corr=1
      call 3 4 cudaLaunchKernel | corr=2
      call 5 6 cudaLaunchKernel | corr=3
      call 7 8 cudaLaunchKernel | corr=4
    end
    stream 0 7
    repeat 20 every 2000
      kernel 300 700 ncclDevKernel_AllReduce | corr=1
      kernel {} 1900 ncclDevKernel_AllGather | corr=2
    end
    stream 1 7
    repeat 20 every 2000
      kernel 600 701 ncclDevKernel_AllReduce | corr=3
      kernel 1500 1900 ncclDevKernel_AllGather | corr=4
    end)",
        second_begins_on_first)));
    for (const Finding& finding : rank.findings) {
      if (finding.title.starts_with("Waiting in")) {
        return fmt::format("{} {:.2f} to {:.2f} x{}", finding.title, finding.gain.low_ms_per_step,
                           finding.gain.high_ms_per_step, finding.count);
      }
    }
    return std::string("none");
  };
  EXPECT_EQ(text(1500),
            "Waiting in collectives: GPU 0 waits 0.30 ms/step in their kernels until GPU 1 comes "
            "0.00 to 0.30 x20");
  // In turns: none of them is the late one, and no device waits for itself.
  EXPECT_EQ(text(1800),
            "Waiting in collectives: GPU 0 waits 0.30 ms/step in their kernels until GPU 1 comes "
            "0.00 to 0.30 x20");
}

TEST(ExposedCommunication, WithoutDeviceWorkItIsNotChecked) {
  EXPECT_EQ(OutcomeOf("exposed-communication", "thread 1\nstep 0 100 step"),
            "skipped: the trace holds no device work");
}

}  // namespace
}  // namespace trainprof
