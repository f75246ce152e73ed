#include "viewer/timeline/lane.h"

#include <gtest/gtest.h>

#include "tests/viewer/random_lane.h"

namespace trainprof {
namespace {

TEST(Lane, FindsEventsByTimeAsALinearSearchDoes) {
  Random random(1);
  const Lane lane = DrawLane(random, {.events = 700});
  const int64_t last = lane.interval(lane.size() - 1).end.ns;
  for (int n = 0; n < 3000; ++n) {
    const TraceTime t{random.Between(-10, last + 10)};
    const auto from = static_cast<size_t>(random.Between(0, 700));
    size_t ending = from;
    while (ending < lane.size() && lane.interval(ending).end <= t &&
           lane.interval(ending).begin < t) {
      ++ending;
    }
    size_t beginning = from;
    while (beginning < lane.size() && lane.interval(beginning).begin < t) ++beginning;
    ASSERT_EQ(lane.FirstEndingAfter(t, from), ending) << t.ns << " from " << from;
    ASSERT_EQ(lane.FirstBeginningAt(t, from), beginning) << t.ns << " from " << from;
  }
}

TEST(Lane, FindsTheNextLongEventAsALinearSearchDoes) {
  for (size_t events : {1, 63, 64, 65, 512, 513, 5000, 40'000}) {
    Random random(events);
    const Lane lane = DrawLane(random, {.events = events});
    for (int n = 0; n < 300; ++n) {
      const auto from = static_cast<size_t>(random.Between(0, static_cast<int64_t>(events)));
      const Duration least{random.Between(1, 900)};
      size_t expected = from;
      while (expected < lane.size() && lane.interval(expected).Length() < least) ++expected;
      ASSERT_EQ(lane.NextLasting(least, from), expected) << events << " events, from " << from;
    }
  }
}

TEST(Lane, SumsAsALinearSumDoes) {
  Random random(3);
  const Lane lane = DrawLane(random, {.events = 1000, .categories = 16});
  for (int n = 0; n < 2000; ++n) {
    const int64_t last = lane.interval(lane.size() - 1).end.ns;
    const TraceTime begin{random.Between(0, last)};
    const Interval part{begin, begin + Duration{random.Between(0, last)}};
    const size_t first = lane.FirstEndingAfter(part.begin);
    CategoryTotals expected{};
    for (size_t i = 0; i < lane.size(); ++i) {
      const Interval inside = Intersect(lane.interval(i), part);
      if (!inside.Empty()) expected[static_cast<size_t>(lane.category(i))] += inside.Length();
    }
    ASSERT_EQ(lane.TotalsWithin(part, first, lane.FirstBeginningAt(part.end, first)), expected);
  }
}

TEST(Lane, AnEmptyOneAnswersToo) {
  Lane lane;
  lane.Finish();
  EXPECT_EQ(lane.FirstEndingAfter({5}), 0u);
  EXPECT_EQ(lane.FirstBeginningAt({5}), 0u);
  EXPECT_EQ(lane.NextLasting({1}, 0), 0u);
}

int FinestShift(const Lane& lane) {
  int shift = 0;
  while (shift < 62 && !lane.pyramid().Has(shift)) ++shift;
  return shift;
}

TEST(Pyramid, TakesAtMostAQuarterMegabyteALane) {
  Random random(4);
  const Lane lane = DrawLane(random, {.events = 600'000});
  EXPECT_LE(lane.pyramid().size_bytes(), (size_t{256} << 10) + 4096);
  EXPECT_LE(FinestShift(lane), 10);
}

TEST(Pyramid, SmallLanesHaveFewBins) {
  Random random(5);
  const Lane lane = DrawLane(random, {.events = 1000, .longest = 1'000'000});
  EXPECT_LE(lane.pyramid().size_bytes(), 1000 * sizeof(Column) + 4096);
}

// A recording of hours has device detail for seconds every few minutes.
TEST(Pyramid, PausesDoNotCoarsenIt) {
  Random even(6);
  Random bursts(6);
  const Lane dense = DrawLane(even, {.events = 100'000});
  Lane sparse;
  for (size_t i = 0; i < dense.size(); ++i) {
    const Duration pauses = Seconds(300 * static_cast<int64_t>(i / 1000));
    const Interval e = dense.interval(i);
    sparse.Add(e.begin + pauses, e.end + pauses, dense.category(i), Table::kRanges, {});
  }
  sparse.Finish();
  EXPECT_LE(FinestShift(sparse), FinestShift(dense) + 1);
  EXPECT_LE(sparse.pyramid().size_bytes(), (size_t{256} << 10) + 4096);
}

TEST(Pyramid, OneVeryLongEventDoesNotCoarsenIt) {
  Lane lane;
  for (int64_t i = 0; i < 10'000; ++i) {
    const int64_t at = i * 100 + (i > 5000 ? 1'000'000'000'000'000 : 0);
    const int64_t length = i == 5000 ? 1'000'000'000'000'000 : 60;
    lane.Add({at}, {at + length}, Category::kCompute, Table::kRanges, {});
  }
  lane.Finish();
  EXPECT_LE(FinestShift(lane), 10);
}

TEST(MakeColumn, TheFirstOfEquallyLongCategoriesWins) {
  CategoryTotals totals{};
  totals[3] = totals[5] = Nanoseconds(10);
  EXPECT_EQ(MakeColumn(totals, Category::kOther, Nanoseconds(40)), (Column{128, Category{3}}));
}

TEST(MakeColumn, EventsWithoutLengthAreStillSeen) {
  EXPECT_EQ(MakeColumn(CategoryTotals{}, Category::kSync, Nanoseconds(40)),
            (Column{1, Category::kSync}));
  CategoryTotals one{};
  one[2] = Nanoseconds(1);
  EXPECT_EQ(MakeColumn(one, Category::kSync, Seconds(1'000'000)), (Column{1, Category::kCopy}));
}

}  // namespace
}  // namespace trainprof
