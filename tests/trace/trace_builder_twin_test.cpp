// The builder against a quadratic twin on random input: order, runs, closest parents, launches.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <tuple>

#include "tests/support/sanitized.h"
#include "trace/build/trace_builder.h"

namespace trainprof {
namespace {

// Short times, so that equal begins, equal ends, empty and crossing ranges all occur.
constexpr int64_t kLatest = 60;
constexpr int kTracks = 4;
constexpr int kRounds = 2'000;

struct Random {
  std::mt19937_64 engine;
  int64_t Between(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(engine);
  }
};

Event RandomEvent(Random& random, StringId name) {
  const int64_t begin = random.Between(0, kLatest);
  const int64_t end = begin + random.Between(random.Between(0, 19) == 0 ? -5 : 0, 25);
  return {.begin = TraceTime{begin},
          .end = TraceTime{end},
          .name = name,
          .track = TrackId{static_cast<uint32_t>(random.Between(0, kTracks - 1))}};
}

// A row of the twin. The name is unique: it tells which event a sorted row came from.
using TwinRow = std::tuple<uint32_t, int64_t, int64_t, uint32_t>;  // track, begin, -end, arrival

struct Twin {
  std::vector<TwinRow> ranges;
  int64_t negative = 0;

  void Add(const Event& event) {
    const int64_t end = std::max(event.begin.ns, event.end.ns);
    negative += event.end < event.begin;
    ranges.emplace_back(Index(event.track), event.begin.ns, -end, ranges.size());
  }
};

// r lies in q, and q stands before r. An empty r at q's end is outside: [begin, end) is half-open.
bool Encloses(const RangeTable& t, uint32_t q, uint32_t r) {
  return t.track[q] == t.track[r] && t.begin[q] <= t.begin[r] && t.end(r) <= t.end(q) &&
         t.end(q) > t.begin[r];
}

bool Crosses(const RangeTable& t, uint32_t q, uint32_t r) {
  return t.track[q] == t.track[r] && t.begin[r] < t.end(q) && t.end(q) < t.end(r);
}

void ExpectOrderAndRuns(const Trace& trace, std::vector<TwinRow> twin) {
  std::sort(twin.begin(), twin.end());
  const RangeTable& ranges = trace.ranges;
  ASSERT_EQ(ranges.size(), twin.size());
  uint32_t row = 0;
  for (uint32_t track = 0; track < kTracks; ++track) {
    const auto [first, last] = ranges.rows_of(TrackId{track});
    ASSERT_EQ(first, row);
    for (; row < last; ++row) {
      const TwinRow here{Index(ranges.track[row]), ranges.begin[row].ns, -ranges.end(row).ns,
                         static_cast<uint32_t>(ranges.name[row]) - 1};
      ASSERT_EQ(here, twin[row]);
      ASSERT_EQ(Index(ranges.track[row]), track);
    }
  }
  ASSERT_EQ(row, ranges.size());
}

void ExpectClosestParents(const Trace& trace) {
  const RangeTable& ranges = trace.ranges;
  bool any_crossing = false;
  for (uint32_t r = 0; r < ranges.size(); ++r) {
    Row closest = kNoRow;  // the last to begin of those that enclose
    for (uint32_t q = 0; q < r; ++q) {
      if (Encloses(ranges, q, r)) closest = Row{q};
      any_crossing |= Crosses(ranges, q, r);
    }
    ASSERT_EQ(ranges.parent[r], closest) << "row " << r;
  }
  ASSERT_EQ(trace.quality.CountOf("overlapping_ranges") > 0, any_crossing);
}

TEST(TraceBuilderTwin, AgreesOnOrderRunsAndParents) {
  Random random{std::mt19937_64(5)};
  for (int round = 0; round < kRounds; ++round) {
    TraceBuilder builder;
    const ProcessId process = builder.FindOrAddProcess(1);
    for (int tid = 0; tid < kTracks; ++tid) builder.FindOrAddThread(process, tid);
    Twin twin;
    const int64_t count = random.Between(0, 60);
    for (int64_t i = 0; i < count; ++i) {
      const Event event = RandomEvent(random, builder.Intern("r" + std::to_string(i)));
      builder.AddRange(event, RangeKind::kCpuOp);
      twin.Add(event);
    }
    const Trace trace = std::move(builder).Build();
    ASSERT_EQ(trace.quality.CountOf("negative_duration"), twin.negative);
    ASSERT_NO_FATAL_FAILURE(ExpectOrderAndRuns(trace, twin.ranges)) << "round " << round;
    ASSERT_NO_FATAL_FAILURE(ExpectClosestParents(trace)) << "round " << round;
  }
}

// Nested as real threads nest: no crossing may be claimed.
TEST(TraceBuilderTwin, FindsTheParentsOfProperlyNestedRanges) {
  Random random{std::mt19937_64(6)};
  for (int round = 0; round < testing::Rounds(200); ++round) {
    TraceBuilder builder;
    const TrackId thread = builder.FindOrAddThread(builder.FindOrAddProcess(1), 1);
    std::vector<Interval> todo = {{TraceTime{0}, TraceTime{100'000}}};
    std::vector<Interval> all;
    while (!todo.empty() && all.size() < 300) {
      const Interval outer = todo.back();
      todo.pop_back();
      all.push_back(outer);
      const int64_t cut = random.Between(outer.begin.ns, outer.end.ns);
      if (outer.Length().ns < 8) continue;
      todo.push_back({outer.begin, TraceTime{cut}});
      todo.push_back({TraceTime{cut}, outer.end});
    }
    std::shuffle(all.begin(), all.end(), random.engine);
    for (const Interval& i : all) {
      builder.AddRange({.begin = i.begin, .end = i.end, .track = thread}, RangeKind::kCpuOp);
    }
    const Trace trace = std::move(builder).Build();
    ASSERT_EQ(trace.quality.CountOf("overlapping_ranges"), 0);
    ASSERT_NO_FATAL_FAILURE(ExpectClosestParents(trace)) << "round " << round;
  }
}

// So many rows that tables are sorted on several threads.
TEST(TraceBuilderTwin, AgreesOnTheOrderOfLargeTables) {
  Random random{std::mt19937_64(8)};
  TraceBuilder builder;
  const ProcessId process = builder.FindOrAddProcess(1);
  for (int tid = 0; tid < kTracks; ++tid) builder.FindOrAddThread(process, tid);
  builder.Expect({.ranges = 1000, .calls = 50'000, .device_ops = 10});
  Twin ranges;
  for (uint32_t i = 0; i < 40'000; ++i) {
    Event event = RandomEvent(random, builder.Intern("r" + std::to_string(i)));
    event.begin.ns += 10 * (i / 100);
    event.end.ns += 10 * (i / 100);
    builder.AddRange(event, RangeKind::kCpuOp);
    builder.AddApi(event, ApiKind::kLaunch, i);
    builder.AddDeviceOp(event, DeviceOpKind::kKernel, CopyDirection::kUnknown, 0, i);
    ranges.Add(event);
  }
  const Trace trace = std::move(builder).Build();
  ASSERT_NO_FATAL_FAILURE(ExpectOrderAndRuns(trace, ranges.ranges));
  for (const EventColumns* table : {static_cast<const EventColumns*>(&trace.api),
                                    static_cast<const EventColumns*>(&trace.device_ops)}) {
    EXPECT_EQ(table->begin, trace.ranges.begin);
    EXPECT_EQ(table->duration, trace.ranges.duration);
    EXPECT_EQ(table->name, trace.ranges.name);
    EXPECT_EQ(table->track_begin, trace.ranges.track_begin);
  }
  for (uint32_t op = 0; op < trace.device_ops.size(); ++op) {
    ASSERT_EQ(trace.device_ops.launch[op], Row{op});
    ASSERT_EQ(trace.device_ops.correlation[op], trace.api.correlation[op]);
  }
}

TEST(TraceBuilderTwin, ManyAtOnceAreTheSameAsOneByOne) {
  Random random{std::mt19937_64(9)};
  for (int round = 0; round < 200; ++round) {
    TraceBuilder one_by_one;
    TraceBuilder at_once;
    for (TraceBuilder* builder : {&one_by_one, &at_once}) {
      const ProcessId process = builder->FindOrAddProcess(1);
      for (int tid = 0; tid < kTracks; ++tid) builder->FindOrAddThread(process, tid);
    }
    for (int64_t groups = random.Between(1, 6); groups > 0; --groups) {
      const Event common = RandomEvent(random, StringId{0});
      std::vector<EventTimes> times;
      for (int64_t i = random.Between(0, 8); i > 0; --i) {
        Event event = RandomEvent(random, StringId{0});
        if (random.Between(0, 30) == 0) event.end.ns = INT64_MAX;
        times.push_back({event.begin, event.end, random.Between(-1, 20)});
        event.track = common.track;
        one_by_one.AddApi(event, ApiKind::kCopy, times.back().correlation);
        one_by_one.AddDeviceOp(event, DeviceOpKind::kCopy, CopyDirection::kPeer, 7,
                               times.back().correlation);
      }
      at_once.AddApis({.name = common.name, .track = common.track}, ApiKind::kCopy, times);
      at_once.AddDeviceOps({.name = common.name, .track = common.track}, DeviceOpKind::kCopy,
                           CopyDirection::kPeer, 7, times);
    }
    const Trace a = std::move(one_by_one).Build();
    const Trace b = std::move(at_once).Build();
    ASSERT_EQ(a.api, b.api) << "round " << round;
    ASSERT_EQ(a.device_ops, b.device_ops) << "round " << round;
    ASSERT_EQ(a.quality, b.quality) << "round " << round;
  }
}

// The first of the widest calls of the operation's correlation, in its process where `by_process`.
Row LaunchOf(const Trace& trace, uint32_t op, bool by_process) {
  const auto process_of = [&](TrackId track) { return trace.tracks[Index(track)].process; };
  Row widest = kNoRow;
  Duration width{-1};
  if (trace.device_ops.correlation[op] == kNoCorrelation) return kNoRow;
  for (uint32_t call = 0; call < trace.api.size(); ++call) {
    if (trace.api.correlation[call] != trace.device_ops.correlation[op]) continue;
    if (by_process && process_of(trace.api.track[call]) != process_of(trace.device_ops.track[op])) {
      continue;
    }
    const Duration here = trace.api.interval(Row{call}).Length();
    if (here > width) std::tie(widest, width) = std::pair(Row{call}, here);
  }
  return widest;
}

// Ids that count up, that lie far apart, and at the ends of what there is; a recording's processes
// use the same ones.
TEST(TraceBuilderTwin, AgreesOnLaunches) {
  Random random{std::mt19937_64(7)};
  for (int round = 0; round < kRounds; ++round) {
    const bool is_recording = round % 2 == 0;
    TraceBuilder builder;
    builder.trace().source = is_recording ? SourceKind::kRecording : SourceKind::kKineto;
    for (int tid = 0; tid < kTracks; ++tid) {
      builder.FindOrAddThread(builder.FindOrAddProcess(is_recording ? tid % 2 : 1), tid);
    }
    // 4: ids of one place in its row; 300: of several pages.
    const int64_t steps[] = {1, int64_t{1} << 58, 4, 1'000'003, 300};
    const int64_t step = steps[round % std::size(steps)];
    const auto correlation = [&] {
      if (random.Between(0, 5) == 0) return kNoCorrelation;
      return round % 7 == 0 && random.Between(0, 9) == 0 ? INT64_MAX
                                                         : random.Between(-1, 12) * step;
    };
    for (int64_t i = random.Between(0, 20); i > 0; --i) {
      builder.AddApi(RandomEvent(random, kEmptyString), ApiKind::kLaunch, correlation());
      builder.AddDeviceOp(RandomEvent(random, kEmptyString), DeviceOpKind::kKernel,
                          CopyDirection::kUnknown, 0, correlation());
    }
    const Trace trace = std::move(builder).Build();
    int64_t alone = 0;
    for (uint32_t op = 0; op < trace.device_ops.size(); ++op) {
      const Row launch = LaunchOf(trace, op, is_recording);
      ASSERT_EQ(trace.device_ops.launch[op], launch) << "round " << round;
      alone += launch == kNoRow;
    }
    ASSERT_EQ(trace.quality.CountOf("kernel_without_launch"), alone) << "round " << round;
  }
}

}  // namespace
}  // namespace trainprof
