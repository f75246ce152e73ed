#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/analysis/rules/findings_text.h"

namespace trainprof {
namespace {

constexpr char kShortKernels[] = R"(
    thread 1
    repeat 5 every 100
      step 0 100 step
      call 5 10 cudaLaunchKernel | corr=1
      call 35 40 cudaLaunchKernel | corr=2
      call 65 70 cudaLaunchKernel | corr=3
    end
    stream 0 7
    repeat 5 every 100
      kernel 12 20 a | corr=1 grid=4
      kernel 42 50 b | corr=2 grid=4
      kernel 72 80 c | corr=3 grid=4
    end)";

TEST(LaunchBound, ShortKernelsThatWaitForTheirLaunch) {
  EXPECT_EQ(OutcomeOf("launch-bound", kShortKernels).substr(0, 14), "error count=12");
}

TEST(LaunchBound, WhatStepsRepeatIsACandidateForAGraph) {
  const std::string advice = AdviceOf("launch-bound", kShortKernels);
  EXPECT_NE(
      advice.find("3 of 3 launches of a step come in the same order in 4 of 4 steps, with the "
                  "same shapes. Launch these 3 as one CUDA graph"),
      std::string::npos)
      << advice;
}

TEST(LaunchBound, WhatACaptureDoesNotTakeIsNamed) {
  const std::string advice = AdviceOf("launch-bound", R"(
    thread 1
    repeat 5 every 100
      step 0 100 step
      call 5 10 cudaLaunchKernel | corr=1
      call 20 22 cudaStreamSynchronize
      call 35 40 cudaLaunchKernel | corr=2
      call 65 70 cudaLaunchKernel | corr=3
    end
    stream 0 7
    repeat 5 every 100
      kernel 12 20 a | corr=1 grid=4
      kernel 42 50 b | corr=2 grid=4
      kernel 72 80 c | corr=3 grid=4
    end)");
  EXPECT_NE(
      advice.find("A capture does not take cudaStreamSynchronize (1.0 a step); between them the "
                  "longest run is 2"),
      std::string::npos)
      << advice;
}

TEST(LaunchBound, WhatHappensInFewStepsIsCountedAsSuch) {
  const std::string advice = AdviceOf("launch-bound", R"(
    thread 1
    repeat 20 every 100
      step 0 100 step
      call 5 10 cudaLaunchKernel | corr=1
      call 35 40 cudaLaunchKernel | corr=2
      call 65 70 cudaLaunchKernel | corr=3
    end
    call 980 985 cudaMalloc
    stream 0 7
    repeat 20 every 100
      kernel 12 20 a | corr=1 grid=4
      kernel 42 50 b | corr=2 grid=4
      kernel 72 80 c | corr=3 grid=4
    end)");
  EXPECT_NE(advice.find("A capture does not take cudaMalloc (1 in 19 steps); none stands between "
                        "these. Launch these 3 as one CUDA graph"),
            std::string::npos)
      << advice;
}

TEST(LaunchBound, OfAServerItsOwnSettingsAreNamed) {
  const auto text = [](std::string_view operation) {
    return AdviceOf("launch-bound", fmt::format(R"(
    thread 1
    repeat 2 every 100
      step 0 100 step
      op 0 4 {}
      call 5 10 cudaLaunchKernel | corr=1
      call 35 40 cudaLaunchKernel | corr=2
    end
    stream 0 7
    repeat 2 every 100
      kernel 12 20 a | corr=1 grid=4
      kernel 42 50 b | corr=2 grid=4
    end)",
                                                operation));
  };
  EXPECT_NE(text("vllm::rms_norm").find("unless enforce_eager is set"), std::string::npos);
  EXPECT_EQ(text("vllm::rms_norm").find("optimizer"), std::string::npos);
  EXPECT_EQ(text("vllm::rms_norm").back(), '\n') << "its code is not the user's";
  EXPECT_NE(text("sgl_kernel::rmsnorm").find("--disable-cuda-graph"), std::string::npos);
  EXPECT_NE(text("aten::mm").find("torch.compile(model"), std::string::npos);
  EXPECT_NE(text("AddmmBackward0").find("fused optimizers"), std::string::npos);
}

TEST(LaunchBound, ShapesThatVaryAreSaid) {
  const std::string advice = AdviceOf("launch-bound", R"(
    thread 1
    repeat 4 every 100
      step 0 100 step
      call 5 10 cudaLaunchKernel | corr=1
      call 35 40 cudaLaunchKernel | corr=2
    end
    stream 0 7
    kernel 12 20 a | corr=1 grid=4
    kernel 42 50 b | corr=2 grid=4
    kernel 112 120 a | corr=1001 grid=5
    kernel 142 150 b | corr=1002 grid=5
    kernel 212 220 a | corr=2001 grid=6
    kernel 242 250 b | corr=2002 grid=6
    kernel 312 320 a | corr=3001 grid=7
    kernel 342 350 b | corr=3002 grid=7)");
  EXPECT_NE(
      advice.find("2 of 2 launches of a step come in the same order in 3 of 3 steps, 0 of 2 with "
                  "the same shapes. The shapes vary"),
      std::string::npos)
      << advice;
}

