#include "viewer/panes/step_bars.h"

#include <gtest/gtest.h>

#include "tests/viewer/open_job.h"
#include "tests/viewer/ui_driver.h"
#include "viewer/panes/cache.h"
#include "viewer/panes/panes.h"

namespace trainprof {
namespace {

using testing::OpenJob;

StepBars BarsOf(State& state) {
  return MakeStepBars(state.lines(), 0, state.document->StepsOf(0), state.document->Analysis(0));
}

TEST(StepBars, SumToTheStepsAndToTheAccount) {
  OpenJob job;
  const StepBars bars = BarsOf(job.state());
  ASSERT_EQ(bars.spans.size(), static_cast<size_t>(testing::kSteps));
  EXPECT_EQ(bars.source, "GPU 0");
  for (size_t s = 0; s < bars.spans.size(); ++s) {
    Duration sum;
    for (const Duration& part : bars.PartsOf(s)) sum += part;
    EXPECT_EQ(sum, bars.spans[s].Length());
  }
  const RankAnalysis& analysis = *job.state().document->Analysis(0);
  for (size_t p = 0; p < bars.parts.size(); ++p) {
    EXPECT_EQ(bars.parts[p].total, analysis.devices[0].account[p].total) << bars.parts[p].title;
  }
}

// The first one misses what the GPU waited before it. A mean over all of them would be too low.
TEST(StepBars, StepsWithoutDetailDoNotCountInTheMean) {
  OpenJob job({R"(
thread 1
repeat 5 every 1000
  step 0 1000 step
  call 10 15 cudaLaunchKernel | corr=1
end
stream 0 7
repeat 5 every 1000
  kernel 20 500 gemm | corr=1
end
)"});
  const StepBars bars = BarsOf(job.state());
  EXPECT_EQ(bars.spans.size(), 5u);
  EXPECT_EQ(bars.detailed, 4);
  EXPECT_EQ(bars.parts[static_cast<size_t>(DeviceClass::kCompute)].total, Microseconds(4 * 480));
}

TEST(StepBars, WithoutADeviceTellTheThreadsPhases) {
  OpenJob job({R"(
thread 1
repeat 4 every 10000
  step 0 10000 ProfilerStep#1
  annotation 0 2000 enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
  annotation 2000 9000 forward
end
)"});
  const StepBars bars = BarsOf(job.state());
  EXPECT_EQ(bars.source, "main thread");
  ASSERT_EQ(bars.spans.size(), 4u);
  ASSERT_FALSE(bars.parts.empty());
  EXPECT_EQ(bars.parts[0].title, "forward") << "as the report says, not as its colour is called";
  for (size_t s = 0; s < bars.spans.size(); ++s) {
    Duration sum;
    for (size_t p = 0; p < bars.parts.size(); ++p) {
      sum += bars.PartsOf(s)[p];
      if (bars.parts[p].category == Category::kInputWait) {
        EXPECT_EQ(bars.PartsOf(s)[p], Milliseconds(2));
      }
    }
    EXPECT_EQ(sum, bars.spans[s].Length());
  }
}

TEST(StepBars, OutliersAreClippedAtTwiceTheMedian) {
  OpenJob job({R"(
thread 1
step 0 10000 ProfilerStep#1
step 10000 20000 ProfilerStep#2
step 20000 90000 ProfilerStep#3
step 90000 100000 ProfilerStep#4
stream 0 7
kernel 0 100000 gemm
)"});
  const StepBars bars = BarsOf(job.state());
  EXPECT_EQ(bars.median, Milliseconds(10));
  EXPECT_EQ(bars.limit, Milliseconds(20));
}

TEST(StepBars, BeforeTheAnalysisOnlyLengthsAreKnown) {
  OpenJob job;
  State& state = job.state();
  const StepBars bars = MakeStepBars(state.lines(), 0, state.document->StepsOf(0), nullptr);
  EXPECT_EQ(bars.spans.size(), static_cast<size_t>(testing::kSteps));
  EXPECT_TRUE(bars.parts.empty());
  EXPECT_GT(bars.limit.ns, 0);
}

TEST(StepBars, OfAColumnTheLongestStepIsShown) {
  std::vector<Interval> spans;
  for (int64_t i = 0; i < 10'000; ++i) spans.push_back({{i * 100}, {i * 100 + 50}});
  spans[4321].end = {432'199};
  const std::vector<uint32_t> worst = WorstOfColumns(spans, 300);
  EXPECT_EQ(worst.size(), 300u);
  EXPECT_TRUE(std::is_sorted(worst.begin(), worst.end()));
  EXPECT_TRUE(std::find(worst.begin(), worst.end(), 4321u) != worst.end());
  EXPECT_EQ(WorstOfColumns(std::span(spans).first(3), 300), (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_TRUE(WorstOfColumns({}, 300).empty());
}

class StepRibbon : public ::testing::Test {
 protected:
  OpenJob job_;
  PaneCache cache_;
  UiDriver ui_{{1600, 90}, [this](const Theme& theme) {
                 PaneContext context{job_.state(), theme, cache_};
                 DrawStepRibbon(context);
               }};
};

TEST_F(StepRibbon, ClickShowsTheStep) {
  // Twelve bars of 46 points each begin behind the names.
  ui_.Click({8 + 220 + 46 * 4.5f, 60});
  const Interval step = job_.state().document->StepsOf(0).steps[4].span;
  const Interval view = job_.state().view;
  EXPECT_LE(view.begin, step.begin);
  EXPECT_GE(view.end, step.end);
  EXPECT_LT(view.Length().ns, 2 * step.Length().ns);
}

TEST_F(StepRibbon, ShowsCausesAndTheViewAndTellsOfABar) {
  EXPECT_TRUE(ui_.Shows(ui_.theme().Of(Category::kCompute), {230, 0}, {1600, 90}));
  EXPECT_TRUE(ui_.Shows(ui_.theme().Of(Category::kInputWait), {230, 0}, {1600, 90}));
  EXPECT_LT(ui_.drawn().rects, 3000);
  const int before = ui_.drawn().vertices;
  ui_.MoveTo({8 + 220 + 46 * 4.5f, 60});
  ui_.Frames(2);
  EXPECT_GT(ui_.drawn().vertices, before + 100);  // a tooltip
}

}  // namespace
}  // namespace trainprof
