#include "analysis/steps/step_names.h"

#include <gtest/gtest.h>

#include "analysis/steps/steps.h"
#include "tests/support/trace_script.h"

namespace trainprof {
namespace {

TEST(StepNames, FrameworksIterationsAreKnown) {
  for (const std::string_view name :
       {"step", "step 12", "train_step", "Iteration 12", "step[DECODE bs=16]",
        "step[EXTEND bs=2 toks=4096]", "prefill[bs=2 tok=16384]", "decode[bs=16 tok=16]",
        "execute_context_1(512)_generation_32(32)", "execute_new_1_cached_63",
        "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk55086sqsq32sqsk55086)",
        "[Executor] _forward_step 12: 1 ctx reqs, 8 gen reqs", "[pl][profile]run_training_batch",
        "train_batch", "train:#step_num=12,_r=1#"}) {
    EXPECT_EQ(StepNameOf(name).kind, StepKind::kIteration) << name;
  }
  EXPECT_EQ(StepNameOf("ProfilerStep#12").kind, StepKind::kProfiler);
  for (const std::string_view name :
       {"execute_model", "forward_step", "eval_step 3", "denoise_7"}) {
    EXPECT_EQ(StepNameOf(name).kind, StepKind::kPart) << name;
  }
  for (const std::string_view name :
       {"", "Optimizer.step#SGD.step", "stepping", "forward", "decode", "[memory]", "[", "epoch 3",
        "execute", "step_function_of_mine", "execute_", "execute_32", "execute_32_batches"}) {
    EXPECT_EQ(StepNameOf(name).kind, StepKind::kNone) << name;
  }
}

TEST(StepNames, SizesOfABatchTellNoLoopsApart) {
  EXPECT_EQ(StepNameOf("step[DECODE bs=16]").base, StepNameOf("step[EXTEND bs=2 toks=64]").base);
  EXPECT_EQ(StepNameOf("prefill[bs=2 tok=16]").base, StepNameOf("decode[bs=16]").base);
  EXPECT_EQ(StepNameOf("execute_context_1(5)_generation_0(0)").base,
            StepNameOf("execute_context_0(0)_generation_32(32)").base);
  EXPECT_EQ(StepNameOf("execute_32_context_0(sq0)_generation_32(sq32)").base,
            StepNameOf("execute_64_context_1(sq32)_generation_32(sq32)").base);
  EXPECT_EQ(StepNameOf("step 1").base, StepNameOf("step 2").base);
  EXPECT_EQ(StepNameOf("train:#step_num=1#").base, StepNameOf("train:#step_num=22,_r=1#").base);
}

TEST(StepNames, AServersIterationsAreSteps) {
  const Steps steps = FindSteps(TraceFromScript(R"(
    thread 1
    annotation 0 90 step[EXTEND bs=1 toks=512]
    annotation 100 120 step[DECODE bs=1]
    annotation 130 150 step[DECODE bs=2])"));
  EXPECT_EQ(steps.source, StepSource::kExplicit);
  EXPECT_EQ(steps.count(), 3u);
}

// As where only the device's side of a capture has them.
TEST(StepNames, AnnotationsOfTheDeviceAreStepsInItsTime) {
  const Steps steps = FindSteps(TraceFromScript(R"(
    thread 1
    repeat 3 every 10
      call 0 5 cudaLaunchKernel | corr=1
    end
    stream 0 7
    repeat 3 every 100
      annotation 50 140 step[DECODE bs=1]
      kernel 50 140 gemm | corr=1
    end)"));
  EXPECT_EQ(steps.source, StepSource::kExplicit);
  EXPECT_EQ(steps.clock, StepClock::kDevice);
  ASSERT_EQ(steps.count(), 3u);
  EXPECT_EQ(steps.steps[0].device, (Interval{TraceTime{50'000}, TraceTime{150'000}}));
  EXPECT_EQ(steps.LagAtEnd(), Duration{});
}

// An evaluation has more and shorter steps; it is not what the job is for.
TEST(StepNames, StepsOfTrainingGoBeforeThoseOfEvaluation) {
  const Steps steps = FindSteps(TraceFromScript(R"(
    thread 1
    annotation 0 90 train_step
    annotation 100 190 train_step
    repeat 6 every 10
      annotation 200 208 eval_step
    end)"));
  EXPECT_EQ(steps.count(), 2u);
  EXPECT_EQ(steps.window.Total(), Microseconds(190));
}

TEST(StepNames, AnOptimizerGoesBeforeForwardSteps) {
  const Steps steps = FindSteps(TraceFromScript(R"(
    thread 1
    repeat 4 every 100
      annotation 0 30 forward_step
      annotation 30 60 forward_step
      annotation 90 95 Optimizer.step#SGD.step
    end)"));
  EXPECT_EQ(steps.source, StepSource::kOptimizer);
  EXPECT_EQ(steps.count(), 3u);
}

TEST(StepNames, WithNothingElseForwardStepsAreTheSteps) {
  const Steps steps = FindSteps(TraceFromScript(R"(
    thread 1
    repeat 4 every 100
      annotation 0 30 forward_step
    end)"));
  EXPECT_EQ(steps.source, StepSource::kExplicit);
  EXPECT_EQ(steps.count(), 4u);
}

TEST(StepNames, IterationsWithinOneProfilerStepAreTheSteps) {
  const Steps steps = FindSteps(TraceFromScript(R"(
    thread 1
    step 0 1000 ProfilerStep#6
    repeat 5 every 200
      annotation 0 150 execute_context_0(0)_generation_8(8)
    end)"));
  EXPECT_EQ(steps.count(), 5u);
}

}  // namespace
}  // namespace trainprof
