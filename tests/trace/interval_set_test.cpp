// Interval sets: the laws by example, and every operation against a bitmap of nanoseconds.
#include "trace/base/interval_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bitset>
#include <random>

#include "trace/base/near.h"

namespace trainprof {
namespace {

constexpr int64_t kUniverse = 96;  // ns; small, so that touching and nesting happen all the time
using Bitmap = std::bitset<kUniverse>;

Interval Make(int64_t begin, int64_t end) { return {TraceTime{begin}, TraceTime{end}}; }

IntervalSet Set(std::vector<Interval> intervals) {
  return IntervalSet::Union(std::move(intervals));
}

std::vector<Interval> Listed(const IntervalSet& set) {
  return {set.intervals().begin(), set.intervals().end()};
}

Bitmap BitsOf(std::span<const Interval> intervals) {
  Bitmap bits;
  for (const Interval& interval : intervals) {
    for (int64_t t = interval.begin.ns; t < interval.end.ns; ++t) bits.set(static_cast<size_t>(t));
  }
  return bits;
}

// The only sorted, disjoint, non-touching list that covers exactly these bits.
std::vector<Interval> RunsOf(const Bitmap& bits) {
  std::vector<Interval> runs;
  for (int64_t t = 0; t < kUniverse; ++t) {
    if (!bits[static_cast<size_t>(t)]) continue;
    if (!runs.empty() && runs.back().end.ns == t) {
      runs.back().end.ns = t + 1;
    } else {
      runs.push_back(Make(t, t + 1));
    }
  }
  return runs;
}

std::vector<Interval> RandomIntervals(std::mt19937_64& random) {
  std::uniform_int_distribution<int64_t> at(0, kUniverse);
  std::uniform_int_distribution<int> count(0, 12);
  std::vector<Interval> intervals;
  // One in some is empty or runs backwards: both count as empty.
  for (int i = count(random); i > 0; --i) {
    const int64_t begin = at(random);
    const int64_t longest = std::min(begin + 14, kUniverse);
    const int64_t end =
        std::uniform_int_distribution(std::max<int64_t>(begin - 2, 0), longest)(random);
    intervals.push_back(Make(begin, end));
  }
  return intervals;
}

TEST(Interval, IsHalfOpen) {
  const Interval interval = Make(10, 20);
  EXPECT_TRUE(interval.Contains(TraceTime{10}));
  EXPECT_FALSE(interval.Contains(TraceTime{20}));
  EXPECT_EQ(interval.Length().ns, 10);
  EXPECT_TRUE(Make(10, 10).Empty());
  EXPECT_TRUE(Make(10, 9).Empty());
}

TEST(Interval, TouchingIntervalsHaveNoCommonPart) {
  EXPECT_TRUE(Intersect(Make(0, 10), Make(10, 20)).Empty());
  EXPECT_TRUE(Intersect(Make(0, 10), Make(15, 20)).Empty());
  EXPECT_EQ(Intersect(Make(0, 10), Make(5, 20)), Make(5, 10));
}

TEST(IntervalSet, MergesTouchingIntervals) {
  EXPECT_EQ(Listed(Set({Make(10, 20), Make(0, 10)})), std::vector{Make(0, 20)});
}

TEST(IntervalSet, MergesNestedAndOverlappingIntervals) {
  EXPECT_EQ(Listed(Set({Make(0, 50), Make(5, 20), Make(40, 60), Make(70, 80)})),
            (std::vector{Make(0, 60), Make(70, 80)}));
}

TEST(IntervalSet, IgnoresEmptyAndBackwardIntervals) {
  EXPECT_TRUE(Set({Make(5, 5), Make(9, 3)}).Empty());
  EXPECT_EQ(Listed(Set({Make(5, 5), Make(7, 9), Make(20, 10)})), std::vector{Make(7, 9)});
}

TEST(IntervalSet, OfNothingIsEmptyAndTotalsZero) {
  EXPECT_TRUE(Set({}).Empty());
  EXPECT_EQ(Set({}).Total().ns, 0);
  EXPECT_EQ(Set({}), IntervalSet());
}

TEST(IntervalSet, ComplementIsTheIdleTimeWithinAWindow) {
  const IntervalSet busy = Set({Make(0, 20), Make(30, 40)});
  EXPECT_EQ(Listed(busy.Complement(Make(0, 50))), (std::vector{Make(20, 30), Make(40, 50)}));
  EXPECT_EQ(Listed(busy.Complement(Make(5, 15))), std::vector<Interval>{});
  EXPECT_EQ(Listed(IntervalSet().Complement(Make(5, 15))), std::vector{Make(5, 15)});
  EXPECT_TRUE(busy.Complement(Make(50, 50)).Empty());
}

TEST(IntervalSet, OneCutMayCrossManyIntervals) {
  const IntervalSet set = Set({Make(0, 10), Make(20, 30), Make(40, 50)});
  EXPECT_EQ(Listed(set.Minus(Set({Make(5, 45)}))), (std::vector{Make(0, 5), Make(45, 50)}));
  EXPECT_EQ(Listed(Set({Make(0, 50)}).Minus(set)), (std::vector{Make(10, 20), Make(30, 40)}));
}

TEST(IntervalSet, WorksAtTheEndsOfTheClock) {
  const int64_t far = INT64_MAX;
  const IntervalSet set = Set({Make(far - 10, far), Make(-5, 5)});
  EXPECT_EQ(set.Total().ns, 20);
  EXPECT_EQ(set.TotalWithin(Make(0, far)).ns, 15);
  EXPECT_EQ(Listed(set.Clip(Make(far - 3, far))), std::vector{Make(far - 3, far)});
}

TEST(IntervalSetTwin, AgreesWithABitmapOnRandomInput) {
  std::mt19937_64 random(20240611);
  for (int round = 0; round < 5000; ++round) {
    const std::vector<Interval> raw_a = RandomIntervals(random);
    const std::vector<Interval> raw_b = RandomIntervals(random);
    const Bitmap a = BitsOf(raw_a);
    const Bitmap b = BitsOf(raw_b);
    const IntervalSet set_a = Set(raw_a);
    const IntervalSet set_b = Set(raw_b);
    ASSERT_EQ(Listed(set_a), RunsOf(a)) << "round " << round;
    ASSERT_EQ(set_a.Total().ns, static_cast<int64_t>(a.count())) << "round " << round;
    ASSERT_EQ(Listed(set_a.UnionWith(set_b)), RunsOf(a | b)) << "round " << round;
    ASSERT_EQ(Listed(IntervalSet(set_a).UnionWith(set_b)), RunsOf(a | b)) << "round " << round;
    ASSERT_EQ(set_a.TotalWithin(set_b), set_a.IntersectWith(set_b).Total()) << "round " << round;
    ASSERT_EQ(Listed(set_a.IntersectWith(set_b)), RunsOf(a & b)) << "round " << round;
    ASSERT_EQ(Listed(set_a.Minus(set_b)), RunsOf(a & ~b)) << "round " << round;
  }
}

TEST(IntervalSetTwin, AgreesWithABitmapOnRandomWindows) {
  std::mt19937_64 random(77);
  std::uniform_int_distribution<int64_t> at(0, kUniverse);
  for (int round = 0; round < 5000; ++round) {
    const std::vector<Interval> raw = RandomIntervals(random);
    const IntervalSet set = Set(raw);
    const Bitmap bits = BitsOf(raw);
    const Interval window = Make(at(random), at(random));  // backwards half the time: empty
    const Bitmap inside = BitsOf(std::span(&window, 1));
    ASSERT_EQ(Listed(set.Clip(window)), RunsOf(bits & inside)) << "round " << round;
    ASSERT_EQ(Listed(set.Complement(window)), RunsOf(inside & ~bits)) << "round " << round;
    ASSERT_EQ(set.TotalWithin(window).ns, static_cast<int64_t>((bits & inside).count()))
        << "round " << round;
  }
}

TEST(PartitionNear, FindsFromAnywhereWhatPartitionPointFinds) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<int> sorted(random() % 40);
    for (int& value : sorted) value = static_cast<int>(random() % 50);
    std::sort(sorted.begin(), sorted.end());
    for (size_t near = 0; near <= sorted.size(); ++near) {
      for (int limit = -1; limit <= 51; ++limit) {
        const auto is_before = [&](int value) { return value < limit; };
        const auto found = PartitionNear(sorted.begin(), sorted.end(),
                                         sorted.begin() + static_cast<ptrdiff_t>(near), is_before);
        ASSERT_EQ(found, std::partition_point(sorted.begin(), sorted.end(), is_before))
            << "from " << near << " of " << sorted.size() << " for " << limit;
      }
    }
  }
}

