// Hits of a search as they are marked on the timeline and in the overview, and as the menu bar
// counts them; tracks that are still being made.
#include <gtest/gtest.h>

#include "tests/viewer/panes/pane_hand.h"
#include "tests/viewer/panes/timeline_hand.h"

namespace trainprof {
namespace {

using testing::OpenJob;
using testing::PaneHand;
using testing::ShowsText;
using testing::TimelineHand;

class TimelineHits : public ::testing::Test {
 protected:
  State& state() { return job_.state(); }
  // Whether there is a mark on top of the event; the mark of the current hit reaches lower.
  bool IsMarked(const EventRef& event, bool as_current = false) {
    const ImVec2 at = hand_.At(event);
    const float top = at.y - static_cast<float>(HeightsOf(hand_.ui().theme()).lane) / 2;
    const float reach = hand_.ui().theme().Px(as_current ? 6 : 3);
    const Interval time = state().lines().TimeOf(event);
    return hand_.ui().Shows(hand_.ui().theme().text,
                            {hand_.XOf(time.begin) - 1, top + reach - 0.6f},
                            {hand_.XOf(time.end) + 3, top + reach + 0.6f});
  }

  OpenJob job_;
  TimelineHand hand_{job_.state()};
};

TEST_F(TimelineHits, EachHitInSightIsMarkedTheCurrentOneMost) {
  const std::vector<EventRef> kernels = job_.Named("gemm_kernel");
  const std::vector<EventRef> calls = job_.Named("cudaLaunchKernel");
  ShowAll(state());
  hand_.ui().Frames(2);
  EXPECT_FALSE(IsMarked(kernels[1]));
  RunSearch(state(), "gemm");
  hand_.ui().Frames(2);
  for (const EventRef& kernel : kernels) {
    EXPECT_TRUE(IsMarked(kernel));
    EXPECT_FALSE(IsMarked(kernel, true));
  }
  for (const EventRef& call : calls) EXPECT_FALSE(IsMarked(call));
  ShowHit(state(), 1);
  ASSERT_EQ(state().search.current, 0u);
  hand_.ui().Frames(2);
  EXPECT_TRUE(IsMarked(kernels[0], true));
  EXPECT_FALSE(IsMarked(kernels[1], true));
  RunSearch(state(), "");
  hand_.ui().Frames(2);
  EXPECT_FALSE(IsMarked(kernels[1]));
}

TEST_F(TimelineHits, AHitTooShortToBeShownByItselfIsMarked) {
  const EventRef call = job_.Named("cudaLaunchKernel")[3];
  const Interval extent = state().lines().extent();
  state().view = {extent.begin, extent.begin + Duration{extent.Length().ns * 4}};
  hand_.ui().Frames(2);
  ASSERT_LT(
      hand_.XOf(state().lines().TimeOf(call).end) - hand_.XOf(state().lines().TimeOf(call).begin),
      2);
  EXPECT_FALSE(IsMarked(call));
  RunSearch(state(), "cudaLaunchKernel");
  hand_.ui().Frames(2);
  EXPECT_TRUE(IsMarked(call));
}

TEST(OverviewHits, ATickForEachAndALineForTheCurrentOne) {
  OpenJob job;
  State& state = job.state();
  PaneCache cache;
  UiDriver ui({1600, 56}, [&](const Theme& theme) {
    PaneContext context{state, theme, cache};
    DrawOverview(context);
  });
  state.view = {{115'000'000}, {118'000'000}};  // whose window is drawn in the same colour
  const auto width = static_cast<int32_t>(1600 - 8 - 11 - (8 + 220));
  const auto shows = [&](TraceTime t, float top, float bottom) {
    const float x = 228 + Scale::Of(state.lines().extent(), width).PixelOf(t);
    return ui.Shows(ui.theme().text, {x - 4, top}, {x + 4, bottom});
  };
  const std::vector<EventRef> kernels = job.Named("gemm_kernel");
  const TraceTime first = state.lines().TimeOf(kernels[0]).begin;
  const TraceTime third = state.lines().TimeOf(kernels[2]).begin;
  ui.Frames(2);
  EXPECT_FALSE(shows(third, 0, 56));
  RunSearch(state, "gemm");
  ui.Frames(2);
  EXPECT_TRUE(shows(first, 0, 26));
  EXPECT_TRUE(shows(third, 0, 26));
  EXPECT_FALSE(shows(third, 40, 56));
  EXPECT_FALSE(shows(third + Milliseconds(5), 0, 56));
  state.search.current = 2;
  ui.Frames(2);
  EXPECT_TRUE(shows(third, 40, 56));
  EXPECT_FALSE(shows(first, 40, 56));
}

TEST(SearchBox, SaysThatItSearchesUntilTheHitsAreThere) {
  OpenJob job({"thread 1\nrepeat 12 every 10000\n  op 100 200 aten::mm\n  op 300 400 " +
               std::string(300'000, 'x') + "\nend\n"});
  State& state = job.state();
  PaneHand hand(state, DrawMenuBar, {1000, 300});
  hand.Click("name: dur>1ms rank:0");
  hand.Write("aten");
  hand.Enter();
  // Nobody takes the hits over in this window.
  EXPECT_TRUE(ShowsText("searching ..."));
  EXPECT_FALSE(ShowsText("hits"));
  hand.Enter();
  EXPECT_TRUE(state.search.busy());
  while (state.search.busy()) UpdateSearch(state);
  hand.ui().Frames();
  EXPECT_TRUE(ShowsText("1 of 12")) << "Enter asked for the first one";
  hand.Enter();
  EXPECT_TRUE(ShowsText("2 of 12"));
}

// More events than a frame makes at once.
constexpr std::string_view kLongThread = R"(
thread 1
op 0 5 aten::relu
thread 2
repeat 11000 every 10
  op 0 8 aten::mm
  op 1 5 aten::add
end
)";

TEST(TimelineMaking, SaysSoUntilTheTrackIsThereAndDoesNotMove) {
  OpenJob job({kLongThread});
  State& state = job.state();
  PaneCache cache;
  struct Seen {
    bool pending;
    bool says;
    int64_t height;
    size_t rects;
  };
  std::vector<Seen> seen;
  UiDriver ui({1600, 700}, [&](const Theme& theme) {
    PaneContext context{state, theme, cache};
    DrawTimeline(context);
    seen.push_back({cache.timeline.pending, false, cache.timeline.layout.tracks.height,
                    cache.timeline.frame.rects.size()});
  });
  EXPECT_TRUE(seen.front().pending) << "the long one cannot be there in the first frame";
  EXPECT_GT(seen.front().rects, 0u) << "but the short one is";
  while (cache.timeline.pending) {
    EXPECT_TRUE(ShowsText("making ..."));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ui.Frames();
  }
  ui.Frames();
  EXPECT_FALSE(ShowsText("making ..."));
  EXPECT_FALSE(state.document->store().busy());
  EXPECT_GT(seen.back().rects, seen.front().rects);
  for (const Seen& frame : seen) EXPECT_EQ(frame.height, seen.back().height);
}

TEST(TimelineMaking, RevealsTheLaneOfTheSelectedEventOnceItIsThere) {
  OpenJob job({kLongThread});
  State& state = job.state();
  const std::vector<EventRef> inner = job.Named("aten::add");
  Select(state, inner[5000]);
  const uint32_t line = state.lines().LineOf(inner[5000]);
  state.collapsed.insert(line);
  TimelineHand hand(state, {1600, 110});
  hand.ui().Frames();
  EXPECT_FALSE(state.reveal);
  EXPECT_FALSE(state.collapsed.contains(line));
  EXPECT_LT(hand.YOf(line, 1), hand.areas().tracks.bottom);
}

TEST(TimelineMaking, GoingToTheNextEventWaitsForTheTrack) {
  OpenJob job({kLongThread});
  State& state = job.state();
  const std::vector<EventRef> events = job.Named("aten::mm");
  state.selected = events[100];
  SelectNeighbour(state, 1);
  EXPECT_EQ(state.selected, events[100]);
  EXPECT_EQ(state.message, "The track is still being made");
  TimelineHand hand(state);
  SelectNeighbour(state, 1);
  EXPECT_EQ(state.selected, events[101]);
}

}  // namespace
}  // namespace trainprof
