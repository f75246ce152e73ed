// The timeline under a hand, without a display.
#include <gtest/gtest.h>

#include "tests/viewer/panes/timeline_hand.h"
#include "viewer/panes/timeline_range.h"

namespace trainprof {
namespace {

using testing::OpenJob;
using testing::TimelineHand;

class Timeline : public ::testing::Test {
 protected:
  State& state() { return job_.state(); }
  Duration PerPixel() { return Duration{state().view.Length().ns / state().view_width_px}; }

  OpenJob job_;
  TimelineHand hand_{job_.state()};
};

TEST_F(Timeline, WheelZoomsAtTheCursor) {
  const ImVec2 at{900, 300};
  hand_.ui().MoveTo(at);
  const Interval before = state().view;
  const TraceTime under = *state().hovered_time;
  hand_.ui().Wheel(at, 3);
  EXPECT_LT(state().view.Length().ns, before.Length().ns * 6 / 10);
  hand_.ui().Frames();
  const Duration off = *state().hovered_time - under;
  EXPECT_LE(std::abs(off.ns), 2 * PerPixel().ns);
  hand_.ui().Wheel(at, -3);
  EXPECT_NEAR(static_cast<double>(state().view.Length().ns),
              static_cast<double>(before.Length().ns), 1e-3 * 6e7);
}

TEST_F(Timeline, WheelWithShiftOrControlScrollsTracks) {
  TimelineHand low(state(), {1600, 110});
  const Interval view = state().view;
  low.ui().Hold(false, true);
  low.ui().Wheel({900, 80}, -1);
  EXPECT_GT(state().scroll, 0);
  const double once = state().scroll;
  low.ui().Hold(true, false);
  low.ui().Wheel({900, 80}, -1);
  EXPECT_GT(state().scroll, once);
  low.ui().Hold(false, false);
  low.ui().Wheel({100, 80}, 100);  // over the names no key is needed
  EXPECT_EQ(state().scroll, 0);
  EXPECT_EQ(state().view, view);
}

TEST_F(Timeline, RightAndMiddleDragMoveTheView) {
  Zoom(state(), state().view.begin, 0.2);
  for (const int button : {1, 2}) {
    const Interval before = state().view;
    const Duration px = PerPixel();
    hand_.ui().Drag({900, 300}, {700, 300}, button);
    const Duration moved = state().view.begin - before.begin;
    EXPECT_NEAR(static_cast<double>(moved.ns), 200.0 * static_cast<double>(px.ns),
                2.0 * static_cast<double>(px.ns));
    EXPECT_EQ(state().view.Length(), before.Length());
    EXPECT_FALSE(state().range);
  }
}

TEST_F(Timeline, LeftDragSelectsARangeThatSnapsToEvents) {
  const EventRef kernel = job_.Named("gemm_kernel")[1];
  const Interval time = state().lines().TimeOf(kernel);
  const uint32_t stream = state().lines().LineOf(kernel);
  ImVec2 from = hand_.At(stream, 0, time.begin);
  ImVec2 to = hand_.At(stream, 0, time.end);
  from.x -= 4;
  to.x += 4;
  hand_.ui().Drag(from, to);
  ASSERT_TRUE(state().range);
  EXPECT_EQ(*state().range, time);
  EXPECT_FALSE(state().selected);
  EXPECT_EQ(hand_.cache().range_line, stream);
  // Its mark is drawn from begin to end.
  const ImU32 selection = hand_.ui().theme().selection;
  EXPECT_TRUE(hand_.ui().Shows(selection, {from.x, 0}, {from.x + 8, 700}));
}

TEST_F(Timeline, RangeReportTellsTheTrackAndWhyTheGpuWasIdle) {
  const EventRef kernel = job_.Named("gemm_kernel")[0];
  const uint32_t stream = state().lines().LineOf(kernel);
  const RangeReport report = ReportOf(state(), {{0}, {10'000'000}}, stream);
  EXPECT_EQ(report.length, Milliseconds(10));
  ASSERT_EQ(report.groups.size(), 2u);
  EXPECT_EQ(report.groups[0].title, "stream 7");
  EXPECT_EQ(report.groups[0].events, 1u);
  ASSERT_EQ(report.groups[0].items.size(), 1u);
  EXPECT_EQ(report.groups[0].items[0].category, Category::kCompute);
  EXPECT_EQ(report.groups[0].items[0].time, Milliseconds(4));
  EXPECT_TRUE(report.groups[1].idle);
  Duration idle;
  for (const RangeReport::Item& item : report.groups[1].items) idle += item.time;
  EXPECT_GT(idle, Milliseconds(3));
  EXPECT_LE(idle, Milliseconds(6));
}

TEST_F(Timeline, ClickSelectsAndAClickOnNothingClears) {
  const EventRef kernel = job_.Named("gemm_kernel")[2];
  hand_.ui().Click(hand_.At(kernel));
  EXPECT_EQ(state().selected, kernel);
  EXPECT_FALSE(state().range);
  const ImVec2 at = hand_.At(kernel);
  EXPECT_TRUE(hand_.ui().Shows(hand_.ui().theme().selection, {at.x - 300, at.y - 12},
                               {at.x + 300, at.y + 12}));
  state().range = Interval{{0}, {1000}};
  const Interval time = state().lines().TimeOf(kernel);
  const uint32_t stream = state().lines().LineOf(kernel);
  hand_.ui().Click(hand_.At(stream, 0, time.end + Milliseconds(2)));
  EXPECT_FALSE(state().selected);
  EXPECT_FALSE(state().range);
}

TEST_F(Timeline, ClickOnIdleTimeSelectsItAsARange) {
  const uint32_t idle = hand_.Line(LineKind::kIdle);
  const EventRef kernel = job_.Named("gemm_kernel")[1];
  const TraceTime end = state().lines().TimeOf(kernel).end;
  hand_.ui().Click(hand_.At(idle, 0, end + Milliseconds(1)));
  EXPECT_FALSE(state().selected);
  ASSERT_TRUE(state().range);
  EXPECT_TRUE(state().range->Contains(end + Milliseconds(1)));
  EXPECT_EQ(hand_.cache().range_line, idle);
}

TEST_F(Timeline, ClickOnIdleTimeAndADragTakeThePlaceOfTheEvent) {
  const EventRef kernel = job_.Named("gemm_kernel")[1];
  const TraceTime end = state().lines().TimeOf(kernel).end;
  const uint32_t idle = hand_.Line(LineKind::kIdle);
  hand_.ui().Click(hand_.At(kernel));
  ASSERT_EQ(state().selected, kernel);
  hand_.ui().Click(hand_.At(idle, 0, end + Milliseconds(1)));
  EXPECT_FALSE(state().selected);
  hand_.ui().Click(hand_.At(kernel));
  ASSERT_EQ(state().selected, kernel);
  hand_.ui().Drag({600, 400}, {900, 400});
  EXPECT_FALSE(state().selected);
  EXPECT_TRUE(state().range);
}

TEST_F(Timeline, ClickOnTheGpuSelectsWhatRanOnIt) {
  const EventRef kernel = job_.Named("gemm_kernel")[1];
  const Interval time = state().lines().TimeOf(kernel);
  const uint32_t gpu = hand_.Line(LineKind::kGpu);
  const ImVec2 at = hand_.At(gpu, 0, time.begin + Milliseconds(1));
  hand_.ui().Click(at);
  EXPECT_EQ(state().selected, kernel);
  EXPECT_FALSE(state().range);
  // Both the stream and the block that was clicked say so.
  const ImU32 selection = hand_.ui().theme().selection;
  for (const float y : {at.y, hand_.At(kernel).y}) {
    EXPECT_TRUE(hand_.ui().Shows(selection, {hand_.XOf(time.begin) - 4, y - 10},
                                 {hand_.XOf(time.end) + 4, y + 10}));
  }
}

// A block of busy time is as many operations as touch each other: the one under the mouse.
TEST(TimelineOfStreams, ClickOnTheGpuSelectsTheOperationUnderTheMouse) {
  OpenJob job({R"(
thread 1
repeat 3 every 10000
  step 0 9900 ProfilerStep#1
end
stream 0 7
repeat 3 every 10000
  kernel 1000 3000 first_gemm
  kernel 3000 6000 second_gemm
end
stream 0 20
repeat 3 every 10000
  kernel 2000 8000 ncclDevKernel_AllReduce
end
)"});
  State& state = job.state();
  TimelineHand hand(state);
  const uint32_t gpu = hand.Line(LineKind::kGpu);
  const TraceTime begin = state.lines().TimeOf(job.Named("first_gemm")[1]).begin;
  constexpr std::pair<int64_t, const char*> kExpected[] = {
      {500, "first_gemm"},                 // alone
      {1500, "first_gemm"},                // compute, with communication beside it
      {3000, "second_gemm"},               // the same
      {6000, "ncclDevKernel_AllReduce"}};  // exposed
  for (const auto& [after_us, name] : kExpected) {
    hand.ui().Click(hand.At(gpu, 0, begin + Microseconds(after_us)));
    ASSERT_TRUE(state.selected) << name;
    EXPECT_EQ(*state.selected, job.Named(name)[1]) << name;
  }
}

// 2 % of idle time must not look like a lane full of it.
TEST(TimelineOfIdleTime, IsAsLowAsItsShare) {
  std::string script = "thread 1\nrepeat 4 every 100000\n  step 0 100000 ProfilerStep#1\nend\n";
  script += "stream 0 7\nrepeat 10000 every 40\n  kernel 0 39 gemm_kernel\nend\n";
  OpenJob job({script});
  State& state = job.state();
  TimelineHand hand(state);
  ShowAll(state);
  hand.ui().Frames(2);
  hand.Settle();
  const uint32_t idle = hand.Line(LineKind::kIdle);
  const float middle = hand.YOf(idle);
  size_t columns = 0;
  for (const Rect& rect : hand.cache().frame.rects) {
    if (rect.category != Category::kUnknown && rect.category != Category::kDependency) continue;
    columns += rect.event == kNoEvent;
    EXPECT_TRUE(rect.event != kNoEvent || rect.height <= 2) << int{rect.height};
  }
  EXPECT_GT(columns, 0u);
  for (const Category cause : {Category::kUnknown, Category::kDependency, Category::kLaunch}) {
    const ImVec2 inner_min{hand.XOf(state.lines().extent().begin) + 20, middle};
    const ImVec2 inner_max{hand.XOf(state.lines().extent().end) - 20, middle + 7};
    for (uint8_t shade = 1; shade <= kShades; ++shade) {
      EXPECT_FALSE(hand.ui().Shows(hand.ui().theme().Shaded(cause, shade), inner_min, inner_max));
    }
  }
}

TEST_F(Timeline, DoubleClickZoomsToTheEvent) {
  const EventRef kernel = job_.Named("gemm_kernel")[2];
  const Interval time = state().lines().TimeOf(kernel);
  hand_.ui().DoubleClick(hand_.At(kernel));
  EXPECT_LE(state().view.begin, time.begin);
  EXPECT_GE(state().view.end, time.end);
  EXPECT_LT(state().view.Length().ns, 2 * time.Length().ns);
  EXPECT_EQ(state().selected, kernel);
}

TEST_F(Timeline, DoubleClickZoomsToAGapAndSaysHowLongItIs) {
  const EventRef kernel = job_.Named("gemm_kernel")[2];
  const TraceTime end = state().lines().TimeOf(kernel).end;
  const uint32_t stream = state().lines().LineOf(kernel);
  hand_.ui().DoubleClick(hand_.At(stream, 0, end + Milliseconds(3)));
  EXPECT_TRUE(state().view.Contains(end));
  EXPECT_LT(state().view.Length(), Milliseconds(10));
  EXPECT_EQ(state().message, "A gap of 6.00 ms");
}

TEST_F(Timeline, ClickOnANameCollapsesAndOnItsPinPins) {
  const uint32_t thread = hand_.Line(LineKind::kThread);
  hand_.ui().Click(hand_.OnName(thread));
  EXPECT_TRUE(state().collapsed.contains(thread));
  EXPECT_EQ(hand_.cache().layout.tracks.rows[1].lanes, 1u);
  hand_.ui().Click(hand_.OnName(thread));
  EXPECT_FALSE(state().collapsed.contains(thread));
  const uint32_t stream = hand_.Line(LineKind::kStream);
  hand_.ui().Click(hand_.OnPin(stream));
  EXPECT_TRUE(state().pinned.contains(stream));
  ASSERT_EQ(hand_.cache().layout.pinned.rows.size(), 1u);
  EXPECT_GT(hand_.areas().pinned.height(), 0);
  // The pinned copy answers to the mouse as well.
  const EventRef kernel = job_.Named("gemm_kernel")[2];
  hand_.ui().Click({hand_.At(kernel).x, hand_.areas().pinned.top + 8});
  EXPECT_EQ(state().selected, kernel);
  // Both copies say that it is selected.
  const ImU32 selection = hand_.ui().theme().selection;
  const float x = hand_.At(kernel).x;
  for (const float y : {hand_.areas().pinned.top + 8, hand_.At(kernel).y}) {
    EXPECT_TRUE(hand_.ui().Shows(selection, {x - 300, y - 10}, {x + 300, y + 10}));
  }
}

TEST_F(Timeline, HoveringTellsWhereTheMouseIs) {
  const EventRef kernel = job_.Named("gemm_kernel")[2];
  const int before = hand_.ui().drawn().vertices;
  hand_.ui().MoveTo(hand_.At(kernel));
  hand_.ui().Frames(2);
  EXPECT_EQ(state().hovered_line, state().lines().LineOf(kernel));
  EXPECT_TRUE(state().lines().TimeOf(kernel).Contains(*state().hovered_time));
  EXPECT_GT(hand_.ui().drawn().vertices, before + 4 * 20);  // a tooltip
  hand_.ui().MoveTo({-10, -10});
  EXPECT_FALSE(state().hovered_line);
  EXPECT_FALSE(state().hovered_time);
}

TEST_F(Timeline, ArrowGoesFromTheCallToItsKernel) {
  const EventRef kernel = job_.Named("gemm_kernel")[2];
  const EventRef call = job_.Named("cudaLaunchKernel")[2];
  const ImU32 selection = hand_.ui().theme().selection;
  const auto between = [&] {
    const float top = hand_.At(call).y + 12;
    const float bottom = hand_.At(kernel).y - 12;
    return hand_.ui().Shows(selection, {hand_.areas().time.left, top},
                            {hand_.areas().time.right, bottom});
  };
  hand_.ui().Frames();
  EXPECT_FALSE(between());
  for (const EventRef& end : {kernel, call}) {
    state().selected = end;
    hand_.ui().Frames();
    EXPECT_TRUE(between());
  }
}

TEST_F(Timeline, OpenFindingDimsAllButItsEvidence) {
  const RankAnalysis& analysis = *state().document->Analysis(0);
  ASSERT_FALSE(analysis.findings.empty());
  ASSERT_FALSE(analysis.findings[0].evidence.empty());
  const ImU32 veil = (hand_.ui().theme().panel & ~IM_COL32_A_MASK) | (150u << IM_COL32_A_SHIFT);
  EXPECT_FALSE(hand_.ui().Shows(veil));
  OpenFinding(state(), {0, 0});
  hand_.ui().Frames(2);
  EXPECT_TRUE(hand_.ui().Shows(veil));
  const Interval when = analysis.findings[0].evidence[0].when;
  const float left = hand_.XOf(when.begin);
  const float right = hand_.XOf(when.end);
  ASSERT_GT(right - left, 100);
  EXPECT_FALSE(hand_.ui().Shows(veil, {left + 3, 60}, {right - 3, 700}));
}

TEST_F(Timeline, FilterIsTypedAboveTheNames) {
  hand_.ui().Click({hand_.areas().corner.left + 40,
                    (hand_.areas().corner.top + hand_.areas().corner.bottom) / 2});
  hand_.ui().Type("stream");
  EXPECT_EQ(state().filter, "stream");
  hand_.ui().Frames();
  EXPECT_EQ(hand_.cache().layout.tracks.rows.size(), 3u);  // rank, GPU, stream
}

TEST_F(Timeline, BorderBesideTheNamesIsDragged) {
  const float x = hand_.areas().corner.right;
  hand_.ui().Drag({x, 300}, {x + 100, 300});
  EXPECT_NEAR(state().settings.names_width, 320, 10);
  EXPECT_FALSE(state().range);
}

TEST_F(Timeline, ScrollbarIsDragged) {
  TimelineHand low(state(), {1600, 110});
  const float x = (low.areas().scrollbar.left + low.areas().scrollbar.right) / 2;
  low.ui().Drag({x, low.areas().scrollbar.top + 3}, {x, low.areas().scrollbar.bottom + 50});
  const double all = static_cast<double>(low.cache().layout.tracks.height);
  EXPECT_NEAR(state().scroll, all - low.areas().tracks.height(), 1);
}

TEST_F(Timeline, RevealScrollsToALine) {
  TimelineHand low(state(), {1600, 110});
  EXPECT_EQ(state().scroll, 0);
  state().reveal = low.Line(LineKind::kIdle);
  low.ui().Frames();
  EXPECT_FALSE(state().reveal);
  EXPECT_GT(low.YOf(low.Line(LineKind::kIdle)), low.areas().tracks.top);
  EXPECT_LT(low.YOf(low.Line(LineKind::kIdle)), low.areas().tracks.bottom);
}

TEST_F(Timeline, BookmarksAreDrawn) {
  const ImU32 warning = hand_.ui().theme().warning;
  EXPECT_FALSE(hand_.ui().Shows(warning));
  const TraceTime at = state().view.begin + Duration{state().view.Length().ns / 2};
  ToggleBookmark(state(), at);
  hand_.ui().Frames();
  const float x = hand_.XOf(at);
  EXPECT_TRUE(hand_.ui().Shows(warning, {x - 2, 100}, {x + 2, 700}));
}

TEST_F(Timeline, BothThemesAndAllSizesStayWithinTheWindow) {
  for (const ThemeName theme : {ThemeName::kDark, ThemeName::kLight}) {
    for (const auto& [size, scale] : {std::pair{ImVec2{1280, 300}, 1.f},
                                      {ImVec2{3840, 1400}, 2.f},
                                      {ImVec2{200, 60}, 1.f},
                                      {ImVec2{40, 20}, 1.f}}) {
      TimelineHand hand(state(), size, theme, scale);
      hand.ui().MoveTo({size.x / 2, size.y / 2});
      hand.ui().Wheel({size.x / 2, size.y / 2}, 1);
      EXPECT_GT(hand.ui().drawn().vertices, 0);
      EXPECT_LT(hand.ui().drawn().rects, 20'000);
    }
  }
}

}  // namespace
}  // namespace trainprof
