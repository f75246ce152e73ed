#include "viewer/panes/overview.h"

#include <gtest/gtest.h>

#include "tests/viewer/open_job.h"
#include "tests/viewer/ui_driver.h"
#include "viewer/navigation/view.h"
#include "viewer/panes/cache.h"
#include "viewer/panes/panes.h"

namespace trainprof {
namespace {

const Scale kScale = Scale::Of({{0}, {1'000'000}}, 1000);  // 1 us a pixel

TEST(OverviewGrip, TakesEdgesWhereTheyCanBeToldFromTheInside) {
  const Interval view{{200'000}, {400'000}};
  EXPECT_EQ(GripAt(kScale, view, 203, 5), OverviewGrip::kLeftEdge);
  EXPECT_EQ(GripAt(kScale, view, 396, 5), OverviewGrip::kRightEdge);
  EXPECT_EQ(GripAt(kScale, view, 300, 5), OverviewGrip::kWindow);
  EXPECT_EQ(GripAt(kScale, view, 900, 5), OverviewGrip::kWindow);
  EXPECT_EQ(GripAt(kScale, {{200'000}, {204'000}}, 200, 5), OverviewGrip::kWindow);
}

TEST(OverviewGrip, MovesTheWindowOrOneEdge) {
  const Interval view{{200'000}, {400'000}};
  EXPECT_EQ(DraggedTo(kScale, view, OverviewGrip::kWindow, 0.5, 500),
            (Interval{{400'000}, {600'000}}));
  EXPECT_EQ(DraggedTo(kScale, view, OverviewGrip::kLeftEdge, 0, 100),
            (Interval{{100'000}, {400'000}}));
  EXPECT_EQ(DraggedTo(kScale, view, OverviewGrip::kRightEdge, 0, 700),
            (Interval{{200'000}, {700'000}}));
  // Never past the other one.
  EXPECT_EQ(DraggedTo(kScale, view, OverviewGrip::kLeftEdge, 0, 900).Length(), kLeastView);
  EXPECT_EQ(DraggedTo(kScale, view, OverviewGrip::kRightEdge, 0, 10).Length(), kLeastView);
}

class Overview : public ::testing::Test {
 protected:
  // The bar begins behind the names and ends before the scroll bar.
  float XOf(TraceTime t) const {
    const auto width = static_cast<int32_t>(1600 - 8 - 11 - (8 + 220));
    return 228 + Scale::Of(job_.state().lines().extent(), width).PixelOf(t);
  }

  mutable testing::OpenJob job_;
  PaneCache cache_;
  UiDriver ui_{{1600, 56}, [this](const Theme& theme) {
                 PaneContext context{job_.state(), theme, cache_};
                 DrawOverview(context);
               }};
};

TEST_F(Overview, WindowIsDraggedAndResized) {
  State& state = job_.state();
  state.view = {{20'000'000}, {40'000'000}};
  ui_.Frames(2);
  ui_.Drag({XOf({30'000'000}), 28}, {XOf({70'000'000}), 28});
  EXPECT_NEAR(static_cast<double>(state.view.begin.ns), 60e6, 2e5);
  EXPECT_EQ(state.view.Length(), Milliseconds(20));
  ui_.Drag({XOf(state.view.end), 28}, {XOf({100'000'000}), 28});
  EXPECT_NEAR(static_cast<double>(state.view.begin.ns), 60e6, 2e5);
  EXPECT_NEAR(static_cast<double>(state.view.end.ns), 100e6, 2e5);
  EXPECT_TRUE(state.view_chosen);
  Back(state);
  EXPECT_EQ(state.view.Length(), Milliseconds(20));
}

TEST_F(Overview, WindowComesToAClickOutside) {
  State& state = job_.state();
  state.view = {{20'000'000}, {40'000'000}};
  ui_.Frames(2);
  ui_.Click({XOf({90'000'000}), 28});
  EXPECT_NEAR(static_cast<double>(state.view.begin.ns), 80e6, 2e5);
  EXPECT_EQ(state.view.Length(), Milliseconds(20));
}

TEST_F(Overview, ShowsWhenTheGpuWorkedAndWhyNot) {
  ui_.Frames(3);
  EXPECT_FALSE(cache_.timeline.overview_pending);
  ASSERT_FALSE(cache_.timeline.overview.rects.empty());
  bool busy = false;
  bool idle = false;
  for (const Rect& rect : cache_.timeline.overview.rects) {
    busy |= rect.lane == 0;
    idle |= rect.lane == 1;
  }
  EXPECT_TRUE(busy);
  EXPECT_TRUE(idle);
  EXPECT_LT(ui_.drawn().rects, 3000);
}

// Without a GPU: whatever depth it ran at. Operators below nothing, and a step that says nothing of
// what it was made of.
TEST(OverviewOfAThread, ShowsWorkAtAnyDepth) {
  testing::OpenJob job({R"(
thread 1
op 0 1000000 aten::outermost
annotation 1000000 2000000 forward
  op 1000000 1900000 aten::mm
    op 1100000 1800000 aten::deep
step 2000000 4000000 ProfilerStep#1
  op 2000000 2500000 aten::mm
step 4000000 5000000 ProfilerStep#2
)"});
  State& state = job.state();
  PaneCache cache;
  UiDriver ui{{1600, 56}, [&](const Theme& theme) {
                PaneContext context{state, theme, cache};
                DrawOverview(context);
              }};
  ui.Frames(3);
  const Scale scale = cache.timeline.overview.scale;
  const auto covered = [&](double ms) {
    const float x = scale.PixelOf({static_cast<int64_t>(ms * 1e6)});
    for (const Rect& rect : cache.timeline.overview.rects) {
      if (rect.left <= x && x < rect.right) return true;
    }
    return false;
  };
  for (const double ms : {100., 900., 1050., 1500., 1850., 2200.}) EXPECT_TRUE(covered(ms)) << ms;
  EXPECT_FALSE(covered(3000)) << "nothing says what the step did";
}

// The hatches of many blocks are sparse, but end nowhere.
TEST_F(Overview, HatchesReachTheEnd) {
  std::string script = "thread 1\nrepeat 240 every 1000\n  step 0 1000 ProfilerStep#1\n";
  script += "  op 100 600 aten::item\n  call 110 590 cudaStreamSynchronize\nend\n";
  script += "stream 0 7\nrepeat 240 every 1000\n  kernel 200 580 gemm_kernel\nend\n";
  testing::OpenJob job({script});
  State& state = job.state();
  PaneCache cache;
  UiDriver ui{{3000, 56}, [&](const Theme& theme) {
                PaneContext context{state, theme, cache};
                DrawOverview(context);
              }};
  ui.Frames(3);
  const auto strokes = [&](float from, float to) {
    const ImDrawData& data = *ImGui::GetDrawData();
    int count = 0;
    for (int list = 0; list < data.CmdListsCount; ++list) {
      for (const ImDrawVert& v : data.CmdLists[list]->VtxBuffer) {
        const ImU32 alpha = (v.col >> IM_COL32_A_SHIFT) & 0xff;
        count += alpha == static_cast<ImU32>(255 * 0.38f) && v.pos.x >= from && v.pos.x < to;
      }
    }
    return count;
  };
  const float left = 228;
  const float tenth = (2980 - left) / 10;
  const int first = strokes(left, left + tenth);
  EXPECT_GT(first, 0);
  for (int part = 1; part < 10; ++part) {
    const float from = left + tenth * static_cast<float>(part);
    EXPECT_GT(strokes(from, from + tenth), first / 3) << part;
  }
}

}  // namespace
}  // namespace trainprof
