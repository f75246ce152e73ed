#include <gtest/gtest.h>

#include "tests/support/trace_script.h"
#include "tests/viewer/random_lane.h"
#include "viewer/navigation/follow.h"
#include "viewer/navigation/measure.h"
#include "viewer/navigation/ruler.h"
#include "viewer/navigation/view.h"

namespace trainprof {
namespace {

constexpr Interval kHour{{0}, {3'600'000'000'000}};

TEST(View, ZoomKeepsTheMomentUnderTheCursor) {
  Random random(1);
  for (int n = 0; n < 5000; ++n) {
    const int64_t begin = random.Between(1'000'000'000'000, 2'000'000'000'000);
    const Interval view{{begin}, {begin + random.Between(1000, 900'000'000'000)}};
    const TraceTime at{random.Between(view.begin.ns, view.end.ns)};
    const double factor = static_cast<double>(random.Between(10, 400)) / 100;
    const Interval zoomed = ZoomAt(view, at, factor, kHour);
    EXPECT_GE(zoomed.Length(), kLeastView);
    if (zoomed.begin.ns < 0 || zoomed.end > kHour.end) continue;  // the limits moved it
    const double before =
        static_cast<double>((at - view.begin).ns) / static_cast<double>(view.Length().ns);
    const double after =
        static_cast<double>((at - zoomed.begin).ns) / static_cast<double>(zoomed.Length().ns);
    const double nanosecond = 1.0 / static_cast<double>(zoomed.Length().ns);
    EXPECT_NEAR(before, after, 2 * nanosecond + 1e-9);
  }
}

TEST(View, NeverLeavesTheTraceNorDegenerates) {
  const Interval limits{{-360'000'000'000}, {3'960'000'000'000}};
  EXPECT_EQ(ZoomAt(kHour, {5}, 1e300, kHour), limits);
  EXPECT_EQ(ZoomAt(kHour, {5}, 1e-300, kHour).Length(), kLeastView);
  EXPECT_EQ(Pan(kHour, 1e300, 1600, kHour).end, limits.end);
  EXPECT_EQ(Pan(kHour, -1e300, 1600, kHour).begin, limits.begin);
  const Interval whole{{-kMostViewNs / 2}, {kMostViewNs / 2}};
  EXPECT_FALSE(ZoomAt(whole, {0}, 10, whole).Empty());
  const Interval point{{7}, {8}};
  EXPECT_EQ(ClampView(kHour, point).Length(), kLeastView);
  EXPECT_EQ(ZoomAt(ClampView(kHour, point), {7}, 0.1, point).Length(), kLeastView);
}

TEST(View, PanMovesByPixels) {
  const Interval view{{1'000'000}, {2'600'000}};
  EXPECT_EQ(Pan(view, 16, 1600, kHour), (Interval{{1'016'000}, {2'616'000}}));
  EXPECT_EQ(Pan(Pan(view, 16, 1600, kHour), -16, 1600, kHour), view);
}

TEST(View, AnEventIsShownWithAMargin) {
  EXPECT_EQ(ViewOf({{1'000'000}, {2'000'000}}, kHour), (Interval{{800'000}, {2'200'000}}));
  EXPECT_EQ(ViewOf({{1'000}, {1'000}}, kHour).Length(), Duration{140});
}

TEST(ViewHistory, GoesBackAndForth) {
  const Interval a{{0}, {1}}, b{{1}, {2}}, c{{2}, {3}};
  ViewHistory history;
  EXPECT_FALSE(history.Back(a));
  history.Leave(a);
  history.Leave(b);
  EXPECT_EQ(history.Back(c), b);
  EXPECT_EQ(history.Back(b), a);
  EXPECT_FALSE(history.Back(a));
  EXPECT_EQ(history.Forward(a), b);
  history.Leave(b);  // another way from here
  EXPECT_FALSE(history.Forward(c));
  for (int64_t i = 0; i < 1000; ++i) history.Leave({{i}, {i + 5}});
  size_t steps = 0;
  while (history.Back(a)) ++steps;
  EXPECT_EQ(steps, kMostHistory);
}

std::string Labels(const Interval& view, TraceTime zero = {0}) {
  const Ruler ruler = MakeRuler(Scale::Of(view, 400), 100, zero);
  std::string text = ruler.anchored ? ruler.anchor_label + " |" : "";
  for (const Tick& tick : ruler.ticks) text += (text.empty() ? "" : " ") + tick.label + ",";
  return text;
}

TEST(Ruler, TicksAreRoundAndLabelsHaveOneUnit) {
  EXPECT_EQ(Labels({{0}, {1000}}), "0 ns, 500 ns,");
  EXPECT_EQ(Labels({{0}, {4000}}), "0 us, 1 us, 2 us, 3 us,");
  EXPECT_EQ(Labels({{11'900'000}, {14'000'000}}), "12 ms, 13 ms,");
  EXPECT_EQ(Labels({{-1'000'000'000}, {3'000'000'000}}), "-1 s, 0 s, 1 s, 2 s,");
  EXPECT_EQ(Labels({{100'000'000}, {101'600'000}}), "100 ms, 100.5 ms, 101 ms, 101.5 ms,");
  EXPECT_EQ(Labels({{100'000'000}, {101'600'000}}, {99'500'000}), "0.5 ms, 1 ms, 1.5 ms, 2 ms,");
}

TEST(Ruler, FarFromZeroLabelsCountFromAnAnchor) {
  const int64_t far = 1'000'000'000'123'456;
  EXPECT_EQ(Labels({{far}, {far + 4000}}), "1000000 s | +124 us, +125 us, +126 us, +127 us,");
}

TEST(Ruler, TicksAreWithinTheViewAndFewAtEveryScale) {
  Random random(2);
  for (int n = 0; n < 5000; ++n) {
    const int64_t length = int64_t{1} << random.Between(7, 59);
    const int64_t begin = random.Between(-kMostViewNs, kMostViewNs - length);
    const Scale scale = Scale::Of({{begin}, {begin + length - 1}}, 1600);
    const Ruler ruler = MakeRuler(scale, 80, {random.Between(-1'000'000, 1'000'000)});
    EXPECT_LE(ruler.ticks.size(), 21u);
    EXPECT_GE(ruler.ticks.size(), 6u) << begin << " " << length;
    for (const Tick& tick : ruler.ticks) {
      EXPECT_TRUE(scale.view.Contains(tick.time));
      EXPECT_LE(tick.label.size(), 14u) << tick.label;
    }
    for (size_t i = 1; i < ruler.ticks.size(); ++i) {
      EXPECT_EQ(ruler.ticks[i].time - ruler.ticks[i - 1].time, ruler.step);
      EXPECT_NE(ruler.ticks[i].label, ruler.ticks[i - 1].label);
    }
  }
}

TEST(DurationText, IsExactOrShort) {
  EXPECT_EQ(ExactText({0}), "0 ns");
  EXPECT_EQ(ExactText({-1500}), "-1.5 us");
  EXPECT_EQ(ExactText({1'000'000'250'000'001}), "1000000.250000001 s");
  EXPECT_EQ(ExactText({INT64_MIN}), "-9223372036.854775808 s");
  EXPECT_EQ(ShortText({41'234'567}), "41.2 ms");
  EXPECT_EQ(ShortText({1'234}), "1.23 us");
  EXPECT_EQ(ShortText({812}), "812 ns");
  EXPECT_EQ(ShortText({-812'345}), "-812 us");
}

TEST(Measure, TotalsAreExactAndCutAtTheEnds) {
  Random random(3);
  const Lane lane = DrawLane(random, {.events = 500});
  for (int n = 0; n < 300; ++n) {
    const int64_t begin = random.Between(-100, 12'000);
    const Interval range{{begin}, {begin + random.Between(0, 9'000)}};
    RangeTotals expected;
    for (size_t i = 0; i < lane.size(); ++i) {
      const Interval event = lane.interval(i);
      const Interval inside = Intersect(event, range);
      if (inside.Empty() && !range.Contains(event.begin)) continue;
      ++expected.events;
      if (!inside.Empty()) {
        expected.time[static_cast<size_t>(lane.category(i))] += inside.Length();
      }
    }
    const RangeTotals totals = TotalsOf(lane, range);
    EXPECT_EQ(totals.time, expected.time);
    EXPECT_EQ(totals.events, expected.events);
    EXPECT_EQ(totals.Total(), expected.Total());
  }
}

TEST(Measure, SnapsToTheNearestEdge) {
  Random random(4);
  std::vector<Lane> lanes;
  for (int l = 0; l < 2; ++l) lanes.push_back(DrawLane(random, {.events = 60}));
  for (int64_t t = -20; t < 2500; ++t) {
    std::optional<TraceTime> expected;
    int64_t nearest = 11;
    for (const Lane& lane : lanes) {
      for (size_t i = 0; i < lane.size(); ++i) {
        for (TraceTime edge : {lane.interval(i).begin, lane.interval(i).end}) {
          const int64_t distance = std::abs(edge.ns - t);
          if (distance < nearest || (distance == nearest && expected && edge < *expected)) {
            nearest = distance;
            expected = edge;
          }
        }
      }
    }
    EXPECT_EQ(SnapToEdge(lanes, {t}, Nanoseconds(10)), expected) << t;
  }
}

TEST(Measure, FindsTheGapUnderTheCursor) {
  Lane lane;
  for (int64_t at : {100, 300, 300, 350}) {
    lane.Add({at}, {at == 300 ? 300 : at + 50}, Category::kCompute, Table::kRanges, {});
  }
  lane.Finish();
  EXPECT_EQ(GapAt(lane, {50}), std::nullopt);
  EXPECT_EQ(GapAt(lane, {149}), std::nullopt);
  EXPECT_EQ(GapAt(lane, {150}), (Interval{{150}, {300}}));
  EXPECT_EQ(GapAt(lane, {299}), (Interval{{150}, {300}}));
  EXPECT_EQ(GapAt(lane, {301}), (Interval{{300}, {350}}));
  EXPECT_EQ(GapAt(lane, {400}), std::nullopt);
}

TEST(Follow, GoesFromACallToWhatItLaunchedAndBack) {
  const Trace trace = TraceFromScript(R"(
thread 1
call 0 5 cudaGraphLaunch | corr=1
call 10 15 cudaLaunchKernel | corr=2
call 20 25 cudaStreamSynchronize | corr=3
stream 0 7
kernel 30 40 late | corr=2
kernel 10 12 a | corr=1
kernel 12 14 b | corr=1
kernel 50 60 orphan
)");
  const LaunchLinks links(trace);
  const auto call = [](uint32_t row) { return EventRef{4, Table::kApi, Row{row}}; };
  const auto op = [](uint32_t row) { return EventRef{4, Table::kDeviceOps, Row{row}}; };
  ASSERT_EQ(links.OpsOf(Row{0}).size(), 2u);
  EXPECT_EQ(Follow(links, call(0)), op(0));
  EXPECT_EQ(Follow(links, call(1)), op(2));
  EXPECT_EQ(Follow(links, call(2)), std::nullopt);
  EXPECT_EQ(Follow(links, op(1)), call(0));
  EXPECT_EQ(Follow(links, op(2)), call(1));
  EXPECT_EQ(Follow(links, op(3)), std::nullopt);
  EXPECT_EQ(Follow(links, {0, Table::kRanges, Row{0}}), std::nullopt);
  // Before the rank is analysed: back to the call, and nowhere from there.
  const LaunchLinks unfinished = LaunchLinks::Unfinished(trace);
  EXPECT_TRUE(links.whole());
  EXPECT_FALSE(unfinished.whole());
  EXPECT_EQ(Follow(unfinished, op(1)), call(0));
  EXPECT_EQ(Follow(unfinished, call(0)), std::nullopt);
}

TEST(Follow, StopsAtTheEndsOfALane) {
  Random random(5);
  const Lane lane = DrawLane(random, {.events = 3});
  EXPECT_EQ(NextEvent(lane, 1), 2u);
  EXPECT_EQ(NextEvent(lane, 2), std::nullopt);
  EXPECT_EQ(PreviousEvent(lane, 1), 0u);
  EXPECT_EQ(PreviousEvent(lane, 0), std::nullopt);
}

}  // namespace
}  // namespace trainprof
