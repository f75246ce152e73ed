#include <gtest/gtest.h>

#include "tests/analysis/rules/findings_text.h"

namespace trainprof {
namespace {

// `work` is on thread 1 during the first 5 ms of a step of 10.
std::string StepsWith(std::string_view work) {
  return fmt::format(R"(
    thread 1
    repeat 5 every 10000
      step 0 10000 step
      {}
      call 5100 5110 cudaLaunchKernel | corr=1
    end
    stream 0 7
    repeat 5 every 10000
      kernel 5115 10000 gemm | corr=1
    end)",
                     work);
}

std::string TitleOf(std::string_view work) {
  for (const Finding& finding : Analyze(TraceFromScript(StepsWith(work))).findings) {
    if (finding.rule == "host-work") return finding.title.substr(0, finding.title.find(" ms/step"));
  }
  return "";
}

TEST(HostWork, TheUsersOwnRangeIsNamed) {
  const std::string script = StepsWith("annotation 0 5000 tokenize");
  EXPECT_EQ(OutcomeOf("host-work", script).substr(0, 13), "error count=5");
  const RankAnalysis analysis = Analyze(TraceFromScript(script));
  EXPECT_NE(analysis.findings[0].title.find("\"tokenize\""), std::string::npos)
      << analysis.findings[0].title;
}

TEST(HostWork, CollectionsFilesAndPythonAreToldApart) {
  EXPECT_EQ(TitleOf("python 0 5000 <built-in method collect of module>"),
            "Garbage collection: the GPU stands idle for 5.00");
  EXPECT_EQ(TitleOf("python 0 5000 torch/serialization.py(9): save"),
            "Saving or logging: the GPU stands idle for 5.00");
  EXPECT_EQ(TitleOf("python 0 5000 train.py(9): count_words"),
            "Python: the GPU stands idle for 5.00");
}

// Looks at what the thread used of the CPU show that it computed. The device was busy for the first
// millisecond of that: without the work the host is ahead of it.
TEST(HostWork, OfAThreadThatComputedSilentlyTheWholeStretchGoes) {
  EXPECT_EQ(OutcomeOf("host-work", R"(
    thread 1
    repeat 6 every 10000
      step 0 10000 step
      cpu 0 10000 | used=9990
      call 8000 8010 cudaLaunchKernel | corr=1
    end
    stream 0 7
    repeat 6 every 10000
      kernel 8015 11000 gemm | corr=1
    end)"),
            "error count=5 cost=5.833 gain=6.914..7.114 where=:0  x5");
}

// In every other step the device was busy for more than half of it: still it did nothing but that, in all of them.
TEST(HostWork, ARangeThatCallsNothingIsWorkAsAWhole) {
  EXPECT_EQ(OutcomeOf("host-work", R"(
    thread 1
    repeat 6 every 20000
      step 0 10000 step
      annotation 1000 9000 tokenize
      call 9010 9020 cudaLaunchKernel | corr=1
      step 10000 20000 step
      annotation 11000 19000 tokenize
      call 19010 19020 cudaLaunchKernel | corr=2
    end
    stream 0 7
    repeat 6 every 20000
      kernel 9025 14000 gemm | corr=1
      kernel 19025 26000 gemm | corr=2
    end)"),
            "error count=11 cost=3.750 gain=3.294..4.754 where=:0 tokenize x11");
}

constexpr char kSave[] = R"(
    thread 1
    repeat 40 every 10000
      step 0 10000 step
      call 10 20 cudaLaunchKernel | corr=1
      annotation 30 9000 {0}
      call 40 3010 cudaMemcpyAsync | corr=2
    end
    stream 0 7
    repeat 40 every 10000
      kernel 25 2000 gemm | corr=1
      copy 2000 3000 Memcpy DtoH (Device -> Pageable) | corr=2 bytes={1}
    end)";

// Were the file written elsewhere, from memory that the copy went to beside the next step, all of it would go.
TEST(HostWork, ACheckpointsCopiesBelongToIt) {
  const std::string script = fmt::format(kSave, "save_checkpoint", 8 << 20);
  EXPECT_EQ(OutcomeOf("host-sync", script), "passed");
  EXPECT_EQ(OutcomeOf("exposed-copy", script), "passed");
  EXPECT_EQ(OutcomeOf("host-work", script),
            "error count=39 cost=6.815 gain=6.861..8.424 where=:0 save_checkpoint x39");
}

// Nor is what is read for a log a checkpoint.
TEST(HostWork, AValueThatIsLoggedIsRead) {
  const std::string script = fmt::format(kSave, "SummaryWriter.add_scalar", 4);
  EXPECT_NE(OutcomeOf("host-sync", script), "passed");
}

// It holds all steps and says nothing of the gap.
TEST(HostWork, ARangeAroundTheLoopIsNoEvidence) {
  EXPECT_EQ(OutcomeOf("host-work", R"(
    thread 1
    annotation 0 50000 epoch 3
    repeat 5 every 10000
      step 0 10000 step
      call 5100 5110 cudaLaunchKernel | corr=1
    end
    stream 0 7
    repeat 5 every 10000
      kernel 5115 10000 gemm | corr=1
    end)"),
            "passed");
}

TEST(HostWork, WhatTheDeviceHidesIsFine) {
  EXPECT_EQ(OutcomeOf("host-work", R"(
    thread 1
    repeat 5 every 10000
      step 0 10000 step
      call 100 110 cudaLaunchKernel | corr=1
      annotation 200 5000 tokenize
    end
    stream 0 7
    repeat 5 every 10000
      kernel 115 10000 gemm | corr=1
    end)"),
            "passed");
}

TEST(HostWork, WithoutDeviceWorkItIsNotChecked) {
  EXPECT_EQ(OutcomeOf("host-work", "thread 1\nstep 0 100 step"),
            "skipped: the trace holds no device work");
}

}  // namespace
}  // namespace trainprof
