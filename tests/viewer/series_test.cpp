#include "viewer/timeline/series.h"

#include <gtest/gtest.h>

#include "tests/support/random_trace.h"

namespace trainprof {
namespace {

TEST(Series, RangesAreThoseOfALinearSearch) {
  for (size_t count : {1, 5, 32, 33, 300, 5000}) {
    Random random(count);
    Series series;
    int64_t at = 0;
    for (size_t i = 0; i < count; ++i) {
      at += random.Between(0, 20);
      series.Add({at}, static_cast<double>(random.Between(-100, 100)));
    }
    series.Finish();
    for (int n = 0; n < 500; ++n) {
      const int64_t begin = random.Between(-10, at + 10);
      const Interval part{{begin}, {begin + random.Between(1, at + 1)}};
      bool any = false;
      Series::Range expected;
      for (size_t i = 0; i < series.size(); ++i) {
        const bool ends_before = i + 1 < series.size() && series.time(i + 1) <= part.begin;
        if (series.time(i) >= part.end || ends_before) continue;
        const double v = series.value(i);
        expected = any ? Series::Range{std::min(expected.low, v), std::max(expected.high, v)}
                       : Series::Range{v, v};
        any = true;
      }
      Series::Range range;
      ASSERT_EQ(series.Within(part, range), any) << count << " values";
      if (any) {
        ASSERT_EQ(range, expected) << count << " values, " << begin;
      }
    }
  }
}

TEST(Series, APeakOfOneNanosecondIsSeen) {
  Series series;
  for (int64_t i = 0; i < 100'000; ++i) series.Add({i * 1000}, i % 7 == 0 ? 1 : 0);
  series.Add({100'000'000}, 50);
  series.Add({100'000'001}, 0);
  series.Finish();
  const std::vector<SeriesColumn> columns =
      ColumnsOf(series, Scale::Of({{-50'000'000}, {150'000'000}}, 200));
  ASSERT_EQ(columns.size(), 150u);  // nothing before the first value
  EXPECT_EQ(columns[0].pixel, 50);
  EXPECT_EQ(columns[100].range, (Series::Range{0, 50}));
  EXPECT_EQ(columns[149].range, (Series::Range{0, 0}));
}

TEST(Series, AmongEqualTimesTheLastCounts) {
  Series series;
  series.Add({5}, 1);
  series.Add({5}, 2);
  series.Finish();
  EXPECT_EQ(series.Extent(), (Series::Range{2, 2}));
  EXPECT_EQ(Series{}.Extent(), Series::Range{});
}

}  // namespace
}  // namespace trainprof
