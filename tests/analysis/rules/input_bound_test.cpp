#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/analysis/rules/findings_text.h"

namespace trainprof {
namespace {

TEST(InputBound, FiresWhereTheDeviceIdlesForTheLoader) {
  EXPECT_EQ(OutcomeOf("input-bound", R"(
    thread 1
    repeat 6 every 1000
      step 0 1000 ProfilerStep#1
      annotation 0 300 enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__ | stack=train.py(7): main
      call 310 320 cudaLaunchKernel | corr=1
    end
    stream 0 7
    repeat 6 every 1000
      kernel 325 1000 gemm | corr=1
    end)"),
            "error count=6 cost=0.300 gain=0.137..0.295 where=train.py:7 main x6");
}

TEST(InputBound, HiddenLoaderTimeIsNoFinding) {
  EXPECT_EQ(OutcomeOf("input-bound", R"(
    thread 1
    repeat 6 every 1000
      step 0 1000 ProfilerStep#1
      call 10 20 cudaLaunchKernel | corr=1
      annotation 30 900 enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
    end
    stream 0 7
    repeat 6 every 1000
      kernel 25 1000 gemm | corr=1
    end)"),
            "passed");
}

TEST(InputBound, StrayOperationOnAnotherDeviceIsNoIdleDevice) {
  EXPECT_EQ(OutcomeOf("input-bound", R"(
    thread 1
    repeat 6 every 1000
      step 0 1000 ProfilerStep#1
      call 10 20 cudaLaunchKernel | corr=1
      annotation 30 900 enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
    end
    stream 0 7
    repeat 6 every 1000
      kernel 25 1000 gemm | corr=1
    end
    stream 1 7
    memset 40 41 Memset (Device))"),
            "passed");
}

TEST(InputBound, OneSlowBatchIsNoSlowLoader) {
  EXPECT_EQ(OutcomeOf("input-bound", R"(
    thread 1
    annotation 0 900 data_wait
    repeat 6 every 1000
      step 0 1000 step
      annotation 990 991 data_wait
    end)"),
            "passed");
}

TEST(InputBound, WithoutDeviceWorkEveryWaitIsExposed) {
  EXPECT_EQ(OutcomeOf("input-bound", R"(
    thread 1
    repeat 6 every 1000
      step 0 1000 step
      annotation 0 100 data_wait
      annotation 100 1000 forward
    end)"),
            "warning count=6 cost=0.100 gain=0.000..0.095 where=:0 data_wait x6");
}

TEST(InputBound, DeletingTheLoadersRowsSkipsTheRule) {
  EXPECT_EQ(OutcomeOf("input-bound", R"(
    thread 1
    repeat 6 every 1000
      step 0 1000 step
      annotation 100 1000 forward
    end)"),
            "skipped: no range in the trace shows the data loader's wait");
}

// 20 steps with GPU detail, without a wait; 60 without detail, which wait.
std::string WithSlowerOthers(int others_us, int wait_us, int kernel_us = 900, int step_us = 1000) {
  return fmt::format(R"(
    recording
    thread 1
    repeat 20 every {1}
      step 0 {1} step
      annotation 0 1 data_wait | stack=train.py(7): main
      call 30 40 cudaLaunchKernel | corr=1
    end
    repeat 60 every {2}
      step {0} {3} step
      annotation {0} {4} data_wait | stack=train.py(7): main
    end
    device-gap {0} {5}
    stream 0 7
    repeat 20 every {7}
      kernel 45 {6} gemm | corr=1
    end)",
                     20 * step_us, step_us, others_us, 20 * step_us + others_us,
                     20 * step_us + wait_us, 20 * step_us + 60 * others_us, 45 + kernel_us,
                     std::max(step_us, kernel_us));
}

// 0.3 ms of each of the 10 steps with detail that count, told here as a share of all 70.
TEST(InputBound, IsJudgedByStepsWithoutDetailWhereTheLoaderIsSlowerThere) {
  EXPECT_EQ(OutcomeOf("input-bound", WithSlowerOthers(1300, 320)),
            "error count=60 cost=0.043 gain=0.124..0.320 where=train.py:7 main x60");
}

TEST(InputBound, AWaitBesideAFullDeviceInStepsWithoutDetailIsHidden) {
  // 1300 us of kernels a step, whose launches take 1000 us: the host runs ahead, until the queue is full.
  EXPECT_EQ(OutcomeOf("input-bound", WithSlowerOthers(1300, 320, 1290)), "passed");
}

TEST(InputBound, AWaitThatMadeNoStepLongerIsNotJudged) {
  EXPECT_EQ(OutcomeOf("input-bound", WithSlowerOthers(1000, 320, 500)),
            "skipped: steps without GPU detail wait for the loader for 0.3 ms a step, and 1.0 us "
            "with it: whether the GPU was idle meanwhile was not recorded (--full records it)");
}

TEST(InputBound, StepsWithoutDetailThatAreLongerForAnotherReasonAreNoSlowLoader) {
  EXPECT_EQ(OutcomeOf("input-bound", WithSlowerOthers(2000, 20)), "passed");
}

}  // namespace
}  // namespace trainprof
