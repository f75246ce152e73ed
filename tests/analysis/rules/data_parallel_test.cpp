#include <gtest/gtest.h>

#include "tests/analysis/rules/findings_text.h"

namespace trainprof {
namespace {

constexpr char kDataParallel[] = R"(
    thread 1
    repeat 5 every 1000
      step 0 1000 step
      annotation 0 600 DataParallel.forward
      python 1 100 torch/nn/parallel/scatter_gather.py(71): scatter
      op 10 90 Scatter
      python 100 300 torch/nn/parallel/replicate.py(78): replicate
      op 110 290 Broadcast
      call 310 320 cudaLaunchKernel | corr=1
      call 320 330 cudaLaunchKernel | corr=2
      python 500 560 torch/nn/parallel/scatter_gather.py(99): gather
    end
    stream 0 7
    repeat 5 every 1000
      kernel 325 1000 gemm | corr=1
    end
    stream 1 9
    repeat 5 every 1000
      kernel 335 800 gemm | corr=2
    end)";

TEST(DataParallel, OneProcessThatDrivesSeveralDevices) {
  // 0.299 ms of replicate and scatter on an idle device, and the first one's 0.210 of extra work.
  EXPECT_EQ(OutcomeOf("data-parallel", kDataParallel).substr(0, 25), "error count=15 cost=0.509");
  for (const Finding& finding : Analyze(TraceFromScript(kDataParallel)).findings) {
    if (finding.rule != "data-parallel") continue;
    EXPECT_EQ(finding.title,
              "DataParallel: one process drives 2 GPUs: replicate 0.20, scatter 0.10, gather 0.06 "
              "ms/step; GPU 0 works 0.68 ms/step, the others 0.47");
  }
}

TEST(DataParallel, OneDeviceIsNone) {
  EXPECT_EQ(OutcomeOf("data-parallel", R"(
    thread 1
    repeat 5 every 1000
      step 0 1000 step
      annotation 0 600 DataParallel.forward
      call 310 320 cudaLaunchKernel | corr=1
    end
    stream 0 7
    repeat 5 every 1000
      kernel 325 1000 gemm | corr=1
    end)"),
            "passed");
}

// A pipeline over two devices.
TEST(DataParallel, SeveralDevicesAloneAreNoEvidence) {
  static constexpr char kTwoDevices[] = R"(
    thread 1
    repeat 5 every 1000
      step 0 1000 step
      {}
      call 310 320 cudaLaunchKernel | corr=1
      call 320 330 cudaLaunchKernel | corr=2
    end
    stream 0 7
    repeat 5 every 1000
      kernel 325 1000 gemm | corr=1
    end
    stream 1 9
    repeat 5 every 1000
      kernel 335 800 gemm | corr=2
    end)";
  EXPECT_EQ(
      OutcomeOf("data-parallel", fmt::format(fmt::runtime(kTwoDevices), "op 300 330 aten::mm")),
      "passed");
  EXPECT_EQ(
      OutcomeOf("data-parallel", fmt::format(fmt::runtime(kTwoDevices), "")),
      "skipped: without operators or Python frames the trace does not show how the process shares "
      "its devices' work (--ops records operators)");
}

}  // namespace
}  // namespace trainprof
