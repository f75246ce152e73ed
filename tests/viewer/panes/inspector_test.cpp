#include <gtest/gtest.h>

#include "tests/viewer/panes/pane_hand.h"

namespace trainprof {
namespace {

using testing::OpenJob;
using testing::PaneHand;
using testing::ShowsText;

constexpr std::string_view kTwoKernels = R"(
thread 1
repeat 5 every 1000
  step 0 990 ProfilerStep#1
  op   10 60 aten::mm | stack=train.py(12): step
  call 20 30 cudaLaunchKernel | corr=1
  call 31 35 cudaLaunchKernel | corr=2
  call 100 900 cudaStreamSynchronize
end
stream 0 7
repeat 4 every 1000
  kernel 40 140 long_kernel | corr=1
  kernel 150 160 short_kernel | corr=2
end
kernel 4040 4340 long_kernel | corr=4001
kernel 4350 4355 short_kernel | corr=4002
)";

TEST(Inspector, AClickOnAKernelGoesToItsLongestAndSearchesForIt) {
  OpenJob job({kTwoKernels});
  State& state = job.state();
  PaneHand hand(state, DrawInspector);
  EXPECT_TRUE(ShowsText("over 4 steps"));
  hand.Click("long_kernel");
  ASSERT_TRUE(state.selected);
  EXPECT_EQ(state.lines().NameOf(*state.selected), "long_kernel");
  EXPECT_EQ(state.lines().TimeOf(*state.selected).Length(), Microseconds(300));
  EXPECT_EQ(state.search.hits.total, 5u);
  EXPECT_EQ(state.search.text, "name:\"long_kernel\"");
}

TEST(Inspector, SortsByTheColumnThatIsClicked) {
  OpenJob job({kTwoKernels});
  PaneHand hand(job.state(), DrawInspector);
  const auto is_first = [](std::string_view a, std::string_view b) {
    return testing::FindText(a)->min.y < testing::FindText(b)->min.y;
  };
  EXPECT_TRUE(is_first("long_kernel", "short_kernel"));
  hand.Click("share");  // was sorted by it, largest first
  EXPECT_TRUE(is_first("short_kernel", "long_kernel"));
  hand.Click("name");
  EXPECT_TRUE(is_first("long_kernel", "short_kernel"));
  hand.Click("max");
  EXPECT_TRUE(is_first("long_kernel", "short_kernel"));
}

TEST(Inspector, CountsWhatLiesInTheSelectedRange) {
  OpenJob job({kTwoKernels});
  State& state = job.state();
  PaneHand hand(state, DrawInspector);
  SelectRange(state, {TraceTime{1'160'000}, TraceTime{2'160'000}});
  hand.ui().Frames(2);
  EXPECT_TRUE(ShowsText("in the selected range of 1.00 ms"));
  EXPECT_TRUE(ShowsText("0.100"));  // ms of long_kernel in the one step
  SelectRange(state, {TraceTime{2'151'000}, TraceTime{2'159'000}});
  hand.ui().Frames(2);
  EXPECT_FALSE(ShowsText("long_kernel"));
  EXPECT_TRUE(ShowsText("short_kernel"));
}

TEST(Inspector, KeepsItsTablesWhileARangeIsDragged) {
  OpenJob job({kTwoKernels});
  State& state = job.state();
  PaneHand hand(state, DrawInspector);
  hand.ui().MoveTo({5, 495});
  hand.ui().Button(true);
  SelectRange(state, {TraceTime{1'000'000}, TraceTime{2'000'000}});
  hand.ui().Frames(2);
  EXPECT_TRUE(ShowsText("over 4 steps"));
  hand.ui().Button(false);
  hand.ui().Frames(2);
  EXPECT_TRUE(ShowsText("in the selected range"));
}

TEST(Inspector, SwitchesTabsByHandAndByState) {
  OpenJob job({kTwoKernels});
  State& state = job.state();
  PaneHand hand(state, DrawInspector);
  hand.Click("Ops");
  EXPECT_EQ(state.tab, Tab::kOps);
  EXPECT_TRUE(ShowsText("aten::mm"));
  hand.Click("Sites");
  EXPECT_EQ(state.tab, Tab::kSites);
  EXPECT_TRUE(ShowsText("train.py:12 step"));
  state.tab = Tab::kQuality;
  hand.ui().Frames(3);
  EXPECT_EQ(state.tab, Tab::kQuality);
  EXPECT_TRUE(ShowsText("What was checked"));
  hand.Click("Kernels");
  EXPECT_EQ(state.tab, Tab::kKernels);
}

TEST(Inspector, AClickOnASiteGoesToTheCallThatBlockedLongest) {
  OpenJob job({kTwoKernels});
  State& state = job.state();
  state.tab = Tab::kSites;
  PaneHand hand(state, DrawInspector);
  hand.Wait();
  hand.Click("train.py:12 step");
  ASSERT_TRUE(state.selected);
  EXPECT_EQ(state.selected->table, Table::kApi);
  EXPECT_EQ(state.lines().NameOf(*state.selected), "cudaLaunchKernel");
}

TEST(Inspector, ComparesRanksAndShowsTheOneThatIsClicked) {
  OpenJob job({kTwoKernels, testing::kLoaderBoundScript});
  State& state = job.state();
  state.tab = Tab::kRanks;
  PaneHand hand(state, DrawInspector);
  EXPECT_TRUE(ShowsText("late"));
  EXPECT_TRUE(ShowsText("rank 1 (slowest)"));
  hand.Click("rank 0");
  EXPECT_EQ(state.rank, 0u);
}

TEST(Inspector, SaysWhyATabIsEmpty) {
  OpenJob job({"thread 1\nrepeat 3 every 1000\nstep 0 900 step\nend\n"});
  State& state = job.state();
  PaneHand hand(state, DrawInspector);
  EXPECT_TRUE(ShowsText("No GPU work was recorded."));
  state.tab = Tab::kSites;
  hand.ui().Frames(3);
  EXPECT_TRUE(ShowsText("No calls of the CUDA runtime were recorded"));
  state.tab = Tab::kMemory;
  hand.ui().Frames(3);
  EXPECT_TRUE(ShowsText("No memory was recorded."));
}

TEST(Inspector, FitsAtAnyWidthAndScale) {
  OpenJob job({kTwoKernels, testing::kLoaderBoundScript});
  State& state = job.state();
  for (const float scale : {0.75F, 1.F, 2.F}) {
    for (const float width : {400.F, 530.F, 1200.F}) {
      for (size_t tab = 0; tab < kTabs; ++tab) {
        state.tab = static_cast<Tab>(tab);
        PaneHand hand(state, DrawInspector, {width * scale, 300 * scale}, ThemeName::kDark, scale);
        hand.ui().Frames(2);
        EXPECT_EQ(testing::CutGlyphs(), 0) << "tab " << tab << " " << width << " x " << scale;
      }
    }
  }
}

TEST(Background, MakesManyEventsOnAThreadAndDropsWhatNobodyWants) {
  Background<int, int> value;
  const auto slow = [](int result) {
    return [result] {
      const bool never_ends = result < 0;
      while (never_ends) {
        CancelPoint();
        std::this_thread::yield();
      }
      return result;
    };
  };
  EXPECT_EQ(value.Get(1, false, slow(-1)), nullptr);  // never ends by itself
  EXPECT_TRUE(value.busy());
  const int* made = nullptr;
  while (made == nullptr) made = value.Get(2, false, slow(7));
  EXPECT_EQ(*made, 7);
  EXPECT_FALSE(value.busy());
  EXPECT_EQ(*value.Get(3, true, slow(8)), 8);
  EXPECT_EQ(value.Get(4, false, slow(-1)), nullptr);
  value = {};  // cancels and waits
  EXPECT_FALSE(value.busy());
}

}  // namespace
}  // namespace trainprof
