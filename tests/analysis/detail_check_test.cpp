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