// The host stands in item() all the while: it launched none of these kernels there.
TEST(LaunchBound, ShortKernelsAreAtTheirLaunches) {
  const RankAnalysis analysis = Analyze(TraceFromScript(R"(
    thread 1
    repeat 6 every 200
      step 0 200 step
      op 2 42 aten::mul
      call 5 10 cudaLaunchKernel | corr=1
      call 15 20 cudaLaunchKernel | corr=2
      call 25 30 cudaLaunchKernel | corr=3
      call 35 40 cudaLaunchKernel | corr=4
      op 44 195 aten::item
      call 45 192 cudaStreamSynchronize | corr=5
    end
    stream 0 7
    repeat 6 every 200
      kernel 12 50 a | corr=1
      kernel 55 90 b | corr=2
      kernel 95 130 c | corr=3
      kernel 135 190 d | corr=4
      sync 45 192 Stream Sync | corr=5
    end)"));
  for (const Finding& finding : analysis.findings) {
    if (finding.rule != "launch-bound") continue;
    ASSERT_FALSE(finding.where.empty());
    EXPECT_EQ(finding.where.front().op, "aten::mul");
    for (const Site& site : finding.where) EXPECT_NE(site.op, "aten::item");
    return;
  }
  FAIL() << "not found";
}

TEST(LaunchBound, AFullQueueIsFine) {
  EXPECT_EQ(OutcomeOf("launch-bound", R"(
    thread 1
    repeat 50 every 100
      step 0 100 step
      call 5 6 cudaLaunchKernel | corr=1
      call 7 8 cudaLaunchKernel | corr=2
    end
    stream 0 7
    repeat 50 every 100
      kernel 12 60 a | corr=1
      kernel 60 112 b | corr=2
    end)"),
            "passed");
}

// While the loop makes its batch itself, all that the host takes to launch makes the step longer. With batches that are there
// only the 0.1 ms before the first kernel do.
TEST(LaunchBound, WhatGoesWithSomethingElseIsANote) {
  const auto severity_behind = [](int batch_us) {
    std::string calls;
    std::string kernels;
    for (int i = 0; i < 10; ++i) {
      const int at = batch_us + 100 * i;
      calls += fmt::format("call {} {} cudaLaunchKernel | corr={}\n", at + 85, at + 95, i + 1);
      kernels += fmt::format("kernel {} {} k | corr={}\n", at + 100, at + 199, i + 1);
    }
    const RankAnalysis analysis = Analyze(TraceFromScript(
        fmt::format("thread 1\nrepeat 20 every {0}\nstep 0 {0} step\nannotation 0 {1} "
                    "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__\n{2}end\n"
                    "stream 0 7\nrepeat 20 every {0}\n{3}end",
                    batch_us + 1000, batch_us, calls, kernels)));
    for (const Finding& finding : analysis.findings) {
      if (finding.rule == "launch-bound") return std::string(Name(finding.severity));
    }
    return std::string("none");
  };
  EXPECT_EQ(severity_behind(8000), "note") << "0.1 ms of 9 are left to gain";
  EXPECT_EQ(severity_behind(1000), "warning") << "0.1 ms of 2";
}

TEST(LaunchBound, WithoutDeviceWorkItIsNotChecked) {
  EXPECT_EQ(OutcomeOf("launch-bound", "thread 1\nstep 0 100 step"),
            "skipped: the trace holds no device work");
}

// A step of 16 kernels whose host waits for the device between forward and backward. Launched as a graph they would save
// as much as without the wait, and a little more: but a capture does not take the wait.
TEST(LaunchBound, StandsBehindTheSyncBesideWhichItGivesNothing) {
  const auto step_of = [](int from, int first, int count, int host_at, int device_at) {
    std::string calls;
    std::string kernels;
    for (int i = 0; i < count; ++i) {
      const int at = host_at + 25 * i;
      calls += fmt::format("call {} {} cudaLaunchKernel | corr={}\n", at, at + 5, from + first + i);
      kernels += fmt::format("kernel {} {} gemm | corr={}\n", device_at + 41 * i,
                             device_at + 41 * i + 40, from + first + i);
    }
    return std::pair(calls, kernels);
  };
  std::string host;
  std::string device;
  for (int step = 0; step < 20; ++step) {
    const int at = 730 * step;
    const auto [forward, forward_kernels] = step_of(100 * step, 1, 8, at + 20, at + 30);
    const auto [backward, backward_kernels] = step_of(100 * step, 9, 8, at + 384, at + 394);
    host += fmt::format("step {} {} step\n", at, at + 730) + forward +
            fmt::format("call {} {} cudaStreamSynchronize | corr={}\n", at + 220, at + 360,
                        100 * step + 50) +
            backward;
    device += forward_kernels + backward_kernels;
  }
  const RankAnalysis rank = Analyze(TraceFromScript("thread 1\n" + host + "stream 0 7\n" + device));
  ASSERT_GE(rank.findings.size(), 2U);
  EXPECT_EQ(rank.findings[0].rule, "sync-call");
  EXPECT_EQ(rank.findings[1].rule, "launch-bound");
}

}  // namespace
}  // namespace trainprof
