#include <gtest/gtest.h>

#include "tests/analysis/rules/findings_text.h"

namespace trainprof {
namespace {

// Nothing says what the host did for 6 ms of each 10.
constexpr char kUnknown[] = R"(
    thread 1
    repeat 5 every 10000
      step 0 10000 ProfilerStep#1
      {}
      call 6000 6010 cudaLaunchKernel | corr=1
    end
    stream 0 7
    repeat 5 every 10000
      kernel 6015 10000 gemm | corr=1
    end)";

TEST(LowUtilisation, IdleTimeWithoutAKnownCause) {
  EXPECT_EQ(OutcomeOf("low-utilisation", fmt::format(kUnknown, "")).substr(0, 37),
            "warning count=5 cost=6.015 gain=0.000");
}

// Steps of 10 ms whose device works, and behind them some in which it stands idle for 10 ms more.
std::string AfterOddSteps(int odd) {
  return OutcomeOf("low-utilisation", fmt::format(R"(
    thread 1
    repeat 12 every 10000
      step 0 10000 ProfilerStep#1
      call 0 10 cudaLaunchKernel | corr=1
    end
    repeat {0} every 20000
      step 120000 140000 ProfilerStep#13
      call 130000 130010 cudaLaunchKernel | corr=100
    end
    stream 0 7
    repeat 12 every 10000
      kernel 15 10000 gemm | corr=1
    end
    repeat {0} every 20000
      kernel 130015 140000 gemm | corr=100
    end)",
                                                  odd));
}

// A run in which nothing is lost had 2.7 ms in one of 31 steps, in which the machine did something else.
TEST(LowUtilisation, OnceOrTwiceIsChance) {
  EXPECT_EQ(AfterOddSteps(1), "passed");
  EXPECT_EQ(AfterOddSteps(2), "passed");
  EXPECT_EQ(AfterOddSteps(3).substr(0, 24), "note count=15 cost=2.015");
}

// The same time under a name is that finding's.
TEST(LowUtilisation, WhatAnotherFindingExplainsIsNotClaimedAgain) {
  EXPECT_EQ(OutcomeOf("low-utilisation", fmt::format(kUnknown, "annotation 0 6000 tokenize")),
            "passed");
  EXPECT_EQ(OutcomeOf("low-utilisation", fmt::format(kUnknown, "annotation 0 3000 tokenize"))
                .substr(0, 26),
            "warning count=5 cost=3.015");
}

TEST(LowUtilisation, NeverRestsOnUnrecordedWork) {
  EXPECT_EQ(
      OutcomeOf("low-utilisation", R"(
    thread 1
    repeat 5 every 1000
      step 0 1000 ProfilerStep#1
      call 0 10 cudaGraphLaunch | corr=1
    end
    stream 0 7
    repeat 5 every 1000
      kernel 15 100 node_a | corr=1
      kernel 900 1000 node_b | corr=1
    end)"),
      "skipped: nodes of graphs may be missing: behind their launches 80 % of the time is open");
}

// The first of two devices has done all its work, and the other one has not.
TEST(LowUtilisation, ADeviceThatIsDoneIsNotStarved) {
  EXPECT_EQ(OutcomeOf("low-utilisation", R"(
    thread 1
    repeat 5 every 100
      step 0 100 ProfilerStep#1
      call 0 10 cudaLaunchKernel | corr=1
      call 10 20 cudaLaunchKernel | corr=2
    end
    stream 0 7
    repeat 5 every 200
      kernel 15 214 gemm | corr=1
    end
    stream 1 7
    repeat 5 every 600
      kernel 25 624 gemm | corr=2
    end)"),
            "passed");
}

// The device's own moments between small kernels: launch-bound's to say.
TEST(LowUtilisation, HandOversAreNoStarvation) {
  EXPECT_EQ(OutcomeOf("low-utilisation", R"(
    thread 1
    step 0 1000 ProfilerStep#1
    repeat 100 every 2
      call 0 1 cudaLaunchKernel | corr=1
    end
    stream 0 7
    repeat 100 every 10
      kernel 5 13 node | corr=1
    end)"),
            "passed");
}

TEST(LowUtilisation, BusyDevicePasses) {
  EXPECT_EQ(OutcomeOf("low-utilisation", R"(
    thread 1
    step 0 1000 ProfilerStep#1
    call 0 5 cudaLaunchKernel | corr=1
    stream 0 7
    kernel 2 970 gemm | corr=1)"),
            "passed");
}

TEST(LowUtilisation, WithoutStepsItIsNotChecked) {
  EXPECT_EQ(OutcomeOf("low-utilisation", R"(
    stream 0 7
    kernel 0 10 a
    kernel 900 1000 b)")
                .substr(0, 8),
            "skipped:");
}

}  // namespace
}  // namespace trainprof
