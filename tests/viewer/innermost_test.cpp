// Of nested events the innermost, against a twin that looks at each nanosecond.
#include "viewer/timeline/innermost.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/support/random_trace.h"
#include "trace/build/trace_builder.h"
#include "viewer/navigation/measure.h"
#include "viewer/timeline/line_events.h"

namespace trainprof {
namespace {

struct NestedEvent {
  Interval time;
  uint32_t depth = 0;
  Category category{};
};

constexpr int64_t kEnd = 400;

// Events that nest, touch, have no length, or outlast what they began in.
std::vector<NestedEvent> DrawEvents(Random& random) {
  std::vector<NestedEvent> events;
  const int64_t count = random.Between(1, 40);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin = random.Between(0, kEnd - 1);
    const int64_t length = random.Chance(10) ? 0 : random.Between(0, random.Chance(30) ? 200 : 30);
    events.push_back({{{begin}, {std::min(begin + length, kEnd)}},
                      0,
                      static_cast<Category>(random.Between(0, 3))});
  }
  std::sort(events.begin(), events.end(), [](const NestedEvent& a, const NestedEvent& b) {
    return a.time.begin != b.time.begin ? a.time.begin < b.time.begin : a.time.end > b.time.end;
  });
  DepthPlacer placer;
  for (NestedEvent& event : events) event.depth = placer.Place(event.time);
  return events;
}

// By nanosecond: the event at the greatest depth, or none.
std::vector<int> InnermostTwin(const std::vector<NestedEvent>& events) {
  std::vector<int> on(kEnd, -1);
  for (size_t i = 0; i < events.size(); ++i) {
    for (int64_t t = events[i].time.begin.ns; t < events[i].time.end.ns; ++t) {
      int& best = on[static_cast<size_t>(t)];
      if (best < 0 || events[i].depth > events[static_cast<size_t>(best)].depth) {
        best = static_cast<int>(i);
      }
    }
  }
  return on;
}

Lane MakeInnermost(const std::vector<NestedEvent>& events, bool is_strip) {
  InnermostMaker maker(is_strip);
  uint32_t row = 0;
  for (const NestedEvent& e : events)
    maker.Add(e.time, e.depth, e.category, Table::kRanges, Row{row++});
  return maker.Finish();
}

std::vector<int> EventsOf(const Lane& lane) {
  std::vector<int> on(kEnd, -1);
  TraceTime last{0};
  for (size_t i = 0; i < lane.size(); ++i) {
    EXPECT_FALSE(lane.interval(i).Empty());
    EXPECT_LE(last, lane.interval(i).begin);
    last = lane.interval(i).end;
    for (int64_t t = lane.interval(i).begin.ns; t < last.ns; ++t) {
      on[static_cast<size_t>(t)] = static_cast<int>(Index(lane.row(i)));
    }
  }
  return on;
}

TEST(Innermost, IsWhatATwinSeesAtEachNanosecond) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    Random random(seed);
    const std::vector<NestedEvent> events = DrawEvents(random);
    ASSERT_EQ(EventsOf(MakeInnermost(events, false)), InnermostTwin(events)) << "seed " << seed;
  }
}

// What an outermost event with others inside did by itself is left out, and nothing else.
TEST(Innermost, AStripLeavesOutWhatIsAroundOthers) {
  size_t left_out = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    Random random(seed);
    const std::vector<NestedEvent> events = DrawEvents(random);
    std::vector<int> expected = InnermostTwin(events);
    for (size_t i = 0; i < events.size(); ++i) {
      const auto own = std::count(expected.begin(), expected.end(), static_cast<int>(i));
      if (events[i].depth > 0 || own == events[i].time.Length().ns) continue;
      left_out += static_cast<size_t>(own);
      std::replace(expected.begin(), expected.end(), static_cast<int>(i), -1);
    }
    ASSERT_EQ(EventsOf(MakeInnermost(events, true)), expected) << "seed " << seed;
  }
  EXPECT_GT(left_out, 1000u);
}

// What the loader did while the loop waited for it is a wait for input, at any depth.
TEST(Innermost, AStripShowsTheWaitAndNotWhatIsInsideOfIt) {
  const std::vector<NestedEvent> events = {{{{0}, {100}}, 0, Category::kAnnotation},
                                           {{{10}, {50}}, 1, Category::kInputWait},
                                           {{{10}, {40}}, 2, Category::kAnnotation},
                                           {{{20}, {30}}, 3, Category::kOperator},
                                           {{{60}, {90}}, 1, Category::kOperator}};
  const Lane strip = MakeInnermost(events, true);
  Duration wait;
  for (size_t i = 0; i < strip.size(); ++i) {
    const bool waits = strip.interval(i).begin < TraceTime{50};
    EXPECT_EQ(strip.category(i), waits ? Category::kInputWait : Category::kOperator);
    if (waits) wait += strip.interval(i).Length();
  }
  EXPECT_EQ(wait, Nanoseconds(40));
  const Lane each = MakeInnermost(events, false);
  EXPECT_EQ(TotalsOf(each, {{0}, {100}}).time[static_cast<size_t>(Category::kInputWait)],
            Nanoseconds(10));
}

// The totals of a line: each moment once, whatever is dragged over.
TEST(Measure, OfALineNoMomentCountsTwice) {
  size_t full = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    const std::vector<NestedEvent> events = DrawEvents(random);
    TraceBuilder builder;
    const TrackId thread = builder.FindOrAddThread(builder.FindOrAddProcess(1), 1);
    constexpr const char* kNames[] = {"aten::mm", "forward", "cudaLaunchKernel"};
    for (const NestedEvent& e : events) {
      builder.AddRange(
          {.begin = e.time.begin,
           .end = e.time.end,
           .name = builder.Intern(kNames[static_cast<size_t>(e.category) % 3]),
           .track = thread},
          e.category == Category::kCompute ? RangeKind::kCpuOp : RangeKind::kPythonFunction);
    }
    const Trace trace = std::move(builder).Build();
    const Lines lines({{&trace}});
    LaneStore store(lines);
    const uint32_t line = 1;
    EXPECT_FALSE(TotalsOf(store, line, {{0}, {kEnd}})) << "its lanes are not asked for";
    const std::vector<Lane>& lanes = store.LanesOf(line);
    for (int n = 0; n < 20; ++n) {
      const int64_t begin = random.Between(-10, kEnd);
      const Interval range{{begin}, {begin + random.Between(0, kEnd / 2)}};
      CategoryTotals expected{};
      for (int64_t t = range.begin.ns; t < range.end.ns; ++t) {
        for (size_t depth = lanes.size(); depth-- > 0;) {
          const size_t i = lanes[depth].FirstEndingAfter({t});
          if (i == lanes[depth].size() || !lanes[depth].interval(i).Contains({t})) continue;
          expected[static_cast<size_t>(lanes[depth].category(i))] += Nanoseconds(1);
          break;
        }
      }
      size_t touching = 0;
      for (const Lane& lane : lanes) touching += TotalsOf(lane, range).events;
      const std::optional<RangeTotals> totals = TotalsOf(store, line, range);
      ASSERT_TRUE(totals);
      EXPECT_EQ(totals->time, expected) << "seed " << seed;
      EXPECT_EQ(totals->events, touching);
      EXPECT_LE(totals->Total(), std::max(range.Length(), Duration{}));
      full += totals->Total() == range.Length();
    }
  }
  EXPECT_GT(full, 100u) << "the bound was never reached";
}

}  // namespace
}  // namespace trainprof
