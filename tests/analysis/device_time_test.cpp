#include "analysis/steps/device_time.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "analysis/job/analysis.h"
#include "analysis/model.h"
#include "tests/support/trace_script.h"

namespace trainprof {
namespace {

Interval Us(int64_t begin, int64_t end) { return {TraceTime{begin * 1000}, TraceTime{end * 1000}}; }

std::vector<Interval> DeviceTimes(const Steps& steps) {
  std::vector<Interval> times;
  for (const Step& step : steps.steps) times.push_back(step.device);
  return times;
}

std::vector<Interval> DeviceTimes(std::string_view script) {
  return DeviceTimes(FindSteps(TraceFromScript(script)));
}

// The host needs 100 us for what takes the device 1000 us.
constexpr char kRunsAhead[] = R"(
    thread 1
    repeat 6 every 100
      step 0 90 step
      call 10 15 cudaLaunchKernel | corr=1
    end
    stream 0 7
    repeat 6 every 1000
      kernel 20 1020 gemm | corr=1
    end)";

TEST(DeviceTime, AStepEndsWhenItsLastOperationEnds) {
  const Steps steps = FindSteps(TraceFromScript(kRunsAhead));
  EXPECT_EQ(steps.clock, StepClock::kDevice);
  EXPECT_EQ(DeviceTimes(steps),
            (std::vector<Interval>{Us(0, 1020), Us(1020, 2020), Us(2020, 3020), Us(3020, 4020),
                                   Us(4020, 5020), Us(5020, 6020)}));
  EXPECT_EQ(steps.Median(), Microseconds(1000));
  EXPECT_EQ(steps.device_window.Total(), Microseconds(6020));
  EXPECT_EQ(steps.window.Total(), Microseconds(590));
  EXPECT_EQ(steps.LagAtBegin(), Microseconds(0));
  EXPECT_EQ(steps.LagAtEnd(), Microseconds(6020 - 590));
}

TEST(DeviceTime, AccountsOfDevicesCoverIt) {
  const RankAnalysis rank = Analyze(TraceFromScript(kRunsAhead));
  ASSERT_EQ(rank.devices.size(), 1u);
  // Less the first step, whose begin on the device is not known.
  EXPECT_EQ(rank.device_steps.count(), 5u);
  EXPECT_EQ(rank.devices[0].busy, Microseconds(5000));
  EXPECT_EQ(rank.device_window, Microseconds(5000));
  EXPECT_EQ(rank.window, Microseconds(590));
}

// What the device did when the first step began is known where it was done when it ended.
TEST(DeviceTime, AFirstStepCountsWhereTheDeviceKeepsUp) {
  const Steps steps = FindSteps(TraceFromScript(R"(
    thread 1
    repeat 3 every 1000
      step 0 1000 step
      call 10 15 cudaLaunchKernel | corr=1
    end
    stream 0 7
    repeat 3 every 1000
      kernel 20 980 gemm | corr=1
    end)"));
  EXPECT_TRUE(steps.steps[0].begin_is_known);
  EXPECT_EQ(WithDeviceDetail(steps, {}).count(), 3u);
}

// It misses the 100 us in which the device waits for the host behind each step.
TEST(DeviceTime, AFirstStepThatMissesTheIdleTimeBeforeItDoesNotCount) {
  const Steps steps = FindSteps(TraceFromScript(R"(
    thread 1
    repeat 3 every 1000
      step 0 1000 step
      call 10 15 cudaLaunchKernel | corr=1
    end
    stream 0 7
    repeat 3 every 1000
      kernel 20 900 gemm | corr=1
    end)"));
  EXPECT_FALSE(steps.steps[0].begin_is_known);
  const Steps detail = WithDeviceDetail(steps, {});
  EXPECT_EQ(detail.count(), 2u);
  EXPECT_EQ(detail.MeanMilliseconds(), 1.0);
}

TEST(DeviceTime, AFirstStepThatTheDeviceIsBehindOfTellsNothingButItsWork) {
  const Trace trace = TraceFromScript(kRunsAhead);
  const RankModel model(trace);
  EXPECT_FALSE(model.steps.steps[0].begin_is_known);
  EXPECT_EQ(model.steps.count(), 6u);
  EXPECT_EQ(model.steps.steps[0].device, Us(20, 1020));
  EXPECT_EQ(model.steps.Median(), Microseconds(1000));
}

// As where recording ended before the device had done all.
TEST(DeviceTime, StepsAtTheEndWhoseLaunchesHaveNoRowCountForNoDevice) {
  const Trace trace = TraceFromScript(R"(
    thread 1
    repeat 8 every 100
      step 0 100 step
      call 10 15 cudaLaunchKernel | corr=1
      call 20 25 cudaLaunchKernel | corr=2
    end
    stream 0 7
    repeat 6 every 1000
      kernel 30 530 gemm | corr=1
      kernel 530 1030 gemm | corr=2
    end
    kernel 6030 6530 gemm | corr=6001)");
  const RankModel model(trace);
  EXPECT_FALSE(model.steps.steps[6].end_is_known);
  EXPECT_FALSE(model.steps.steps[7].end_is_known);
  EXPECT_EQ(model.device_steps.count(), 5u);
  EXPECT_EQ(model.device_steps.device_window, IntervalSet::Union({Us(1030, 6030)}));
  EXPECT_EQ(model.steps.MeanMilliseconds(), 1.0);
}

// As of a host that was so far ahead that recording ended before the device came to the first step
// that counts.
TEST(DeviceTime, WhereNoStepsEndIsKnownTheHostsClockTells) {
  const Trace trace = TraceFromScript(R"(
    recording
    thread 1
    repeat 8 every 100
      step 0 100 step
      call 10 15 cudaLaunchKernel | corr=1
      call 20 25 cudaLaunchKernel | corr=2
    end
    stream 0 7
    kernel 30 1030 gemm | corr=1
    kernel 1030 2030 gemm | corr=2)");
  const RankModel model(trace);
  EXPECT_EQ(model.steps.clock, StepClock::kHost);
  EXPECT_EQ(model.device_steps.clock, StepClock::kHost);
  EXPECT_EQ(model.steps.Median(), Microseconds(100));
}

// A recording sets the first steps aside; where the queue stood then is known all the same.
TEST(DeviceTime, AStepThatWasSetAsideGivesTheBegin) {
  const Steps steps = FindSteps(TraceFromScript("recording\n" + std::string(kRunsAhead)));
  EXPECT_EQ(steps.warmup_steps, 1);
  EXPECT_EQ(steps.device_window, IntervalSet::Union({Us(1020, 6020)}));
  EXPECT_EQ(steps.LagAtBegin(), Microseconds(1020 - 100));
}

TEST(DeviceTime, WorkLaunchedBeforeTheFirstStepGivesItsBegin) {
  EXPECT_EQ(DeviceTimes(R"(
    thread 1
    call 1 5 cudaLaunchKernel | corr=1
    step 10 90 step
    call 20 25 cudaLaunchKernel | corr=2
    stream 0 7
    kernel 10 500 init | corr=1
    kernel 501 700 gemm | corr=2)"),
            std::vector<Interval>{Us(500, 700)});
}

TEST(DeviceTime, AStepAfterTheDeviceWasIdleBeginsWithTheHost) {
  EXPECT_EQ(DeviceTimes(R"(
    thread 1
    call 1 5 cudaLaunchKernel | corr=1
    step 1000 1100 step
    call 1020 1025 cudaLaunchKernel | corr=2
    stream 0 7
    kernel 10 50 init | corr=1
    kernel 1030 1090 gemm | corr=2)"),
            std::vector<Interval>{Us(1000, 1090)});
}

// As autograd's own thread launches the backward pass.
TEST(DeviceTime, ItIsAnyThreadsLaunchThatCounts) {
  EXPECT_EQ(DeviceTimes(R"(
    thread 1
    step 0 100 step
    step 100 200 step
    thread 2
    call 50 55 cudaLaunchKernel | corr=1
    call 150 155 cudaLaunchKernel | corr=2
    stream 0 7
    kernel 60 300 gemm | corr=1
    kernel 300 500 gemm | corr=2)"),
            (std::vector<Interval>{Us(0, 300), Us(300, 500)}));
}

TEST(DeviceTime, OneLaunchOfAGraphIsTheLaunchOfAllItsKernels) {
  EXPECT_EQ(DeviceTimes(R"(
    thread 1
    repeat 2 every 30
      step 0 30 step
      call 10 15 cudaGraphLaunch | corr=1
    end
    stream 0 7
    repeat 2 every 1000
      kernel 20 500 gemm | corr=1
      kernel 501 1010 relu | corr=1
    end)"),
            (std::vector<Interval>{Us(0, 1010), Us(1010, 2010)}));
}

TEST(DeviceTime, TheLastOfSeveralDevicesEndsTheStepAStrayOneDoesNot) {
  EXPECT_EQ(DeviceTimes(R"(
    thread 1
    step 0 100 step
    call 10 15 cudaLaunchKernel | corr=1
    call 20 25 cudaLaunchKernel | corr=2
    call 30 35 cudaLaunchKernel | corr=3
    stream 0 7
    kernel 20 500 gemm | corr=1
    stream 1 7
    kernel 30 600 gemm | corr=2
    stream 2 7
    kernel 900 901 stray | corr=3)"),
            std::vector<Interval>{Us(0, 600)});
}

// The copies of a checkpoint that the host writes meanwhile hold no step up.
TEST(DeviceTime, WhatRunsBesideTheNextStepsEndsNone) {
  EXPECT_EQ(DeviceTimes(R"(
    thread 1
    repeat 3 every 100
      step 0 100 step
      call 10 15 cudaLaunchKernel | corr=1
    end
    call 20 25 cudaMemcpyAsync | corr=9
    stream 0 7
    kernel 20 90 gemm | corr=1
    kernel 120 190 gemm | corr=1001
    kernel 220 290 gemm | corr=2001
    stream 0 8
    copy 95 280 Memcpy DtoH (Device -> Pinned) | corr=9 bytes=8)"),
            (std::vector<Interval>{Us(0, 90), Us(90, 190), Us(190, 290)}));
}

TEST(DeviceTime, AnEarlierStepsWorkNeverMakesALaterStepEndBefore) {
  EXPECT_EQ(DeviceTimes(R"(
    thread 1
    repeat 2 every 100
      step 0 100 step
      call 10 15 cudaLaunchKernel | corr=1
    end
    stream 0 7
    kernel 20 900 gemm | corr=1
    stream 0 8
    kernel 130 140 relu | corr=1001)"),
            (std::vector<Interval>{Us(0, 900), Us(900, 900)}));
}

TEST(DeviceTime, AStepThatLaunchedNothingEndsWithTheHostOrWithTheStepBefore) {
  EXPECT_EQ(DeviceTimes(R"(
    thread 1
    repeat 3 every 100
      step 0 100 step
    end
    call 10 15 cudaLaunchKernel | corr=1
    stream 0 7
    kernel 20 250 gemm | corr=1)"),
            (std::vector<Interval>{Us(0, 250), Us(250, 250), Us(250, 300)}));
}

TEST(DeviceTime, WhatHasNoCallWasLaunchedBeforeTheNextOneOfItsStream) {
  EXPECT_EQ(DeviceTimes(R"(
    thread 1
    repeat 2 every 100
      step 0 100 step
      call 10 15 cudaLaunchKernel | corr=1
      call 50 55 cudaLaunchKernel | corr=11
    end
    stream 0 7
    kernel 20 200 a | corr=1
    kernel 200 400 no_call | corr=99
    kernel 400 500 b | corr=11
    kernel 500 600 a | corr=1001
    kernel 600 700 b | corr=1011)"),
            (std::vector<Interval>{Us(0, 500), Us(500, 700)}));
}

// As where recording began with a full queue.
TEST(DeviceTime, WhatWaitedBeforeTheFirstRecordedLaunchIsOfNoStep) {
  EXPECT_EQ(DeviceTimes(R"(
    thread 1
    step 0 100 step
    step 100 200 step
    call 10 15 cudaLaunchKernel | corr=1
    call 110 115 cudaLaunchKernel | corr=2
    stream 0 7
    kernel 50 800 no_call | corr=99
    kernel 800 1800 gemm | corr=1
    kernel 1800 2800 gemm | corr=2)"),
            (std::vector<Interval>{Us(800, 1800), Us(1800, 2800)}));
}

// The same where not even what the queue held is recorded.
TEST(DeviceTime, AFirstOperationThatWaitedShowsWhenTheStepBeforeEnded) {
  const std::string script = R"(
    recording
    thread 1
    repeat 5 every 100
      step 0 100 step
    end
    device-gap 0 310
    call 320 325 cudaLaunchKernel | corr=1
    call 420 425 cudaLaunchKernel | corr=2
    stream 0 7
    kernel 2000 2400 gemm | corr=1
    kernel 2400 2800 gemm | corr=2)";
  const Trace trace = TraceFromScript(script);
  const Steps steps = FindSteps(trace);
  const Steps detail = WithDeviceDetail(steps, DeviceGaps(trace));
  EXPECT_EQ(DeviceTimes(detail), std::vector<Interval>{Us(2400, 2800)});
  const std::string full_queue_at_a_step =
      std::string(script).replace(script.find("device-gap 0 310"), 16, "device-gap 0 300");
  const Trace other = TraceFromScript(full_queue_at_a_step);
  EXPECT_EQ(DeviceTimes(WithDeviceDetail(FindSteps(other), DeviceGaps(other))),
            (std::vector<Interval>{Us(2000, 2400), Us(2400, 2800)}));
}

TEST(DeviceTime, WithoutMostCallsTheHostsClockTells) {
  const std::string script = R"(
    thread 1
    step 0 100 step
    step 100 200 step
    call 10 15 cudaLaunchKernel | corr=1
    stream 0 7
    kernel 50 300 gemm | corr=1
    kernel 300 400 gemm | corr=98
    kernel 400 500 gemm | corr=99)";
  const Trace trace = TraceFromScript(script);
  const Steps steps = FindSteps(trace);
  EXPECT_EQ(steps.clock, StepClock::kHost);
  EXPECT_EQ(DeviceTimes(steps), (std::vector<Interval>{Us(0, 100), Us(100, 200)}));
  EXPECT_EQ(steps.device_window, steps.window);
  EXPECT_EQ(steps.LagAtEnd(), Duration{});
}

TEST(DeviceTime, WithoutDevicesItIsTheHosts) {
  const Steps steps = FindSteps(TraceFromScript("thread 1\nstep 0 100 step\nstep 120 200 step"));
  EXPECT_EQ(steps.clock, StepClock::kHost);
  EXPECT_EQ(steps.device_window, IntervalSet::Union({Us(0, 200)}));
  EXPECT_EQ(steps.Median(), Microseconds(90));
  EXPECT_EQ(steps.MeanMilliseconds(), 0.1);
}

// Host steps of 0.1 ms, and each fifth waits until the device has done them all: 1 ms each.
TEST(DeviceTime, BurstsBetweenSyncsDoNotShortenTheMedian) {
  std::string script = "thread 1\n";
  for (int i = 0; i < 20; ++i) {
    const int host = i / 5 * 5000 + i % 5 * 100;
    script += fmt::format("step {} {} step\ncall {} {} cudaLaunchKernel | corr={}\n", host,
                          host + 100, host + 10, host + 15, i);
    if (i % 5 == 4) {
      script += fmt::format("call {} {} cudaDeviceSynchronize\n", host + 110, host + 4590);
    }
  }
  script += "stream 0 7\n";
  for (int i = 0; i < 20; ++i) {
    const int begin = i / 5 * 5000 + 20 + i % 5 * 980;
    script += fmt::format("kernel {} {} gemm | corr={}\n", begin, begin + 980, i);
  }
  const Steps steps = FindSteps(TraceFromScript(script));
  EXPECT_EQ(steps.count(), 20u);
  EXPECT_EQ(steps.Median(), Microseconds(980));
}

TEST(DeviceTime, ALoopThatWaitsForTheDeviceTakesAsLongByBothClocks) {
  const Steps steps = FindSteps(TraceFromScript(R"(
    thread 1
    repeat 10 every 1000
      step 0 1000 step
      call 300 310 cudaLaunchKernel | corr=1
      call 320 910 cudaDeviceSynchronize
    end
    stream 0 7
    repeat 10 every 1000
      kernel 315 900 gemm | corr=1
    end)"));
  EXPECT_EQ(steps.Median(), Microseconds(1000));
  EXPECT_EQ(steps.device_window.Total(), Microseconds(9900));
  EXPECT_EQ(steps.LagAtEnd(), Microseconds(-100));
}

TEST(DeviceTime, TheEdgesOfATraceWithoutStepsAreNoIdleTime) {
  const RankAnalysis rank = Analyze(TraceFromScript(R"(
    thread 1
    op 0 5000 aten::mm
    call 1000 1010 cudaLaunchKernel | corr=1
    call 1020 1030 cudaLaunchKernel | corr=2
    stream 0 7
    kernel 1015 1200 gemm | corr=1
    kernel 1200 1400 relu | corr=2)"));
  EXPECT_EQ(rank.steps.source, StepSource::kNone);
  EXPECT_EQ(rank.window, Milliseconds(5));
  EXPECT_EQ(rank.device_window, Microseconds(385));
  ASSERT_EQ(rank.devices.size(), 1u);
  EXPECT_EQ(rank.devices[0].busy, Microseconds(385));
}

// 5 steps with GPU detail and 20 without; the host runs ahead for good.
TEST(DeviceTime, StepsWithoutDetailTakeNoLessThanTheirWork) {
  const Trace trace = TraceFromScript(R"(
    recording
    thread 1
    repeat 40 every 100
      step 0 100 step
    end
    repeat 20 every 100
      call 20 25 cudaLaunchKernel | corr=1
    end
    device-gap 2000 4000
    stream 0 7
    repeat 20 every 1000
      kernel 30 1030 gemm | corr=1
    end)");
  const RankModel model(trace);
  EXPECT_EQ(model.device_steps.count(), 10u);
  EXPECT_EQ(model.steps.count(), 30u);
  EXPECT_EQ(model.steps.Median(), Microseconds(1000));
  EXPECT_EQ(model.steps.device_window, IntervalSet::Union({Us(10030, 40030)}));
  EXPECT_EQ(model.detail_check.other_step, Microseconds(1000));
  EXPECT_FALSE(model.detail_check.is_unlike);
}

TEST(DeviceTime, ALaterSampleSaysWhenTheStepsBeforeItEnded) {
  const Trace trace = TraceFromScript(R"(
    recording
    thread 1
    repeat 8 every 100
      step 0 100 step
      call 20 25 cudaLaunchKernel | corr=1
    end
    device-gap 400 600
    stream 0 7
    repeat 4 every 1000
      kernel 30 1030 gemm | corr=1
    end
    kernel 5000 6000 gemm | corr=6001
    kernel 6000 7000 gemm | corr=7001)");
  const RankModel model(trace);
  EXPECT_EQ(DeviceTimes(model.steps),
            (std::vector<Interval>{Us(2030, 3030), Us(3030, 4030), Us(4030, 5000), Us(5000, 5000),
                                   Us(5000, 6000), Us(6000, 7000)}));
}

}  // namespace
}  // namespace trainprof
