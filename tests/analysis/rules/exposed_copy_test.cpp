#include <gtest/gtest.h>

#include "tests/analysis/rules/findings_text.h"

namespace trainprof {
namespace {

// Pinned, on the compute stream, and waited for: x.to(device) without non_blocking.
TEST(ExposedCopy, APinnedCopyThatTheHostWaitsFor) {
  constexpr char kWaits[] = R"(
    thread 1
    repeat 5 every 1000
      step 0 1000 step
      call 10 20 cudaMemcpyAsync | corr=1
      call 22 320 cudaStreamSynchronize
      call 400 410 cudaLaunchKernel | corr=2
    end
    stream 0 7
    repeat 5 every 1000
      copy 20 320 Memcpy HtoD (Pinned -> Device) | corr=1 bytes=8000000
      kernel 415 1000 gemm | corr=2
    end)";
  EXPECT_EQ(OutcomeOf("exposed-copy", kWaits).substr(0, 24), "error count=5 cost=0.403");
  for (const Finding& finding : Analyze(TraceFromScript(kWaits)).findings) {
    if (finding.rule != "exposed-copy") continue;
    EXPECT_NE(finding.title.find("from pinned host memory to the device that the host waits for"),
              std::string::npos)
        << finding.title;
    EXPECT_NE(finding.advice.find("non_blocking"), std::string::npos);
  }
}

TEST(ExposedCopy, OneThatRunsBesideAKernelIsFine) {
  EXPECT_EQ(OutcomeOf("exposed-copy", R"(
    thread 1
    repeat 5 every 1000
      step 0 1000 step
      call 10 20 cudaLaunchKernel | corr=2
      call 22 30 cudaMemcpyAsync | corr=1
    end
    stream 0 7
    repeat 5 every 1000
      kernel 25 1000 gemm | corr=2
    end
    stream 0 8
    repeat 5 every 1000
      copy 30 330 Memcpy HtoD (Pinned -> Device) | corr=1 bytes=8000000
    end)"),
            "passed");
}

TEST(ExposedCopy, KindsAreToldApart) {
  EXPECT_EQ(OutcomeOf("exposed-copy", R"(
    thread 1
    repeat 5 every 1000
      step 0 1000 step
      call 1 2 cudaLaunchKernel | corr=1
      call 3 4 cudaMemcpyAsync | corr=2
      call 5 6 cudaMemsetAsync | corr=3
      call 7 8 cudaMemcpyPeerAsync | corr=4
      call 9 700 cudaDeviceSynchronize
    end
    stream 0 7
    repeat 5 every 1000
      kernel 10 500 gemm | corr=1
      copy 500 600 Memcpy DtoD (Device -> Device) | corr=2 bytes=8000000
      memset 600 650 Memset (Device) | corr=3 bytes=8000000
      copy 650 670 Memcpy PtoP (Device -> Device) | corr=4 bytes=8000000
      copy 670 672 Memcpy DtoH (Device -> Pinned) | bytes=4
    end)"),
            "warning count=4 cost=0.080 gain=0.072..0.110 where=:0  x4\n"
            "warning count=4 cost=0.040 gain=0.032..0.060 where=:0  x4\n"
            "note count=4 cost=0.016 gain=0.008..0.030 where=:0  x4");
}

// That is pageable-copy's.
TEST(ExposedCopy, GradientsThatLeaveTheirBucketsAreToldApart) {
  const auto advice = [](std::string_view operation) {
    return AdviceOf("exposed-copy", fmt::format(R"(
    thread 1
    repeat 10 every 1000
      step 0 1000 step
      call 1 2 cudaLaunchKernel | corr=1
      op 3 6 {}
      call 4 5 cudaMemcpyAsync | corr=2
    end
    stream 0 7
    repeat 10 every 1000
      kernel 10 500 gemm | corr=1
      copy 500 600 Memcpy DtoD (Device -> Device) | corr=2 bytes=8000000
    end)",
                                                operation));
  };
  const std::string of_buckets = advice("torch.distributed.ddp.reducer::copy_bucket_to_grad");
  EXPECT_TRUE(of_buckets.starts_with("9 of them copy gradients")) << of_buckets;
  EXPECT_TRUE(of_buckets.ends_with("gradient_as_bucket_view=True)")) << of_buckets;
  EXPECT_TRUE(advice("aten::cat").starts_with("Copies within the GPU"));
}

TEST(ExposedCopy, PageableCopiesThatBlockAreNotCountedTwice) {
  EXPECT_EQ(OutcomeOf("exposed-copy", R"(
    thread 1
    repeat 5 every 1000
      step 0 1000 step
      call 10 330 cudaMemcpyAsync | corr=1
      call 400 410 cudaLaunchKernel | corr=2
    end
    stream 0 7
    repeat 5 every 1000
      copy 20 320 Memcpy HtoD (Pageable -> Device) | corr=1 bytes=8000000
      kernel 415 1000 gemm | corr=2
    end)"),
            "passed");
}

TEST(ExposedCopy, WithoutDeviceWorkItIsNotChecked) {
  EXPECT_EQ(OutcomeOf("exposed-copy", "thread 1\nstep 0 100 step"),
            "skipped: the trace holds no device work");
}

}  // namespace
}  // namespace trainprof
