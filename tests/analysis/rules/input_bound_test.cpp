#include <gtest/gtest.h>

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
            "error count=6 cost=0.300 gain=0.160..0.325 where=train.py:7 main x6");
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
            "warning count=6 cost=0.100 gain=0.000..0.100 where=:0 data_wait x6");
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

}  // namespace
}  // namespace trainprof
