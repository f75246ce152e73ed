// What a policy makes of a job: severities, thresholds, budgets, suppressions, and that doubt is never passed.
#include "profiler/gate/gate.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "profiler/gate/baseline.h"
#include "profiler/report/gate_text.h"
#include "tests/analysis/diff_jobs.h"

namespace trainprof {
namespace {

constexpr Date kToday{std::chrono::year{2026}, std::chrono::month{6}, std::chrono::day{15}};

// Steps of 1000 us that wait for data for `wait_us` of them.
JobAnalysis Waiting(int wait_us, std::string_view file = "/a/train.py(3)") {
  return JobOfTraces({Training(
      30, [=](int i) { return wait_us + i % 3; }, 980 - wait_us, file)});
}

GateResult JudgeBy(const JobAnalysis& job, std::string_view policy) {
  const Result<Policy> read = ParsePolicy(policy, "p.toml");
  EXPECT_TRUE(read.ok()) << read.error();
  return Judge({&job, 1}, read.value(), kToday);
}

const JudgedFinding& First(const GateResult& gate) { return gate.findings.at(0); }

TEST(Gate, WithoutAFileItIsTheSeverityThatCounts) {
  EXPECT_EQ(Judge(Waiting(500)).conclusion, Conclusion::kFailed);
  EXPECT_EQ(Judge(Waiting(2)).conclusion, Conclusion::kPassed);
  for (const int wait : {2, 30, 100, 500}) {
    const JobAnalysis job = Waiting(wait);
    EXPECT_EQ(Judge(job).conclusion, ConclusionOf(job)) << wait;
  }
}

TEST(Gate, SeverityAndThresholdAreThePolicys) {
  const JobAnalysis job = Waiting(500);
  EXPECT_EQ(JudgeBy(job, "[rules.TP101]\nseverity = \"warning\"\n").conclusion,
            Conclusion::kPassed);
  EXPECT_EQ(JudgeBy(job, "[rules.TP101]\nseverity = \"warning\"\n[check]\nfail-on = \"warning\"\n")
                .conclusion,
            Conclusion::kFailed);
  EXPECT_EQ(JudgeBy(job, "[rules.TP101]\nthreshold = 0.4\n").conclusion, Conclusion::kFailed);
  EXPECT_EQ(JudgeBy(job, "[rules.TP101]\nthreshold = 0.6\n").conclusion, Conclusion::kPassed);
  EXPECT_EQ(First(JudgeBy(job, "[rules.TP101]\nthreshold = 0.6\n")).severity, Severity::kNote);
  EXPECT_EQ(First(JudgeBy(job, "[rules.TP101]\nseverity = \"off\"\n")).state, GateState::kOff);
  EXPECT_EQ(JudgeBy(job, "[check]\nfail-on = \"never\"\n").conclusion, Conclusion::kPassed);
  EXPECT_EQ(JudgeBy(Waiting(100), "[rules.TP101]\nseverity = \"error\"\n").conclusion,
            Conclusion::kFailed);
}

TEST(Gate, ASuppressionHoldsUntilItsLastDay) {
  const JobAnalysis job = Waiting(500);
  const auto with = [&](std::string_view match, std::string_view expires) {
    return JudgeBy(job,
                   fmt::format("[[suppress]]\nrule = \"TP101\"\nmatch = \"{}\"\nreason = \"r\"\n"
                               "expires = {}\n",
                               match, expires));
  };
  EXPECT_EQ(with("train.py", "2026-06-15").conclusion, Conclusion::kPassed);
  EXPECT_EQ(First(with("train.py:3", "2026-06-15")).state, GateState::kSuppressed);
  EXPECT_EQ(with("train.py", "2026-06-14").conclusion, Conclusion::kFailed);
  EXPECT_NE(with("train.py", "2026-06-14").complaints.at(0).find("expired on 2026-06-14"),
            std::string::npos);
  EXPECT_EQ(with("other.py", "2027-01-01").conclusion, Conclusion::kFailed);
  EXPECT_NE(with("other.py", "2027-01-01").complaints.at(0).find("matches nothing"),
            std::string::npos);
  EXPECT_EQ(with("train.py:33", "2027-01-01").conclusion, Conclusion::kFailed);
  EXPECT_EQ(with("y:3", "2027-01-01").conclusion, Conclusion::kPassed);
  EXPECT_EQ(with("", "2027-01-01").conclusion, Conclusion::kPassed);
}

TEST(Gate, ACommentAtTheLineSuppresses) {
  const std::string file = ::testing::TempDir() + "/gate_comment.py";
  const auto judged = [&](const std::string& second, const std::string& third) {
    std::ofstream(file) << "import torch\n" << second << "\n" << third << "\n";
    return First(Judge(Waiting(500, file + "(3)"))).state;
  };
  EXPECT_EQ(judged("", "for x in loader:"), GateState::kFailed);
  EXPECT_EQ(judged("", "for x in loader:  # trainprof: ignore[TP101] small data"),
            GateState::kSuppressed);
  EXPECT_EQ(judged("", "for x in loader:  # trainprof: ignore[host-sync, input-bound]"),
            GateState::kSuppressed);
  EXPECT_EQ(judged("# trainprof: ignore[TP101]", "for x in loader:"), GateState::kSuppressed);
  EXPECT_EQ(judged("y = 1  # trainprof: ignore[TP101]", "for x in loader:"), GateState::kFailed);
  EXPECT_EQ(judged("", "for x in loader:  # trainprof: ignore[TP301]"), GateState::kFailed);
  EXPECT_EQ(judged("", "for x in loader:  # trainprof: ignore[TP1010]"), GateState::kFailed);
  EXPECT_EQ(judged("", "s = 'trainprof: ignore[TP101]'"), GateState::kFailed);
  EXPECT_EQ(judged("", "for (x : loader)  // trainprof: ignore[TP101]"), GateState::kSuppressed);
  std::filesystem::remove(file);
}

TEST(Gate, BudgetsAreMeasuredAsTheReportTells) {
  const JobAnalysis job = Waiting(100);
  const auto state = [&](std::string_view policy) {
    const GateResult gate = JudgeBy(job, policy);
    return gate.budgets.at(0).state;
  };
  EXPECT_EQ(state("[budgets.step_time_ms]\nmax = 1.1\n"), GateState::kPassed);
  EXPECT_EQ(state("[budgets.step_time_ms]\nmax = 0.9\n"), GateState::kFailed);
  EXPECT_EQ(state("[budgets.step_time_ms]\nstat = \"mean\"\nmax = 0.9\n"), GateState::kFailed);
  EXPECT_EQ(state("[budgets.input_wait]\nmax = \"20%\"\n"), GateState::kPassed);
  EXPECT_EQ(state("[budgets.input_wait]\nmax = \"5%\"\n"), GateState::kFailed);
  EXPECT_EQ(state("[budgets.input_wait]\nmax = 0.05\n"), GateState::kFailed);
  EXPECT_EQ(state("[budgets.gpu_busy]\nmin = 0.5\n"), GateState::kPassed);
  EXPECT_EQ(state("[budgets.gpu_busy]\nmin = 0.95\n"), GateState::kFailed);
  EXPECT_EQ(state("[budgets.idle_input_wait]\nmax = 0.05\n"), GateState::kFailed);
  EXPECT_EQ(state("[budgets.idle]\nmax = \"90%\"\n"), GateState::kPassed);
  EXPECT_EQ(state("[budgets.samples_per_second]\nmin = 60000\nsamples-per-step = 64\n"),
            GateState::kPassed);
  EXPECT_EQ(state("[budgets.samples_per_second]\nmin = 70000\nsamples-per-step = 64\n"),
            GateState::kFailed);
  EXPECT_EQ(state("[budgets.device_waits]\nmax = 0\n"), GateState::kPassed);
  EXPECT_EQ(JudgeBy(job, "[budgets.step_time_ms]\nmax = 0.9\n").conclusion, Conclusion::kFailed);
}

// What was not recorded holds no budget.
TEST(Gate, ABudgetThatCannotBeMeasuredIsNeverPassed) {
  const JobAnalysis job = Waiting(2);
  for (const std::string_view policy : {"[budgets.peak_gpu_memory]\nmax = \"10 GiB\"\n",
                                        "[budgets.peak_host_memory]\nmax = \"10 GiB\"\n",
                                        "[budgets.samples_per_second]\nmin = 1\n"}) {
    const GateResult gate = JudgeBy(job, policy);
    EXPECT_EQ(gate.conclusion, Conclusion::kInconclusive) << policy;
    EXPECT_EQ(gate.budgets.at(0).state, GateState::kInconclusive) << policy;
  }
  const JobAnalysis host = JobOfTraces({TraceFromScript("thread 1\nstep 0 10 a\nstep 10 20 a\n")});
  EXPECT_EQ(JudgeBy(host, "[budgets.gpu_busy]\nmin = 0.5\n").budgets.at(0).state,
            GateState::kInconclusive);
}

std::vector<JobAnalysis> Runs(int wait_us, int kernel_us, int count = 5) {
  std::vector<JobAnalysis> runs;
  for (int run = 0; run < count; ++run) {
    runs.push_back(JobOfTraces({Training(
        30, [=](int i) { return wait_us + (i + run) % 3; }, kernel_us)}));
  }
  return runs;
}

TEST(Gate, WhatTheBaselineHasFailsNothing) {
  const std::vector<JobAnalysis> known = Runs(500, 480);
  const std::vector<JobAnalysis> same = Runs(500, 480);
  const GateResult gate = Judge(same, {}, kToday, BaselineRuns{"b.json", known});
  EXPECT_EQ(First(gate).state, GateState::kKnown);
  EXPECT_EQ(gate.conclusion, Conclusion::kPassed) << GateText(same.back(), gate, false);
  const std::vector<JobAnalysis> healthy = Runs(2, 978);
  const GateResult worse = Judge(same, {}, kToday, BaselineRuns{"b.json", healthy});
  EXPECT_EQ(First(worse).state, GateState::kFailed);
}

// What one of five runs has is chance, and is not said to be in the baseline.
TEST(Gate, WhatFewOfTheRunsHaveFailsNothing) {
  const std::vector<JobAnalysis> healthy = Runs(2, 978);
  std::vector<JobAnalysis> now = Runs(2, 978);
  now.back() = Runs(500, 480, 1).front();
  const GateResult gate = Judge(now, {}, kToday, BaselineRuns{"b.json", healthy});
  EXPECT_EQ(First(gate).severity, Severity::kError);
  EXPECT_EQ(First(gate).state, GateState::kReported);
  EXPECT_FALSE(First(gate).sites.at(0).is_known);
}

TEST(Gate, AStepThatGotSlowerFails) {
  const std::vector<JobAnalysis> a = Runs(2, 600);
  const std::vector<JobAnalysis> b = Runs(2, 640);
  const GateResult gate = Judge(b, {}, kToday, BaselineRuns{"b.json", a});
  ASSERT_EQ(gate.budgets.size(), 1u);
  EXPECT_EQ(gate.budgets[0].code, "TP810");
  EXPECT_EQ(gate.budgets[0].state, GateState::kFailed) << gate.budgets[0].text;
  EXPECT_EQ(gate.conclusion, Conclusion::kFailed);
  const Policy roomy =
      ParsePolicy("[budgets.step_time_ms]\nmax-regression = \"10%\"\n", "p").value();
  EXPECT_EQ(Judge(b, roomy, kToday, BaselineRuns{"b.json", a}).conclusion, Conclusion::kPassed);
  EXPECT_EQ(Judge(a, {}, kToday, BaselineRuns{"b.json", b}).conclusion, Conclusion::kPassed);
}

// Whatever else is there: who knows what is new?
TEST(Gate, ABaselineOfAnotherEnvironmentIsInconclusive) {
  std::vector<JobAnalysis> a = Runs(2, 600);
  std::vector<JobAnalysis> b = Runs(500, 480);
  for (JobAnalysis& job : a) job.ranks[0].environment.emplace_back("torch.version", "2.12.0");
  for (JobAnalysis& job : b) job.ranks[0].environment.emplace_back("torch.version", "2.13.0");
  const GateResult gate = Judge(b, {}, kToday, BaselineRuns{"b.json", a});
  EXPECT_EQ(gate.conclusion, Conclusion::kInconclusive);
  EXPECT_NE(GateText(b.back(), gate, false).find("2.12.0"), std::string::npos)
      << GateText(b.back(), gate, false);
}

JobDigests DigestsOf(int wait_us) {
  JobDigests digests;
  digests.source.path = "/home/me/run1/";
  digests.ranks.push_back(DigestOf(RankModel(Training(
                                       30, [=](int i) { return wait_us + i % 3; }, 600)),
                                   0));
  return digests;
}

TEST(Baseline, IsReadBackAsWhatItWas) {
  const std::string text = BaselineText({DigestsOf(500), DigestsOf(500)});
  EXPECT_EQ(text, BaselineText({DigestsOf(500), DigestsOf(500)}));
  EXPECT_EQ(text.find("/home/me"), std::string::npos);
  const Result<std::vector<JobAnalysis>> runs = BaselineFrom(text, "b.json");
  ASSERT_TRUE(runs.ok()) << runs.error();
  ASSERT_EQ(runs.value().size(), 2u);
  const JobAnalysis was = AnalysisOf(DigestsOf(500));
  const Diff diff = DiffOf(runs.value(), std::vector<JobAnalysis>{was, was}, false);
  EXPECT_EQ(diff.result, DiffResult::kEqual) << DiffVerdict(diff);
  for (const FindingDiff& finding : diff.findings) {
    EXPECT_EQ(finding.state, FindingState::kUnchanged);
  }
}

TEST(Baseline, WhatIsNoneIsRefused) {
  const auto error = [](std::string_view text) { return BaselineFrom(text, "b.json").error(); };
  EXPECT_NE(error("").find("no JSON"), std::string::npos);
  EXPECT_NE(error("[]").find("no baseline"), std::string::npos);
  EXPECT_NE(error("{}").find("no baseline"), std::string::npos);
  EXPECT_NE(error(R"({"trainprof_baseline": 7, "runs": []})").find("make it anew"),
            std::string::npos);
  EXPECT_NE(error(R"({"trainprof_baseline": 1, "runs": []})").find("no runs"), std::string::npos);
  EXPECT_NE(error(R"({"trainprof_baseline": 1, "runs": [{"path": "a", "ranks": [{}]}]})")
                .find("make it anew"),
            std::string::npos);
  const std::string text = BaselineText({DigestsOf(5)});
  for (size_t size = 0; size + 2 < text.size(); size += 1 + size / 7) {
    EXPECT_FALSE(BaselineFrom(std::string_view(text).substr(0, size), "b.json").ok()) << size;
  }
}

}  // namespace
}  // namespace trainprof
