// Recording windows: what is inside is whole, what is outside is a gap.
#include <gtest/gtest.h>

#include "tests/collectors/recorded_run.h"

namespace trainprof::testing {
namespace {

TEST(Window, StepsAreExactlyThoseAskedFor) {
  const Trace trace = RecordWith("steps=3:5", {"steps", "10", "2"});
  EXPECT_EQ(RangeNames(trace),
            (std::vector<std::string>{"step", "work", "between", "step", "work", "between"}));
  EXPECT_EQ(trace.quality.CountOf("cut_by_window"), 0) << "training ended outside the window";
  EXPECT_EQ(trace.quality.CountOf("unmatched_pop"), 0);
  EXPECT_EQ(trace.quality.CountOf("open_range_at_end"), 0);
  ASSERT_EQ(trace.gaps.size(), 2u);
  for (const Gap& gap : trace.gaps) EXPECT_EQ(trace.Text(gap.reason), "window");
  EXPECT_GE(trace.gaps[0].interval.Length(), Milliseconds(3 * 2));
  EXPECT_LE(trace.gaps[0].interval.end, trace.extent.begin);
  EXPECT_GE(trace.gaps[1].interval.begin, trace.extent.end);
  EXPECT_GE(trace.gaps[1].interval.Length(), Milliseconds(5 * 2));
}

TEST(Window, WithoutAnEndRunsToTheLastStep) {
  const Trace trace = RecordWith("steps=8:", {"steps", "10"});
  EXPECT_EQ(CountRanges(trace, "step"), 2);
  EXPECT_EQ(trace.gaps.size(), 1u);
  EXPECT_EQ(trace.quality.CountOf("cut_by_window"), 1) << "training began before it, ended in it";
}

TEST(Window, BeyondTheLastStepRecordsNothingButTheGap) {
  const Trace trace = RecordWith("steps=100:110", {"steps", "10", "1"});
  EXPECT_EQ(trace.ranges.size(), 0u);
  ASSERT_EQ(trace.gaps.size(), 1u);
  EXPECT_GE(trace.gaps[0].interval.Length(), Milliseconds(10));
}

TEST(Window, DelayAndDurationAreFromTheFirstEvent) {
  const Trace trace = RecordWith("delay_ms=200;duration_ms=400", {"steps", "100", "10"});
  const int64_t steps = CountRanges(trace, "step");
  EXPECT_GE(steps, 1);  // a busy machine may let few of them begin
  EXPECT_LE(steps, 41);
  ASSERT_EQ(trace.gaps.size(), 2u);
  // The gap is written a moment after the event from which the delay counts.
  EXPECT_GE(trace.gaps[0].interval.Length(), Milliseconds(100));
  EXPECT_GE(trace.gaps[1].interval.begin - trace.gaps[0].interval.end, Milliseconds(10));
}

TEST(Window, CaptureRecordsOnlyWhileItsRangeIsOpen) {
  const Trace trace = RecordWith("capture=capture", {"capture"});
  EXPECT_EQ(CountRanges(trace, "capture"), 2);
  EXPECT_EQ(CountRanges(trace, "inside"), 2);
  EXPECT_EQ(trace.ranges.size(), 4u);
  EXPECT_EQ(trace.gaps.size(), 3u);
}

TEST(Window, MalformedOptionsRecordEverything) {
  for (const char* options :
       {"steps=", "steps=5", "steps=5:3", "steps=a:b", "delay_ms=x", "duration_ms=-1", ";;;=;",
        "steps=99999999999999999999:", "unknown=1"}) {
    const Trace trace = RecordWith(options, {"steps", "3"});
    EXPECT_EQ(CountRanges(trace, "step"), 3) << options;
    EXPECT_TRUE(trace.gaps.empty()) << options;
  }
}

}  // namespace
}  // namespace trainprof::testing
