#include <gtest/gtest.h>

#include "tests/analysis/rules/findings_text.h"

namespace trainprof {
namespace {

TEST(PageableCopy, LargeBlockingCopiesFire) {
  EXPECT_EQ(OutcomeOf("pageable-copy", R"(
    thread 1
    repeat 5 every 10000
      step 0 10000 ProfilerStep#1
      op 95 2110 aten::copy_ | stack=train.py(12): main
      call 100 2100 cudaMemcpyAsync | corr=1
      call 2150 2160 cudaLaunchKernel | corr=2
    end
    stream 0 7
    repeat 5 every 10000
      copy 200 2100 Memcpy HtoD (Pageable -> Device) | corr=1 bytes=19000000
      kernel 2165 10000 gemm | corr=2
    end)"),
            "warning count=5 cost=1.969 gain=0.478..2.095 where=train.py:12 main x5");
}

TEST(PageableCopy, ANativeStackNamesTheLine) {
  EXPECT_EQ(OutcomeOf("pageable-copy", R"(
    thread 1
    repeat 5 every 10000
      step 0 10000 step
      call 100 2100 cudaMemcpyAsync | corr=1 stack=/opt/libtorch/lib/libtorch_cpu.so(+0x9): at::Tensor::to() const;/home/me/train.cpp(12): load_batch()
      call 2150 2160 cudaLaunchKernel | corr=2
    end
    stream 0 7
    repeat 5 every 10000
      copy 200 2100 Memcpy HtoD (Pageable -> Device) | corr=1 bytes=19000000
      kernel 2165 10000 gemm | corr=2
    end)"),
            "warning count=5 cost=1.965 gain=0.478..2.095 where=/home/me/train.cpp:12 load_batch "
            "x5");
}

TEST(PageableCopy, PinnedCopiesPass) {
  EXPECT_EQ(OutcomeOf("pageable-copy", R"(
    thread 1
    step 0 10000 ProfilerStep#1
    call 100 110 cudaMemcpyAsync | corr=1
    stream 0 7
    copy 200 2100 Memcpy HtoD (Pinned -> Device) | corr=1 bytes=19000000)"),
            "passed");
}

TEST(PageableCopy, ScalarsPass) {
  EXPECT_EQ(OutcomeOf("pageable-copy", R"(
    thread 1
    step 0 10000 ProfilerStep#1
    call 100 210 cudaMemcpyAsync | corr=1
    stream 0 7
    copy 200 202 Memcpy HtoD (Pageable -> Device) | corr=1 bytes=65536)"),
            "passed");
}

TEST(PageableCopy, RocmDoesNotTellPageableFromPinned) {
  EXPECT_EQ(OutcomeOf("pageable-copy", R"(
    thread 1
    step 0 10000 ProfilerStep#1
    call 100 2110 hipMemcpyWithStream | corr=1
    stream 0 7
    copy 200 2100 Memcpy HtoD (Host -> Device) | corr=1 bytes=19000000)"),
            "skipped: the trace does not say whether host memory was pageable (ROCm does not)");
}

}  // namespace
}  // namespace trainprof
