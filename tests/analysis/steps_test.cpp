// How steps are found, from the surest evidence down.
#include "analysis/steps/steps.h"

#include <gtest/gtest.h>

#include "analysis/job/analysis.h"
#include "tests/support/trace_script.h"

namespace trainprof {
namespace {

TEST(Steps, ExplicitStepsReachToTheNextOnesBegin) {
  const Trace trace = TraceFromScript(R"(
    thread 1
    repeat 3 every 100
      step 0 80 step
    end)");
  const Steps steps = FindSteps(trace);
  EXPECT_EQ(steps.source, StepSource::kExplicit);
  ASSERT_EQ(steps.count(), 3u);
  EXPECT_EQ(steps.steps[0].span, (Interval{TraceTime{0}, TraceTime{100'000}}));
  EXPECT_EQ(steps.steps[2].span, (Interval{TraceTime{200'000}, TraceTime{280'000}}));
  EXPECT_EQ(steps.Median(), Microseconds(80));
  EXPECT_EQ(steps.window.Total(), Microseconds(280));
}

TEST(Steps, OptimizerStepIsNoStepRange) {
  EXPECT_FALSE(IsStepName("Optimizer.step#SGD.step"));
  EXPECT_TRUE(IsStepName("ProfilerStep#12"));
  EXPECT_TRUE(IsStepName("train_step 7"));
  EXPECT_FALSE(IsStepName("stepper"));
}

TEST(Steps, ProfilerStepWinsOverOwnRanges) {
  const Trace trace = TraceFromScript(R"(
    thread 1
    repeat 2 every 100
      step 0 90 ProfilerStep#3
      annotation 0 30 iteration
      annotation 30 60 iteration
    end)");
  EXPECT_EQ(FindSteps(trace).count(), 2u);
}

TEST(Steps, OptimizerEndsAreBoundariesWithoutStepRanges) {
  const Trace trace = TraceFromScript(R"(
    thread 1
    repeat 4 every 100
      annotation 80 95 Optimizer.step#Adam.step
      op 0 60 aten::conv2d
    end)");
  const Steps steps = FindSteps(trace);
  EXPECT_EQ(steps.source, StepSource::kOptimizer);
  ASSERT_EQ(steps.count(), 3u);
  EXPECT_EQ(steps.steps[0].range, (Interval{TraceTime{95'000}, TraceTime{195'000}}));
}

TEST(Steps, LoaderNextsComeAfterOptimizerSteps) {
  const Trace trace = TraceFromScript(R"(
    thread 1
    repeat 3 every 100
      annotation 0 10 enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
    end)");
  const Steps steps = FindSteps(trace);
  EXPECT_EQ(steps.source, StepSource::kLoader);
  EXPECT_EQ(steps.count(), 2u);
}

// Two optimizer steps warm up, then a graph holds them: the loader tells of steps. Where each step has graphs and an
// optimizer of its own, that one does.
TEST(Steps, InACudaGraphAreTheLoadersNotTheOptimizers) {
  const std::string script = R"(
    thread 1
    repeat 10 every 1000
      annotation 0 50 enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
    end
    repeat 2 every 1000
      annotation 700 900 Optimizer.step#SGD.step
    end
    repeat 8 every 1000
      call 2100 2110 cudaGraphLaunch | corr=10
    end
    stream 0 7
    repeat 8 every 1000
      kernel 2120 2400 gemm | corr=10
    end)";
  const Steps graphs = FindSteps(TraceFromScript(script));
  EXPECT_EQ(graphs.source, StepSource::kLoader);
  EXPECT_EQ(graphs.count(), 9U);
  std::string with_optimizers = script;
  with_optimizers.replace(with_optimizers.find("repeat 2 every"), 14, "repeat 10 every");
  EXPECT_EQ(FindSteps(TraceFromScript(with_optimizers)).source, StepSource::kOptimizer);
}

// Three compiled programs a step, of which one does the work; another thread tries kernels out while it compiles.
TEST(Steps, OfJaxAreTheRunsOfTheProgramThatTakesLongest) {
  const Trace trace = TraceFromScript(R"(
    thread 2
    annotation 0 900 XlaModule:#hlo_module=gemm_fusion_dot.2#
    thread 1
    repeat 3 every 1000
      annotation 1000 1010 XlaModule:#hlo_module=jit_convert_element_type,program_id=3#
      annotation 1020 1030 XlaModule:#hlo_module=jit_convert_element_type,program_id=3#
      annotation 1100 1300 XlaModule:#hlo_module=jit_update,program_id=6634#
    end)");
  const Steps steps = FindSteps(trace);
  EXPECT_EQ(steps.source, StepSource::kExplicit);
  ASSERT_EQ(steps.count(), 3U);
  EXPECT_EQ(steps.steps[1].span, (Interval{TraceTime{2'100'000}, TraceTime{3'100'000}}));
  EXPECT_EQ(trace.tracks[Index(steps.thread)].tid, 1);
}

TEST(Steps, PeriodicDeviceWorkIsInferredAndLabelled) {
  const Trace trace = TraceFromScript(R"(
    stream 0 7
    repeat 5 every 100
      kernel 0 10 gemm
      kernel 10 20 relu
      kernel 20 30 gemm
      kernel 30 40 adam
    end)");
  const Steps steps = FindSteps(trace);
  EXPECT_EQ(steps.source, StepSource::kInferred);
  ASSERT_EQ(steps.count(), 4u);
  EXPECT_EQ(steps.steps[0].range.Length(), Microseconds(100));
}

TEST(Steps, TwoAlternatingOperationsAreNoTrainingStep) {
  const Trace trace = TraceFromScript(R"(
    stream 0 7
    repeat 6 every 100
      memset 0 10 Memset (Device)
      kernel 10 20 gemm
    end)");
  EXPECT_EQ(FindSteps(trace).source, StepSource::kNone);
}

TEST(Steps, UnrepeatedWorkHasNoSteps) {
  const Trace trace = TraceFromScript(R"(
    stream 0 7
    kernel 0 10 a
    kernel 10 20 b
    kernel 30 50 a)");
  const Steps steps = FindSteps(trace);
  EXPECT_EQ(steps.source, StepSource::kNone);
  EXPECT_EQ(steps.window.Total(), Microseconds(50));
}

std::vector<int64_t> NumbersOf(const Steps& steps) {
  std::vector<int64_t> numbers;
  for (const Step& step : steps.steps) numbers.push_back(step.number);
  return numbers;
}

TEST(Steps, HaveTheNumbersOfTheirNames) {
  const Steps steps = FindSteps(TraceFromScript(R"(
    thread 1
    step 0 100 ProfilerStep#7
    step 100 200 ProfilerStep#8
    step 250 300 ProfilerStep#12)"));
  EXPECT_EQ(NumbersOf(steps), (std::vector<int64_t>{7, 8, 12}));
  EXPECT_EQ(steps.Find(12), 2u);
  EXPECT_EQ(steps.Find(9), std::nullopt);
  EXPECT_EQ(steps.Find(13), std::nullopt);
}

// One without a number, one twice (each epoch counts anew), one beyond 63 bits.
TEST(Steps, AreCountedWhereTheirNamesDoNotTellThemApart) {
  for (const char* last : {"step", "step 2", "step 99999999999999999999"}) {
    const Steps steps = FindSteps(TraceFromScript(
        "thread 1\nstep 0 100 step 1\nstep 100 200 step 2\nstep 200 300 " + std::string(last)));
    EXPECT_EQ(NumbersOf(steps), (std::vector<int64_t>{0, 1, 2})) << last;
  }
}

// Also where the one that is set aside is not the first.
TEST(Steps, ThatAreSetAsideCount) {
  const Steps steps = FindSteps(TraceFromScript(R"(
    recording
    thread 1
    repeat 8 every 100
      step 0 100 step
    end
    overhead 410 460 CUPTI set-up)"));
  EXPECT_EQ(steps.warmup_steps, 3);
  EXPECT_EQ(NumbersOf(steps), (std::vector<int64_t>{2, 3, 5, 6, 7}));
}

TEST(Steps, OwnRecordingsSetWarmupAside) {
  const Trace trace = TraceFromScript(R"(
    recording
    thread 1
    repeat 20 every 100
      step 0 100 step
    end)");
  const Steps steps = FindSteps(trace);
  EXPECT_EQ(steps.warmup_steps, 5);
  EXPECT_EQ(steps.count(), 15u);
}

TEST(Steps, TheStepInWhichCuptiWasSetUpIsSetAside) {
  const Steps steps = FindSteps(TraceFromScript(R"(
    recording
    thread 1
    repeat 3 every 100
      step 0 100 step
    end
    overhead 10 60 CUPTI set-up)"));
  EXPECT_EQ(steps.warmup_steps, 1);
  EXPECT_EQ(steps.count(), 2u);
  EXPECT_EQ(steps.window.Total(), Microseconds(200));
}

TEST(Steps, TheOnlyStepIsKeptAlthoughCuptiWasSetUpInIt) {
  const Steps steps = FindSteps(TraceFromScript(R"(
    recording
    thread 1
    step 0 100 step
    overhead 10 60 CUPTI set-up)"));
  EXPECT_EQ(steps.warmup_steps, 0);
  EXPECT_EQ(steps.count(), 1u);
}

TEST(Steps, WithoutAnyTheWindowLeavesCuptisSetUpOut) {
  const Steps steps = FindSteps(TraceFromScript(R"(
    recording
    thread 1
    overhead 0 500 CUPTI set-up
    call 500 510 cudaLaunchKernel | corr=1
    stream 0 7
    kernel 520 600 k | corr=1)"));
  EXPECT_EQ(steps.source, StepSource::kNone);
  EXPECT_EQ(steps.window.Total(), Microseconds(100));
}

TEST(Steps, StepThatWasOpenAtTheEndIsNoWholeStep) {
  Trace trace = TraceFromScript(R"(
    recording
    thread 1
    repeat 3 every 100
      step 0 100 step
    end
    step 300 310 step)");
  EXPECT_EQ(FindSteps(trace).count(), 3u);
  trace.quality.Count("open_range_at_end", QualitySeverity::kWarning);
  EXPECT_EQ(FindSteps(trace).count(), 3u);
  EXPECT_EQ(FindSteps(trace).warmup_steps, 0);
}

TEST(Steps, RecordingGapEndsAStepWithItsRange) {
  const Trace trace = TraceFromScript(R"(
    thread 1
    step 0 100 step
    step 900 1000 step
    gap 120 880)");
  const Steps steps = FindSteps(trace);
  EXPECT_EQ(steps.window.Total(), Microseconds(200));
}

// As when a file rounds the end of one step and the begin of the next apart.
TEST(Steps, StepsThatOverlapByRoundingAreAllKept) {
  const Trace trace = TraceFromScript(R"(
    thread 1
    step 0 101 ProfilerStep#1
    step 100 201 ProfilerStep#2
    step 200 300 ProfilerStep#3)");
  const Steps steps = FindSteps(trace);
  EXPECT_EQ(steps.count(), 3u);
  EXPECT_EQ(steps.window.Total(), Microseconds(300));
}

// 20 steps of 1 ms, the devices recorded from the 11th to the 14th only.
constexpr char kPartlyRecorded[] = R"(
    recording
    thread 1
    repeat 20 every 1000
      step 0 900 step
      annotation 0 300 data_wait
    end
    device-gap 0 10000
    device-gap 14000 20000
    repeat 4 every 1000
      call 10310 10320 cudaLaunchKernel | corr=1
    end
    stream 0 7
    repeat 4 every 1000
      kernel 10325 10900 gemm | corr=1
    end)";

TEST(Steps, ThoseThatTouchAGapOfTheDevicesAreSetAsideForTheirAccountsOnly) {
  const Trace trace = TraceFromScript(kPartlyRecorded);
  const Steps steps = FindSteps(trace);
  EXPECT_EQ(steps.warmup_steps, 5);
  EXPECT_EQ(steps.count(), 15u);
  EXPECT_EQ(steps.window.Total(), Milliseconds(15) - Microseconds(100));  // no hole for the host
  const Steps detail = WithDeviceDetail(steps, DeviceGaps(trace));
  EXPECT_EQ(detail.count(), 4u);
  EXPECT_EQ(detail.window, IntervalSet::Union({{TraceTime{10'000'000}, TraceTime{14'000'000}}}));
}

TEST(Steps, AGapOfTheDevicesIsNeverIdleTime) {
  const RankAnalysis analysis = Analyze(TraceFromScript(kPartlyRecorded));
  ASSERT_EQ(analysis.devices.size(), 1u);
  Duration sum;
  for (const AccountLine& line : analysis.devices[0].account) sum += line.total;
  // Until the last kernel ends, 100 us before the last step does.
  EXPECT_EQ(sum, Milliseconds(4) - Microseconds(100));
  EXPECT_EQ(sum, analysis.device_window);
  EXPECT_EQ(analysis.devices[0].busy, Microseconds(4 * 575));
  // The wait for the loader is seen while the device idles, 0.3 ms of each step; the gap before the
  // first and behind the last kernel explains nothing else.
  for (const AccountLine& line : analysis.devices[0].account) {
    if (line.name == "idle_input_wait") {
      EXPECT_EQ(line.total, Microseconds(4 * 300));
    }
  }
  EXPECT_EQ(analysis.loader_wait.during_idle, Microseconds(4 * 300));
  Duration host;
  for (const AccountLine& line : analysis.host_account) host += line.total;
  EXPECT_EQ(host, analysis.window);
}

TEST(Steps, WithoutOneThatShowsTheDevicesNothingIsSaidOfThem) {
  const RankAnalysis analysis = Analyze(TraceFromScript(R"(
    recording
    thread 1
    repeat 8 every 1000
      step 0 900 step
    end
    device-gap 1000 9000
    call 100 110 cudaLaunchKernel | corr=1
    stream 0 7
    kernel 115 500 gemm | corr=1)"));
  EXPECT_TRUE(analysis.devices.empty());
  ASSERT_FALSE(analysis.quality.empty());
  EXPECT_EQ(analysis.quality.back().kind, "no_step_with_device_detail");
  EXPECT_EQ(analysis.steps.clock, StepClock::kHost);
  EXPECT_EQ(analysis.steps.count(), 6u);
}

}  // namespace
}  // namespace trainprof
