#include <gtest/gtest.h>

#include "tests/analysis/rules/findings_text.h"

namespace trainprof {
namespace {

// The device runs dry before each launch: the host is the slower side.
constexpr char kDevice[] = R"(
    stream 0 7
    repeat 5 every 1000
      kernel 25 200 gemm | corr=1
      copy 300 302 Memcpy HtoD (Pageable -> Device) | corr=2 bytes=512
      kernel 515 900 gemm | corr=3
    end)";

std::string WithDevice(const std::string& host) {
  return OutcomeOf("cpu-tensor", "thread 1\nrepeat 5 every 1000" + host + "\nend" + kDevice);
}

TEST(CpuTensor, ATensorMadeAndCopiedIsFoundAtItsLine) {
  EXPECT_EQ(WithDevice(R"(
      step 0 1000 ProfilerStep#1
      call 10 20 cudaLaunchKernel | corr=1
      op 210 240 aten::randn | stack=train.py(9): main
      op 250 310 aten::to | stack=train.py(9): main
        op 260 305 aten::copy_
        call 280 300 cudaMemcpyAsync | corr=2
      call 500 510 cudaLaunchKernel | corr=3)"),
            "warning count=4 cost=0.080 gain=0.010..0.290 where=train.py:9 main x4");
}

TEST(CpuTensor, WithoutItsStackTheFindingLosesItsPlaceOnly) {
  EXPECT_EQ(WithDevice(R"(
      step 0 1000 ProfilerStep#1
      call 10 20 cudaLaunchKernel | corr=1
      op 210 240 aten::randn
      op 250 310 aten::to
        op 260 305 aten::copy_
        call 280 300 cudaMemcpyAsync | corr=2
      call 500 510 cudaLaunchKernel | corr=3)"),
            "warning count=4 cost=0.080 gain=0.010..0.290 where=:0 aten::to x4");
}

TEST(CpuTensor, ACopyOfWhatWasThereBeforeIsNone) {
  EXPECT_EQ(WithDevice(R"(
      step 0 1000 ProfilerStep#1
      call 10 20 cudaLaunchKernel | corr=1
      op 210 240 aten::mul
      op 250 310 aten::to
        call 280 300 cudaMemcpyAsync | corr=2
      call 500 510 cudaLaunchKernel | corr=3)"),
            "passed");
}

TEST(CpuTensor, ANativeStackNamesTheLineOfACppProgram) {
  EXPECT_EQ(WithDevice(R"(
      step 0 1000 step
      call 10 20 cudaLaunchKernel | corr=1
      call 280 300 cudaMemcpyAsync | corr=2 stack=/usr/lib/libcudart.so.13(+0x11): cudaMemcpyAsync;/opt/libtorch/lib/libtorch_cpu.so(+0x20): at::Tensor::to(at::Device) const;/home/me/train.cpp(31): make_noise(int);/home/me/train.cpp(88): main
      call 500 510 cudaLaunchKernel | corr=3)"),
            "note count=4 cost=0.016 gain=0.010..0.290 where=/home/me/train.cpp:31 make_noise "
            "x4");
}

TEST(CpuTensor, ABatchThatTheUserNamesIsNone) {
  for (const char* range : {"h2d", "data_wait"}) {
    EXPECT_EQ(WithDevice(std::string(R"(
      step 0 1000 step
      call 10 20 cudaLaunchKernel | corr=1
      annotation 270 310 )") +
                         range + R"(
      call 280 300 cudaMemcpyAsync | corr=2
      call 500 510 cudaLaunchKernel | corr=3)"),
              "passed")
        << range;
  }
}

TEST(CpuTensor, ABusyDeviceHidesIt) {
  EXPECT_EQ(OutcomeOf("cpu-tensor", R"(
    thread 1
    repeat 5 every 1000
      step 0 1000 step
      call 10 20 cudaLaunchKernel | corr=1
      call 280 300 cudaMemcpyAsync | corr=2
    end
    stream 0 7
    repeat 5 every 1000
      kernel 0 1000 gemm | corr=1
    end
    stream 0 8
    repeat 5 every 1000
      copy 300 302 Memcpy HtoD (Pageable -> Device) | corr=2 bytes=512
    end)"),
            "passed");
}

TEST(CpuTensor, LargeCopiesAreAnotherRulesAndRocmDoesNotTell) {
  const std::string script = R"(
    thread 1
    step 0 1000 step
    call 280 300 cudaMemcpyAsync | corr=2
    stream 0 7
    copy 300 400 )";
  EXPECT_EQ(
      OutcomeOf("cpu-tensor", script + "Memcpy HtoD (Pageable -> Device) | corr=2 bytes=65537"),
      "passed");
  EXPECT_EQ(OutcomeOf("cpu-tensor", script + "Memcpy HtoD (Host -> Device) | corr=2 bytes=8"),
            "skipped: the trace does not say whether host memory was pageable (ROCm does not)");
}

// torch.compile's first steps copy, the counted ones do not.
TEST(CpuTensor, CopiesOutsideTheStepsTellWhatMemoryIsToo) {
  constexpr char kScript[] = R"(
    thread 1
    call 10 30 cudaMemcpyAsync | corr=1
    step 100 1000 step
    call 280 300 cudaLaunchKernel | corr=2
    step 1000 2000 step
    call 1280 1300 cudaLaunchKernel | corr=3
    stream 0 7
    copy 20 30 Memcpy HtoD (Pageable -> Device) | corr=1 bytes=512
    kernel 290 400 gemm | corr=2
    kernel 1290 1400 gemm | corr=3)";
  EXPECT_EQ(OutcomeOf("cpu-tensor", kScript), "passed");
  EXPECT_EQ(OutcomeOf("pageable-copy", kScript), "passed");
}

}  // namespace
}  // namespace trainprof
