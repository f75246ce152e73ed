// GPU detail in samples of steps: what the host says of the other steps.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/job/analysis.h"
#include "analysis/job/coverage.h"
#include "analysis/job/digest.h"
#include "analysis/job/verdict.h"
#include "tests/support/trace_script.h"

namespace trainprof {
namespace {

// 20 steps with detail, of 1000 us: 900 us of kernel. Then as many as `others` without, of 1300 us, which
// wait 320 us for the loader.
std::string SlowingLoader(int others = 60) {
  return fmt::format(R"(
    recording
    thread 1
    repeat 20 every 1000
      step 0 1000 step
      annotation 0 20 data_wait
      call 30 40 cudaLaunchKernel | corr=1
      call 45 950 cudaStreamSynchronize
    end
    repeat {} every 1300
      step 20000 21300 step
      annotation 20000 20320 data_wait
    end
    device-gap 20000 {}
    stream 0 7
    repeat 20 every 1000
      kernel 45 945 gemm | corr=1
    end)",
                     others, 20000 + 1300 * others);
}

const QualityItem* Unlike(const RankAnalysis& rank) {
  const auto item =
      std::find_if(rank.quality.begin(), rank.quality.end(),
                   [](const QualityItem& q) { return q.kind == "steps_unlike_gpu_detail"; });
  return item == rank.quality.end() ? nullptr : &*item;
}

TEST(DetailCheck, ComparesStepsAndWaitsWithAndWithoutDetail) {
  const Trace trace = TraceFromScript(SlowingLoader());
  const DetailCheck check = RankModel(trace).detail_check;
  EXPECT_EQ(check.others, 60);
  EXPECT_EQ(check.step, Microseconds(1000));
  // The last step with detail ended on the device 55 us before it did on the host.
  EXPECT_EQ(check.other_step, Nanoseconds(1'300'000 + 55'000 / 60));
  EXPECT_EQ(check.wait, Microseconds(20));
  EXPECT_EQ(check.other_wait, Microseconds(320));
  EXPECT_EQ(check.device_work, Microseconds(900));
  EXPECT_TRUE(check.is_unlike);
}

TEST(DetailCheck, ReportsSayThatOtherStepsDiffer) {
  const RankAnalysis rank = Analyze(TraceFromScript(SlowingLoader()));
  const std::string text =
      "steps without GPU detail take 1.3 ms, those with it 1.0 ms; they wait 0.3 ms and 20.0 us for "
      "the loader";
  ASSERT_NE(Unlike(rank), nullptr);
  EXPECT_EQ(Unlike(rank)->detail, text);
  EXPECT_EQ(Unlike(rank)->severity, QualitySeverity::kWarning);
  EXPECT_EQ(Unlike(rank)->count, 60);
  EXPECT_NE(Verdict(rank).find("; but " + text), std::string::npos) << Verdict(rank);
  ASSERT_FALSE(rank.findings.empty());
  for (const Finding& finding : rank.findings) {
    EXPECT_LE(finding.confidence, 1 - (1 - 1.0 / 1.3) / 2 + 1e-6);
    EXPECT_EQ(
        std::count(finding.confidence_reasons.begin(), finding.confidence_reasons.end(), text), 1);
  }
}

// They wait for 4.02 ms of 5; those with detail, whose queue was still full, for next to nothing.
TEST(DetailCheck, AtWorstOnlyStepsWithoutDetailGain) {
  std::string script = SlowingLoader();
  for (size_t at; (at = script.find("every 1300")) != std::string::npos;) {
    script.replace(at, 10, "every 5000");
  }
  script.replace(script.find("21300"), 5, "25000");
  script.replace(script.find("20320"), 5, "24020");
  script.replace(script.find("98000"), 5, "320000");
  const RankAnalysis rank = Analyze(TraceFromScript(script));
  const auto input = std::find_if(rank.findings.begin(), rank.findings.end(),
                                  [](const Finding& f) { return f.rule == "input-bound"; });
  ASSERT_NE(input, rank.findings.end());
  const Gain& gain = input->gain;
  EXPECT_NEAR(gain.high_ms_per_step, 4.02, 0.001);
  const auto others = static_cast<double>(rank.detail_check.others);
  EXPECT_NEAR(gain.low_ms_per_step,
              4.02 * others / (others + static_cast<double>(rank.device_steps.count())), 0.001);
}

TEST(DetailCheck, StepsThatAreAlikeWeakenNothing) {
  std::string script = SlowingLoader();
  for (size_t at; (at = script.find("every 1300")) != std::string::npos;) {
    script.replace(at, 10, "every 1050");
  }
  script.replace(script.find("21300"), 5, "21050");
  script.replace(script.find("20320"), 5, "20025");
  const RankAnalysis rank = Analyze(TraceFromScript(script));
  EXPECT_EQ(rank.detail_check.others, 60);
  EXPECT_EQ(Unlike(rank), nullptr);
  EXPECT_EQ(Verdict(rank).find("without GPU detail"), std::string::npos);
  // The wait is 2 % of a step.
  for (const Finding& finding : rank.findings) {
    if (finding.rule == "input-bound") {
      EXPECT_EQ(finding.severity, Severity::kNote);
    }
  }
}

TEST(DetailCheck, AFewOtherStepsAreNoSteadyState) {
  const RankAnalysis rank = Analyze(TraceFromScript(SlowingLoader(9)));
  EXPECT_EQ(rank.detail_check, DetailCheck{});
  EXPECT_EQ(Unlike(rank), nullptr);
}

// Steps that vary more than their means differ: 1 and 3 ms in turn, and one 3 ms more of the others.
TEST(DetailCheck, DifferencesThatChanceExplainsAreNone) {
  const RankAnalysis rank = Analyze(TraceFromScript(R"(
    recording
    thread 1
    repeat 6 every 4000
      step 0 1000 step
      step 1000 4000 step
      call 30 40 cudaLaunchKernel | corr=1
    end
    repeat 5 every 4000
      step 24000 25000 step
      step 25000 28000 step
    end
    step 44000 47000 step
    step 47000 50000 step
    device-gap 24000 50000
    stream 0 7
    repeat 6 every 4000
      kernel 45 945 gemm | corr=1
    end)"));
  EXPECT_EQ(rank.detail_check.others, 12);
  EXPECT_GT(rank.detail_check.other_step, Microseconds(2100));
  EXPECT_FALSE(rank.detail_check.is_unlike);
}

// 40 steps with detail and 40 without, of a host that is slower than its device: forward, backward and optimizer take
// `forward`, 300 and 200 us with it and 200, 200 and 200 without, and 5 us are left between. In three steps of each kind
// something else happened. 10 launches stand in each step, and with `waits` the forward pass waits for the device.
std::string SlowedByRecording(int forward = 300, bool waits = false) {
  const int step = forward + 505;
  std::string script = "recording\nthread 1\n";
  const auto add_steps = [&](int from, int count, int length, int first, int second) {
    for (int i = 0; i < count; ++i) {
      const int at = from + i * length;
      const int late = i % 13 == 5 ? 3 : 0;  // us
      script += fmt::format(
          "step {0} {1} step\nannotation {0} {2} forward\nannotation {2} {3} backward\n"
          "annotation {3} {4} optimizer\n",
          at, at + length, at + first + late, at + first + second + late,
          at + first + second + 200 + late);
    }
  };
  add_steps(0, 40, step, forward, 300);
  add_steps(40 * step, 40, 605, 200, 200);
  script += fmt::format("device-gap {} {}\n", 40 * step, 40 * step + 40 * 605);
  for (int i = 0; i < 40; ++i) {
    for (int k = 0; k < 10; ++k) {
      const int at = i * step + 10 + k * (step - 40) / 10;
      script += fmt::format("call {} {} cudaLaunchKernel | corr={}\n", at, at + 8, 10 * i + k + 1);
    }
    if (waits)
      script += fmt::format("call {} {} cudaStreamSynchronize\n", i * step + 105, i * step + 160);
  }
  script += "stream 0 7\n";
  for (int i = 0; i < 40; ++i) {
    for (int k = 0; k < 10; ++k) {
      const int at = i * step + 16 + k * (step - 40) / 10;
      script += fmt::format("kernel {} {} gemm | corr={}\n", at, at + (waits && k == 1 ? 60 : 4),
                            10 * i + k + 1);
    }
  }
  return script;
}

TEST(SlowedHost, IsWhatPhasesTakeLongerWhereTheyAreRecorded) {
  const Trace trace = TraceFromScript(SlowedByRecording());
  const RankModel model(trace);
  ASSERT_EQ(model.device_steps.count(), 30U) << "without those of warm-up";
  EXPECT_EQ(model.recording_of_step, Microseconds(200));
  EXPECT_EQ(model.detail_check.recording, Microseconds(200));
  ASSERT_EQ(model.recording_cost.measured.size(), 3 * model.device_steps.count());
  EXPECT_NEAR(model.recording_cost.measured[0].share, 200.0 / 300, 0.001) << "forward";
  EXPECT_NEAR(model.recording_cost.measured[1].share, 200.0 / 300, 0.001) << "backward";
  EXPECT_EQ(model.recording_cost.measured[2].share, 1) << "the optimizer is no slower";
  // Replayed without, a step takes what those without take.
  EXPECT_NEAR(StepReplay::MeanOf(model.steps_without_recording), 605'000, 0.02 * 605'000);
  EXPECT_FALSE(model.detail_check.is_unlike) << "805 us and 605, and recording is why";
}

// A phase that takes as long with its calls recorded as without is no shorter for what calls are assumed to take.
TEST(SlowedHost, IsNotAssumedWherePhasesAreNoSlower) {
  const Trace trace = TraceFromScript(SlowedByRecording(200));
  const RankModel model(trace);
  EXPECT_EQ(model.recording_of_step, Microseconds(100)) << "of the backward pass";
  // The first call of a counted step: it stands in the forward pass.
  const auto& begins = trace.api.begin;
  const auto launch =
      std::lower_bound(begins.begin(), begins.end(), model.device_steps.steps.front().span.begin) -
      begins.begin();
  Costs costs = model.graph->recorded;
  LeaveOut(model.recording_cost, trace, *model.graph, costs);
  EXPECT_EQ(costs.Duration(model.graph->node_of_call[static_cast<size_t>(launch)]), 8'000);
}

TEST(SlowedHost, IsNoGain) {
  const RankAnalysis rank = Analyze(TraceFromScript(SlowedByRecording()));
  const auto launches = std::ranges::find(rank.findings, "launch-bound", &Finding::rule);
  ASSERT_NE(launches, rank.findings.end());
  EXPECT_LT(launches->gain.high_ms_per_step, 0.620);
  EXPECT_EQ(Verdict(rank).find("without GPU detail"), std::string::npos);
}

TEST(SlowedHost, LeavesAWarningWhereItExplainsNotAll) {
  const RankAnalysis rank = Analyze(TraceFromScript(SlowedByRecording(150)));
  EXPECT_EQ(rank.detail_check.recording, Microseconds(100)) << "the forward pass was faster";
  std::string script = SlowedByRecording();
  for (size_t at; (at = script.find("forward")) != std::string::npos;) script.replace(at, 7, "abc");
  for (size_t at; (at = script.find("backward")) != std::string::npos;)
    script.replace(at, 8, "data_wait");
  const RankAnalysis waits = Analyze(TraceFromScript(script));
  EXPECT_EQ(waits.detail_check.recording, Microseconds(100)) << "a wait for input is no work";
  ASSERT_NE(Unlike(waits), nullptr);
  EXPECT_NE(Unlike(waits)->detail.find("of which recording it takes 0.1 ms"), std::string::npos)
      << Unlike(waits)->detail;
}

// The device decides how long a phase takes in which it is waited for.
TEST(SlowedHost, IsNotToldOfPhasesThatWait) {
  const Trace trace = TraceFromScript(SlowedByRecording(300, true));
  EXPECT_EQ(RankModel(trace).recording_of_step, Microseconds(100));
}

// Of others' recordings nothing is known, nor where other programs come and go.
TEST(SlowedHost, IsNotToldOfOtherRecordersNorWhereFewStepsAre) {
  std::string script = SlowedByRecording();
  script.erase(0, script.find('\n') + 1);
  const Trace imported = TraceFromScript(script);
  EXPECT_EQ(RankModel(imported).recording_of_step, Duration{});
  const Trace trace = TraceFromScript(SlowedByRecording());
  EXPECT_EQ(RankModel(trace, 35).recording_of_step, Duration{}) << "5 steps with detail";
}

TEST(DetailCheck, SurvivesTheDigest) {
  const Trace trace = TraceFromScript(SlowingLoader());
  RankModel model(trace);
  const RankDigest digest = DigestOf(model, 0);
  const Result<RankDigest> back = DigestFromJson(DigestToJson(digest), "here");
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back.value().analysis.detail_check, model.detail_check);
}

}  // namespace
}  // namespace trainprof
