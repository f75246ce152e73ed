#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/analysis/rules/findings_text.h"

namespace trainprof {
namespace {

// The host works for 320 us of a step, the device for 684: without the wait a step takes what the device does.
TEST(SyncCall, ADeviceSynchronisationInEachStepIsChargedItsDrain) {
  EXPECT_EQ(OutcomeOf("sync-call", R"(
    thread 1
    repeat 5 every 1000
      step 0 1000 step
      call 300 310 cudaLaunchKernel | corr=1
      call 320 1000 cudaDeviceSynchronize | stack=train.py(7): main
    end
    stream 0 7
    repeat 5 every 1000
      kernel 315 999 gemm | corr=1
    end)"),
            "error count=5 cost=0.253 gain=0.305..0.325 where=train.py:7 main x5");
}

// It bounds by how much the host is ahead: the device has the next step when it returns.
TEST(SyncCall, AWaitForTheStepBeforeIsNone) {
  const auto waits_until = [](const char* end) {
    return OutcomeOf("sync-call", fmt::format(R"(
    thread 1
    repeat 8 every 3000
      step 0 3000 step
      call 300 310 cudaLaunchKernel | corr=1
      call 320 {} cudaEventSynchronize
    end
    stream 0 7
    repeat 8 every 3000
      kernel 315 1900 gemm | corr=1
      kernel 1901 2700 gemm | corr=1
    end)",
                                              end));
  };
  EXPECT_EQ(waits_until("1905"), "passed");
  EXPECT_NE(waits_until("2705"), "passed");
}

TEST(SyncCall, OneEveryFewStepsCounts) {
  EXPECT_EQ(OutcomeOf("sync-call", R"(
    thread 1
    step 0 1000 step
    step 1000 2000 step
    step 2000 3000 step
    step 3000 4000 step
    call 300 310 cudaLaunchKernel | corr=1
    call 320 2000 cudaEventSynchronize
    call 2300 2310 cudaLaunchKernel | corr=2
    call 2320 4000 cudaEventSynchronize
    stream 0 7
    kernel 315 2000 gemm | corr=1
    kernel 2315 4000 gemm | corr=2)")
                .substr(0, 15),
            "warning count=2");
}

TEST(SyncCall, WithoutItNothingIsFound) {
  EXPECT_EQ(OutcomeOf("sync-call", R"(
    thread 1
    repeat 5 every 1000
      step 0 1000 step
      call 300 310 cudaLaunchKernel | corr=1
    end
    stream 0 7
    repeat 5 every 1000
      kernel 315 999 gemm | corr=1
    end)"),
            "passed");
}

// What completes a copy is host-sync's.
TEST(SyncCall, ASyncBehindACopyIsNotCounted) {
  EXPECT_EQ(OutcomeOf("sync-call", R"(
    thread 1
    repeat 5 every 1000
      step 0 1000 step
      call 10 20 cudaLaunchKernel | corr=1
      call 30 35 cudaMemcpyAsync | corr=2
      call 40 405 cudaStreamSynchronize
      call 500 510 cudaLaunchKernel | corr=3
    end
    stream 0 7
    repeat 5 every 1000
      kernel 25 390 gemm | corr=1
      copy 390 400 Memcpy DtoH (Device -> Pinned) | corr=2 bytes=4
      kernel 515 1000 gemm | corr=3
    end)"),
            "passed");
}

// Nobody waits for a logger's thread.
TEST(SyncCall, AThreadThatFeedsNoDeviceMayWait) {
  EXPECT_EQ(OutcomeOf("sync-call", R"(
    thread 1
    repeat 5 every 1000
      step 0 1000 step
      call 300 310 cudaLaunchKernel | corr=1
    end
    thread 2
    repeat 5 every 1000
      call 320 1000 cudaEventSynchronize
    end
    stream 0 7
    repeat 5 every 1000
      kernel 315 999 gemm | corr=1
    end)"),
            "passed");
}

TEST(SyncCall, WithoutCallsItIsNotChecked) {
  EXPECT_EQ(OutcomeOf("sync-call", R"(
    thread 1
    step 0 1000 step
    stream 0 7
    kernel 0 900 gemm)"),
            "skipped: the trace holds no runtime calls");
}

}  // namespace
}  // namespace trainprof
