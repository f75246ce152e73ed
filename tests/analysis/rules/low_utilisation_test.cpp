#include <gtest/gtest.h>

#include "tests/analysis/rules/findings_text.h"

namespace trainprof {
namespace {

TEST(LowUtilisation, FiresBelowHalf) {
  EXPECT_EQ(OutcomeOf("low-utilisation", R"(
    thread 1
    repeat 5 every 1000
      step 0 1000 ProfilerStep#1
      call 600 610 cudaLaunchKernel | corr=1
    end
    stream 0 7
    repeat 5 every 1000
      kernel 615 1000 gemm | corr=1
    end)"),
            "warning count=5 cost=0.615 gain=0.000..0.615");
}

TEST(LowUtilisation, NeverRestsOnUnrecordedWork) {
  EXPECT_EQ(OutcomeOf("low-utilisation", R"(
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
            "passed");
}

TEST(LowUtilisation, BusyDevicePasses) {
  EXPECT_EQ(OutcomeOf("low-utilisation", R"(
    thread 1
    step 0 1000 ProfilerStep#1
    stream 0 7
    kernel 0 900 gemm)"),
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
