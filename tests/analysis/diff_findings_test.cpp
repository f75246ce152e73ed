// What findings become between two sides: one finding has one state, wherever else it is found.
#include <gtest/gtest.h>

#include "tests/analysis/diff_jobs.h"

namespace trainprof {
namespace {

FindingState StateOf(const Diff& diff, std::string_view rule) {
  for (const FindingDiff& finding : diff.findings) {
    if (finding.rule == rule) return finding.state;
  }
  ADD_FAILURE() << "no " << rule;
  return FindingState::kUnchanged;
}

TEST(Diff, FindingsAreNewFixedOrUnchanged) {
  const JobAnalysis good = JobOfTraces({Steady(40, 5)});
  const auto bad = [](std::string_view file) {
    return JobOfTraces({Training(
        40, [](int i) { return 400 + i % 3; }, 600, file)});
  };
  EXPECT_EQ(StateOf(Compare({good}, {bad("/a/train.py(3)")}), "input-bound"), FindingState::kNew);
  EXPECT_EQ(StateOf(Compare({bad("/a/train.py(3)")}, {good}), "input-bound"), FindingState::kFixed);
  // Another checkout, another line.
  EXPECT_EQ(StateOf(Compare({bad("/a/train.py(3)")}, {bad("/b/c/train.py(9)")}), "input-bound"),
            FindingState::kUnchanged);
  // In one run of three: neither new nor fixed.
  EXPECT_EQ(StateOf(Compare({good}, {good, bad("train.py(3)"), good}), "input-bound"),
            FindingState::kSporadic);
  EXPECT_EQ(StateOf(Compare({good}, {good, bad("train.py(3)"), bad("train.py(3)")}), "input-bound"),
            FindingState::kNew);
}

// A job with one finding in those functions of the user's file.
JobAnalysis JobWith(const std::vector<std::string>& functions, int cost_us = 400,
                    Severity severity = Severity::kWarning) {
  JobAnalysis job = JobOfTraces({Steady(40, 5)});
  Finding finding;
  finding.rule = "launch-bound";
  finding.code = "TP202";
  finding.severity = severity;
  finding.title = "launch-bound";
  finding.cost = Microseconds(cost_us * 40);
  for (const std::string& function : functions) {
    finding.where.push_back({function.empty() ? "" : "train.py", 1, function, "", 1});
  }
  job.ranks[0].findings = {finding};
  return job;
}

TEST(Diff, AFindingInOtherPlacesTooIsInOneState) {
  const Diff diff = Compare({JobWith({"f", "g", ""})}, {JobWith({"g", "h"})});
  ASSERT_EQ(diff.findings.size(), 3u);
  for (const FindingDiff& finding : diff.findings) {
    EXPECT_EQ(finding.state, FindingState::kUnchanged) << finding.where.function;
    EXPECT_EQ(finding.a_runs, 1);
    EXPECT_EQ(finding.b_runs, 1);
  }
  EXPECT_EQ(diff.findings[0].where.function, "g");
  EXPECT_EQ(diff.findings[0].note, "");
  EXPECT_EQ(diff.findings[1].note.empty() || diff.findings[2].note.empty(), false);
  // Without a place in common they are two.
  const Diff other = Compare({JobWith({"f", ""})}, {JobWith({"h", ""})});
  ASSERT_EQ(other.findings.size(), 2u);
  EXPECT_EQ(other.findings[0].state, FindingState::kNew);
  EXPECT_EQ(other.findings[1].state, FindingState::kFixed);
}

TEST(Diff, ANoteThatCostsAsMuchIsNotFixed) {
  const Diff diff = Compare({JobWith({"f"}, 400)}, {JobWith({"f"}, 500, Severity::kNote)});
  ASSERT_EQ(diff.findings.size(), 1u);
  EXPECT_EQ(diff.findings[0].state, FindingState::kUnchanged);
  EXPECT_NEAR(*diff.findings[0].b_cost_ms, 0.5, 1e-9);
  const Diff fixed = Compare({JobWith({"f"}, 400)}, {JobWith({"f"}, 4, Severity::kNote)});
  EXPECT_EQ(fixed.findings[0].state, FindingState::kFixed);
}

TEST(Diff, ARuleThatWasNotCheckedHasFixedNothing) {
  const JobAnalysis bad = JobOfTraces({Steady(40, 400)});
  JobAnalysis unchecked = JobOfTraces({Steady(40, 5)});
  std::erase(unchecked.ranks[0].passed, "input-bound");
  unchecked.ranks[0].skipped.push_back({"input-bound", "the trace has no loader"});
  const Diff diff = Compare({bad}, {unchecked});
  EXPECT_EQ(StateOf(diff, "input-bound"), FindingState::kNotChecked);
  EXPECT_EQ(diff.findings[0].note, "not checked in B: the trace has no loader");
}

TEST(Fingerprint, HoldsNoLineFolderOrNumber) {
  const auto of = [](std::string file, int64_t line, std::string function) {
    return FingerprintOf("host-sync", Site{std::move(file), line, std::move(function), "", 7});
  };
  EXPECT_EQ(of("/home/ci/1/train.py", 12, "main"), of("C:\\w\\train.py", 99, "main"));
  EXPECT_NE(of("train.py", 12, "main"), of("train.py", 12, "evaluate"));
  EXPECT_NE(of("train.py", 12, "main"), of("model.py", 12, "main"));
  EXPECT_EQ(of("", 0, "step 12"), of("", 0, "step 7"));
  EXPECT_EQ(of("", 0, "void at::native::gemm_128x64<float, 4>(at::Tensor const&)"),
            of("", 0, "void at::native::gemm_256x128<double, 2>(at::Tensor const&)"));
  EXPECT_NE(FingerprintOf("a", Site{}), FingerprintOf("b", Site{}));
  // What is in a file of a baseline stays what it is.
  EXPECT_EQ(of("train.py", 12, "main").size(), 16u);
}

}  // namespace
}  // namespace trainprof