TEST(IntervalReader, TotalsAreThoseOfTheSetInWhateverOrderTheyAreAskedFor) {
  std::mt19937 random(2);
  const auto time = [&] { return TraceTime{static_cast<int64_t>(random() % 1000)}; };
  for (int round = 0; round < 100; ++round) {
    std::vector<Interval> intervals;
    for (size_t i = random() % 30; i > 0; --i) {
      const TraceTime begin = time();
      intervals.push_back({begin, begin + Duration{static_cast<int64_t>(random() % 30)}});
    }
    const IntervalSet set = IntervalSet::Union(intervals);
    IntervalReader reader(set);
    for (int i = 0; i < 100; ++i) {
      const Interval asked{time(), time()};  // empty ones, too
      Duration total;
      const Interval* before = nullptr;
      for (const Interval& interval : set.intervals()) {
        total += std::max(Duration{}, Intersect(interval, asked).Length());
        if (interval.begin < asked.begin) before = &interval;
      }
      ASSERT_EQ(set.TotalWithin(asked), total);
      ASSERT_EQ(reader.TotalWithin(asked), total);
      ASSERT_EQ(reader.LastBefore(asked.begin), before);
    }
  }
}

TEST(IntervalUnion, IsThatOfAllWhereTheyComeInOrder) {
  std::mt19937 random(3);
  for (int round = 0; round < 100; ++round) {
    std::vector<Interval> intervals;
    TraceTime begin;
    for (size_t i = random() % 30; i > 0; --i) {
      begin = begin + Duration{static_cast<int64_t>(random() % 20)};
      const Duration length{static_cast<int64_t>(random() % 30)};  // 0, too
      intervals.push_back({begin, begin + length});
    }
    IntervalUnion all;
    for (const Interval& interval : intervals) all.Add(interval);
    ASSERT_EQ(std::move(all).Take(), IntervalSet::Union(intervals));
  }
}

}  // namespace
}  // namespace trainprof
