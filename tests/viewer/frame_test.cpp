#include "viewer/timeline/frame.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/viewer/random_lane.h"

namespace trainprof {
namespace {

constexpr int64_t kMillionSeconds = 1'000'000'000'000'000;

Lane LaneOf(std::initializer_list<Interval> events) {
  Lane lane;
  for (const Interval& e : events) lane.Add(e.begin, e.end, Category::kCompute, Table::kRanges, {});
  lane.Finish();
  return lane;
}

Frame FrameOf(const std::vector<FrameLane>& lanes, const Interval& view, int32_t width = 1600) {
  Frame frame;
  BuildFrame(lanes, view, width, frame);
  return frame;
}

TEST(Frame, AnEventOfTwoPixelsIsExactAndAShorterOneIsFolded) {
  // 10 ns a pixel
  const Lane lane = LaneOf({{{100}, {120}}, {{200}, {219}}, {{500}, {900}}});
  const Frame frame = FrameOf({&lane}, {{0}, {1000}}, 100);
  ASSERT_EQ(frame.rects.size(), 3u);
  EXPECT_EQ(frame.rects[0].event, 0u);
  EXPECT_FLOAT_EQ(frame.rects[0].left, 10);
  EXPECT_FLOAT_EQ(frame.rects[0].right, 12);
  EXPECT_EQ(frame.rects[1].event, kNoEvent);
  EXPECT_EQ(frame.rects[1].shade, 2);  // 19 of 32 ns
  EXPECT_EQ(frame.rects[2].event, 2u);
}

TEST(Frame, ANanosecondBesideAMillionSecondsIsSeen) {
  const Lane lane = LaneOf({{{0}, {1}}, {{kMillionSeconds}, {2 * kMillionSeconds}}});
  const Frame whole = FrameOf({&lane}, {{0}, {2 * kMillionSeconds}});
  ASSERT_EQ(whole.rects.size(), 2u);
  EXPECT_EQ(whole.rects[0].shade, 1);
  EXPECT_LT(whole.rects[0].left, 1);
  EXPECT_EQ(whole.rects[1].event, 1u);
  EXPECT_FLOAT_EQ(whole.rects[1].left, 800);
  // Far from time 0 each nanosecond still has its place.
  const Lane far = LaneOf({{{kMillionSeconds + 3}, {kMillionSeconds + 4}}});
  const Frame close = FrameOf({&far}, {{kMillionSeconds}, {kMillionSeconds + 16}});
  ASSERT_EQ(close.rects.size(), 1u);
  EXPECT_FLOAT_EQ(close.rects[0].left, 300);
  EXPECT_FLOAT_EQ(close.rects[0].right, 400);
}

// 2 % of idle time beside a busy GPU is no lane full of it.
TEST(Frame, AShareThatIsToldByHeightIsAsLowAsItIs) {
  Lane lane;
  for (int64_t at = 0; at < 100'000; at += 100) {
    const int64_t idle = at < 50'000 ? 2 : 50;
    lane.Add({at}, {at + idle}, Category::kDependency, Table::kIdle, {});
  }
  lane.Finish();
  Frame frame;
  BuildFrame(std::vector<FrameLane>{{&lane, true}}, {{0}, {100'000}}, 100, frame);
  ASSERT_FALSE(frame.rects.empty());
  for (const Rect& rect : frame.rects) {
    EXPECT_EQ(rect.shade, kShades);
    if (rect.right < 48) {
      EXPECT_EQ(rect.height, 1) << rect.left;
    }
    if (rect.left > 52 && rect.right < 98) {
      EXPECT_NEAR(rect.height, kHeights / 2, 1) << rect.left;
    }
  }
  for (const Rect& rect : FrameOf({&lane}, {{0}, {100'000}}, 100).rects) {
    EXPECT_EQ(rect.height, kHeights);
  }
}

TEST(Frame, NeitherNothingNorEventsWithoutLengthAreATrap) {
  const Lane empty = LaneOf({});
  const Lane points = LaneOf({{{5}, {5}}, {{5}, {5}}, {{5}, {5}}, {{9}, {9}}});
  const Frame frame = FrameOf({&empty, nullptr, &points}, {{0}, {10}}, 100);
  ASSERT_EQ(frame.rects.size(), 2u);
  EXPECT_EQ(frame.rects[0].lane, 2u);
  EXPECT_EQ(HitTest(points, frame.scale, 55).last, 3u);
  EXPECT_TRUE(HitTest(empty, frame.scale, 55).Empty());
  EXPECT_TRUE(FrameOf({}, {{0}, {1}}).rects.empty());
}

TEST(Frame, TheEdgesOfTimeDoNotOverflow) {
  const Lane lane = LaneOf({{{-kMostViewNs}, {-kMostViewNs}}, {{0}, {4 * (kMostViewNs - 1)}}});
  const Frame frame = FrameOf({&lane}, {{-kMostViewNs}, {kMostViewNs}}, 1);
  EXPECT_EQ(frame.rects.size(), 2u);
}

// As bad as it gets: 2 px events, 1 px of others between them, on as many lanes as a screen has.
TEST(Frame, NeverHoldsMoreThanTwentyThousandRectangles) {
  Lane dense;
  for (int64_t i = 0; i < 200'000; ++i) {
    const int64_t length = i % 2 == 0 ? 2'000 : 800;
    dense.Add({i * 1600}, {i * 1600 + length / 2}, static_cast<Category>(i % 7), Table::kRanges,
              {});
  }
  dense.Finish();
  for (size_t count : {40u, 300u, 5000u, 100'000u}) {
    const std::vector<FrameLane> lanes(count, &dense);
    for (int64_t us : {100, 1600, 4000, 30'000, 320'000}) {
      const Frame frame = FrameOf(lanes, {{1'000'000}, {1'000'000 + us * 1000}});
      ASSERT_LE(frame.rects.size(), kMostRects) << count << " lanes, " << us << " us";
      ASSERT_FALSE(frame.rects.empty());
    }
  }
}

// Each event that is long enough for this frame's scale is there, once, and nothing overlaps.
TEST(Frame, ShowsEachLongEventOnce) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    Random random(seed);
    const Lane lane = DrawLane(random, {.events = 3000, .longest = 2000});
    const int64_t last = lane.interval(lane.size() - 1).end.ns;
    const int64_t begin = random.Between(0, last);
    const Interval view{{begin}, {begin + random.Between(1, last)}};
    const Frame frame = FrameOf({&lane}, view);
    EXPECT_EQ(frame.scale.event_px, 2);
    std::set<uint32_t> expected;
    for (uint32_t i = 0; i < lane.size(); ++i) {
      if (lane.interval(i).Length() >= frame.scale.event_length &&
          !Intersect(lane.interval(i), view).Empty()) {
        expected.insert(i);
      }
    }
    std::set<uint32_t> shown;
    float end = 0;
    for (const Rect& rect : frame.rects) {
      EXPECT_LE(end, rect.left);
      EXPECT_LE(rect.left, rect.right);
      end = rect.right;
      if (rect.event == kNoEvent) continue;
      EXPECT_TRUE(shown.insert(rect.event).second) << "event " << rect.event << " twice";
    }
    EXPECT_EQ(shown, expected) << "seed " << seed;
    EXPECT_LE(end, 1600);
  }
}

}  // namespace
}  // namespace trainprof
