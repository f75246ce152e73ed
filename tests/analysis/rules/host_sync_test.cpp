#include <gtest/gtest.h>

#include "tests/analysis/rules/findings_text.h"

namespace trainprof {
namespace {

TEST(HostSync, BlockingDeviceToHostCopiesAreChargedTheirDrain) {
  EXPECT_EQ(OutcomeOf("host-sync", R"(
    thread 1
    repeat 5 every 1000
      step 0 1000 ProfilerStep#1
      call 10 20 cudaLaunchKernel | corr=1
      op 28 410 aten::item | stack=torch/_tensor.py(1): item;train.py(9): main
      call 30 405 cudaMemcpyAsync | corr=2
      call 406 408 cudaStreamSynchronize
      call 500 510 cudaLaunchKernel | corr=3
    end
    stream 0 7
    repeat 5 every 1000
      kernel 25 390 gemm | corr=1
      copy 390 400 Memcpy DtoH (Device -> Pageable) | corr=2 bytes=4
      kernel 515 1000 gemm | corr=3
    end)"),
            "error count=5 cost=0.135 gain=0.128..0.148 where=train.py:9 main x5");
}

TEST(HostSync, WhereNothingIsTrainedResultsAreReadOneStepLater) {
  const auto advice = [](std::string_view operation) {
    return AdviceOf("host-sync", fmt::format(R"(
      thread 1
      repeat 5 every 1000
        step 0 1000 step
        op 5 21 {}
        call 10 20 cudaLaunchKernel | corr=1
        call 30 405 cudaMemcpyAsync | corr=2
        call 500 510 cudaLaunchKernel | corr=3
      end
      stream 0 7
      repeat 5 every 1000
        kernel 25 390 gemm | corr=1
        copy 390 400 Memcpy DtoH (Device -> Pageable) | corr=2 bytes=4
        kernel 515 1000 gemm | corr=3
      end)",
                                             operation))
        .substr(0, 18);
  };
  EXPECT_EQ(advice("AddmmBackward0"), "Keep values on the");
  EXPECT_EQ(advice("vllm::rms_norm"), "Read results one s");
}

// Something else had the processor for 200 us between the copy and the sync of each .item(): with the copy goes the sync.
TEST(HostSync, OfAReadThatWasHeldUpTheSyncBehindIsPart) {
  const auto gain = [](int held_up_us) {
    return OutcomeOf("host-sync", fmt::format(R"(
      thread 1
      repeat 20 every 1000
        step 0 1000 step
        call 10 20 cudaLaunchKernel | corr=1
        call 30 405 cudaMemcpyAsync | corr=2
        call {} {} cudaStreamSynchronize
        call 800 810 cudaLaunchKernel | corr=3
      end
      stream 0 7
      repeat 20 every 1000
        kernel 25 390 gemm | corr=1
        copy 390 400 Memcpy DtoH (Device -> Pageable) | corr=2 bytes=4
        kernel 815 1000 gemm | corr=3
      end)",
                                              405 + held_up_us, 407 + held_up_us));
  };
  EXPECT_EQ(gain(200), gain(2));
  EXPECT_NE(gain(200), "passed");
}

// The copy returned at once; the wait, and with it the stack, is the synchronisation behind it.
TEST(HostSync, ANativeStackOfTheWaitNamesTheLine) {
  EXPECT_EQ(OutcomeOf("host-sync", R"(
    thread 1
    repeat 5 every 1000
      step 0 1000 step
      call 10 20 cudaLaunchKernel | corr=1
      call 30 35 cudaMemcpyAsync | corr=2
      call 40 405 cudaStreamSynchronize | corr=4 stack=/opt/libtorch/lib/libtorch_cpu.so(+0x9): at::Tensor::item() const;/home/me/train.cpp(88): main
      call 500 510 cudaLaunchKernel | corr=3
    end
    stream 0 7
    repeat 5 every 1000
      kernel 25 390 gemm | corr=1
      copy 390 400 Memcpy DtoH (Device -> Pinned) | corr=2 bytes=4
      kernel 515 1000 gemm | corr=3
    end)"),
            "error count=5 cost=0.135 gain=0.130..0.150 where=/home/me/train.cpp:88 main x5");
}

// The device synchronisation stays: only the drain is sure to go.
TEST(HostSync, BesideAnotherSyncOnlyTheDrainIsSure) {
  EXPECT_EQ(OutcomeOf("host-sync", R"(
    thread 1
    repeat 5 every 1000
      step 0 1000 step
      call 10 20 cudaLaunchKernel | corr=1
      call 30 405 cudaMemcpyAsync | corr=2
      call 406 408 cudaStreamSynchronize
      call 500 510 cudaLaunchKernel | corr=3
      call 520 1000 cudaDeviceSynchronize
    end
    stream 0 7
    repeat 5 every 1000
      kernel 25 390 gemm | corr=1
      copy 390 400 Memcpy DtoH (Device -> Pageable) | corr=2 bytes=4
      kernel 515 1000 gemm | corr=3
    end)"),
            "error count=5 cost=0.115 gain=0.104..0.124 where=:0  x5");
}

TEST(HostSync, ItemOnACpuTensorCopiesNothingAndIsNotCounted) {
  EXPECT_EQ(OutcomeOf("host-sync", R"(
    thread 1
    repeat 5 every 1000
      step 0 1000 ProfilerStep#1
      op 28 410 aten::_local_scalar_dense
      call 500 510 cudaLaunchKernel | corr=3
    end
    stream 0 7
    repeat 5 every 1000
      kernel 515 1000 gemm | corr=3
    end)"),
            "passed");
}

TEST(HostSync, CopyThatReturnsAtOnceIsNoSync) {
  EXPECT_EQ(OutcomeOf("host-sync", R"(
    thread 1
    repeat 5 every 1000
      step 0 1000 ProfilerStep#1
      call 10 20 cudaLaunchKernel | corr=1
      call 30 35 cudaMemcpyAsync | corr=2
    end
    stream 0 7
    repeat 5 every 1000
      kernel 25 390 gemm | corr=1
      copy 390 400 Memcpy DtoH (Device -> Pinned) | corr=2 bytes=4
    end)"),
            "passed");
}

TEST(HostSync, PinnedCopyWithASyncBehindItCounts) {
  EXPECT_EQ(OutcomeOf("host-sync", R"(
    thread 1
    repeat 5 every 1000
      step 0 1000 ProfilerStep#1
      call 10 20 cudaLaunchKernel | corr=1
      call 30 35 cudaMemcpyAsync | corr=2
      call 40 405 cudaStreamSynchronize
    end
    stream 0 7
    repeat 5 every 1000
      kernel 25 390 gemm | corr=1
      copy 390 400 Memcpy DtoH (Device -> Pinned) | corr=2 bytes=4
    end)")
                .substr(0, 13),
            "error count=4");
}

TEST(HostSync, OnceIsNoHabit) {
  EXPECT_EQ(OutcomeOf("host-sync", R"(
    thread 1
    repeat 5 every 1000
      step 0 1000 ProfilerStep#1
    end
    call 10 20 cudaLaunchKernel | corr=1
    call 30 405 cudaMemcpyAsync | corr=2
    stream 0 7
    kernel 25 390 gemm | corr=1
    copy 390 400 Memcpy DtoH (Device -> Pageable) | corr=2 bytes=4)"),
            "passed");
}

TEST(HostSync, TraceWithoutDeviceWorkIsNotChecked) {
  EXPECT_EQ(OutcomeOf("host-sync", "thread 1\nstep 0 100 step"),
            "skipped: the trace holds no device work");
}

}  // namespace
}  // namespace trainprof
