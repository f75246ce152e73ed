#include <gtest/gtest.h>

#include <fmt/format.h>

#include "tests/viewer/panes/pane_hand.h"

namespace trainprof {
namespace {

using testing::Clipboard;
using testing::OpenJob;
using testing::PaneHand;
using testing::ShowsText;

const RankAnalysis& AnalysisOf(OpenJob& job) { return *job.state().document->Analysis(0); }

TEST(FindingsPane, ZoomsToTheEvidenceOfTheFindingThatIsClicked) {
  OpenJob job;
  State& state = job.state();
  ASSERT_GE(AnalysisOf(job).findings.size(), 1u);
  PaneHand hand(state, DrawFindings);
  const Interval before = state.view;
  EXPECT_FALSE(ShowsText("How to see that it helped"));
  hand.Click("1. ");
  EXPECT_EQ(state.finding, (FindingRef{0, 0}));
  EXPECT_NE(state.view, before);
  const Interval shown = AnalysisOf(job).findings[0].evidence[0].when;
  EXPECT_LE(state.view.begin, shown.begin);
  EXPECT_GE(state.view.end, shown.end);
  EXPECT_TRUE(ShowsText("How to see that it helped"));
  hand.Click("1. ");
  EXPECT_FALSE(state.finding);
}

TEST(FindingsPane, GoesThroughTheEvidence) {
  OpenJob job;
  State& state = job.state();
  PaneHand hand(state, DrawFindings, {700, 900});
  hand.Click("1. ");
  const size_t count = AnalysisOf(job).findings[0].evidence.size();
  ASSERT_GE(count, 2u);
  EXPECT_TRUE(ShowsText(fmt::format("1 of {}", count)));
  const Interval first = state.view;
  hand.Click(">");
  EXPECT_EQ(state.evidence, 1u);
  EXPECT_NE(state.view, first);
  EXPECT_TRUE(ShowsText(fmt::format("2 of {}", count)));
  hand.Click("<");
  hand.Click("<");
  EXPECT_EQ(state.evidence, count - 1);
}

TEST(FindingsPane, ScrollsToTheFindingThatIsOpenedElsewhere) {
  OpenJob job;
  State& state = job.state();
  ASSERT_GE(AnalysisOf(job).findings.size(), 2u);
  PaneHand hand(state, DrawFindings, {420, 130});
  OpenFinding(state, {0, 1});
  hand.ui().Frames(4);
  EXPECT_TRUE(ShowsText("2. Input wait"));
  EXPECT_FALSE(ShowsText("1. Sync calls"));
}

constexpr std::string_view kPageable = R"(
thread 1
repeat 5 every 10000
  step 0 10000 ProfilerStep#1
  op 95 2110 aten::copy_ | stack=train.py(12): main
  call 100 2100 cudaMemcpyAsync | corr=1
  call 2150 2160 cudaLaunchKernel | corr=2
end
stream 0 7
repeat 5 every 10000
  copy 200 2100 Memcpy HtoD (Pageable -> Device) | corr=1 bytes=19000000
  kernel 2165 10000 gemm | corr=2
end
)";

TEST(FindingsPane, CopiesTheFixAsItIs) {
  OpenJob job({kPageable});
  State& state = job.state();
  const std::vector<Finding>& findings = AnalysisOf(job).findings;
  ASSERT_EQ(findings.size(), 1u);
  ASSERT_NE(findings[0].fix.find('\n'), std::string::npos);
  PaneHand hand(state, DrawFindings, {700, 900});
  hand.Click("1. ");
  EXPECT_TRUE(ShowsText("train.py:12 main"));
  hand.Click("copy fix");
  EXPECT_EQ(Clipboard(), findings[0].fix);
  EXPECT_FALSE(state.message.empty());
}

constexpr std::string_view kHealthy = R"(
thread 1
repeat 12 every 10000
  step 0 10000 ProfilerStep#1
  op   100 300 aten::mm
  call 150 200 cudaLaunchKernel | corr=100
end
stream 0 7
repeat 12 every 10000
  kernel 200 10190 gemm_kernel | corr=100
end
)";

TEST(FindingsPane, SaysWhatWasCheckedWhenThereIsNothingToFind) {
  OpenJob job({kHealthy});
  ASSERT_TRUE(AnalysisOf(job).findings.empty());
  ASSERT_FALSE(AnalysisOf(job).passed.empty());
  PaneHand hand(job.state(), DrawFindings);
  EXPECT_TRUE(ShowsText("No findings"));
  EXPECT_TRUE(ShowsText("Nothing above 2 % of step time"));
  EXPECT_EQ(ShowsText("in what could be checked"), !AnalysisOf(job).skipped.empty());
  for (const std::string& rule : AnalysisOf(job).passed) EXPECT_TRUE(ShowsText(rule)) << rule;
  for (const SkippedRule& rule : AnalysisOf(job).skipped) {
    EXPECT_TRUE(ShowsText(rule.rule + ": ")) << rule.rule;
  }
}

// Both take as long: neither is called the slowest.
TEST(FindingsPane, ShowsARankFirstAndOthersOnDemand) {
  OpenJob job({kHealthy, testing::kLoaderBoundScript});
  State& state = job.state();
  const uint32_t first = state.document->SlowestRank();
  PaneHand hand(state, DrawFindings);
  EXPECT_TRUE(ShowsText(fmt::format("rank {}", first)));
  EXPECT_FALSE(ShowsText("(slowest)"));
  hand.Click(fmt::format("rank {}", first));
  hand.ui().Frames(2);
  hand.Click(fmt::format("rank {}", 1 - first));
  EXPECT_EQ(state.rank, 1 - first);
}

TEST(FindingsPane, FitsIntoItsPaneAtAnyScale) {
  for (const float scale : {0.75F, 1.F, 2.F}) {
    OpenJob job;
    PaneHand hand(job.state(), DrawFindings, {420 * scale, 900 * scale}, ThemeName::kLight, scale);
    hand.Click("1. ");
    hand.ui().Frames(2);
    EXPECT_EQ(testing::CutGlyphs(), 0) << scale;
  }
}

}  // namespace
}  // namespace trainprof
