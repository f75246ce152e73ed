// The builder's promises by example: order, parents, launches, repairs, rebasing.
#include "trace/build/trace_builder.h"

#include <gtest/gtest.h>

#include <limits>

namespace trainprof {
namespace {

Event At(int64_t begin, int64_t end, TrackId track = TrackId{0}) {
  return {.begin = TraceTime{begin}, .end = TraceTime{end}, .track = track};
}

struct Fixture {
  TraceBuilder builder;
  ProcessId process = builder.FindOrAddProcess(4711);
  TrackId thread = builder.FindOrAddThread(process, 4711);

  void Range(int64_t begin, int64_t end) {
    builder.AddRange(At(begin, end, thread), RangeKind::kCpuOp);
  }
  Trace Build(bool rebase = false) { return std::move(builder).Build(rebase); }
};

std::vector<int> Parents(const Trace& trace) {
  std::vector<int> parents;
  for (Row row : trace.ranges.parent) parents.push_back(row == kNoRow ? -1 : static_cast<int>(row));
  return parents;
}

TEST(TraceBuilder, FindsWhatItAddedBefore) {
  TraceBuilder builder;
  const ProcessId a = builder.FindOrAddProcess(10);
  const ProcessId b = builder.FindOrAddProcess(-1);
  EXPECT_NE(a, b);
  EXPECT_EQ(builder.FindOrAddProcess(10), a);
  EXPECT_EQ(builder.FindOrAddThread(a, 7), builder.FindOrAddThread(a, 7));
  EXPECT_NE(builder.FindOrAddThread(a, 7), builder.FindOrAddThread(b, 7));
  EXPECT_EQ(builder.FindOrAddDevice(0), builder.FindOrAddDevice(0));
  EXPECT_EQ(builder.trace().tracks.size(), 2u);
}

TEST(TraceBuilder, AStreamKnowsItsDevice) {
  TraceBuilder builder;
  const ProcessId process = builder.FindOrAddProcess(0);
  const TrackId stream = builder.FindOrAddStream(process, 3, 7);
  EXPECT_EQ(builder.FindOrAddStream(process, 3, 7), stream);
  EXPECT_EQ(builder.track(stream).kind, TrackKind::kStream);
  EXPECT_EQ(builder.device(builder.track(stream).device).id, 3);
}

TEST(TraceBuilder, OfNothingIsAnEmptyTrace) {
  const Trace trace = TraceBuilder().Build(true);
  EXPECT_EQ(trace.ranges.size(), 0u);
  EXPECT_TRUE(trace.extent.Empty());
  EXPECT_EQ(trace.base_ns, 0);
  EXPECT_TRUE(trace.quality.items().empty());
}

TEST(TraceBuilder, SortsAParentBeforeItsChildrenWhateverTheOrderOfArrival) {
  Fixture f;
  f.Range(5, 10);
  f.Range(0, 10);
  f.Range(0, 100);
  f.Range(20, 20);
  const Trace trace = f.Build();
  EXPECT_EQ(trace.ranges.interval(Row{0}), (Interval{TraceTime{0}, TraceTime{100}}));
  EXPECT_EQ(trace.ranges.interval(Row{1}), (Interval{TraceTime{0}, TraceTime{10}}));
  EXPECT_EQ(Parents(trace), (std::vector{-1, 0, 1, 0}));
}

TEST(TraceBuilder, KeepsTheOrderOfArrivalOfEqualRanges) {
  Fixture f;
  for (const char* name : {"outer", "middle", "inner"}) {
    Event event = At(0, 10, f.thread);
    event.name = f.builder.Intern(name);
    f.builder.AddRange(event, RangeKind::kCpuOp);
  }
  f.Range(-1, 0);
  const Trace trace = f.Build();
  EXPECT_EQ(trace.Text(trace.ranges.name[1]), "outer");
  EXPECT_EQ(trace.Text(trace.ranges.name[3]), "inner");
  EXPECT_EQ(Parents(trace), (std::vector{-1, -1, 1, 2}));
}

TEST(TraceBuilder, ATouchingRangeIsASibling) {
  Fixture f;
  f.Range(0, 10);
  f.Range(10, 20);
  f.Range(20, 20);
  EXPECT_EQ(Parents(f.Build()), (std::vector{-1, -1, -1}));
}

TEST(TraceBuilder, AnOverlappingRangeIsASiblingAndCounted) {
  Fixture f;
  f.Range(0, 100);
  f.Range(10, 50);
  f.Range(40, 60);
  f.Range(45, 48);
  const Trace trace = f.Build();
  EXPECT_EQ(Parents(trace), (std::vector{-1, 0, 0, 2}));
  EXPECT_EQ(trace.quality.CountOf("overlapping_ranges"), 1);
}

TEST(TraceBuilder, RangesOfOtherTracksAreNoParents) {
  Fixture f;
  const TrackId other = f.builder.FindOrAddThread(f.process, 4712);
  f.Range(0, 100);
  f.builder.AddRange(At(10, 20, other), RangeKind::kCpuOp);
  EXPECT_EQ(Parents(f.Build()), (std::vector{-1, -1}));
}

TEST(TraceBuilder, ANegativeDurationBecomesZeroAndIsCounted) {
  Fixture f;
  f.Range(10, 5);
  f.Range(20, 30);
  const Trace trace = f.Build();
  EXPECT_EQ(trace.ranges.interval(Row{0}), (Interval{TraceTime{10}, TraceTime{10}}));
  EXPECT_EQ(trace.quality.CountOf("negative_duration"), 1);
}

TEST(TraceBuilder, PointsInTimeHaveNoEndToBeWrong) {
  Fixture f;
  f.builder.AddInstant(At(10, 0, f.thread), 't');
  f.builder.AddCounter(At(11, 0, f.thread));
  f.builder.AddFlow(At(12, 0, f.thread), 5, 's', 'e');
  const Trace trace = f.Build();
  EXPECT_EQ(trace.quality.CountOf("negative_duration"), 0);
  EXPECT_EQ(trace.instants.end(0).ns, 10);
  EXPECT_EQ(trace.counters.end(0).ns, 11);
  EXPECT_EQ(trace.flows.end(0).ns, 12);
}

TEST(TraceBuilder, JoinsADeviceOperationToItsLaunch) {
  Fixture f;
  const TrackId stream = f.builder.FindOrAddStream(f.process, 0, 7);
  f.builder.AddApi(At(50, 60, f.thread), ApiKind::kLaunch, 2);
  f.builder.AddApi(At(10, 20, f.thread), ApiKind::kLaunch, 1);
  f.builder.AddDeviceOp(At(70, 80, stream), DeviceOpKind::kKernel, CopyDirection::kUnknown, 0, 2);
  f.builder.AddDeviceOp(At(30, 40, stream), DeviceOpKind::kKernel, CopyDirection::kUnknown, 0, 1);
  const Trace trace = f.Build();
  EXPECT_EQ(trace.device_ops.launch, (std::vector{Row{0}, Row{1}}));
  EXPECT_EQ(trace.quality.CountOf("kernel_without_launch"), 0);
}

TEST(TraceBuilder, TheRuntimeCallWinsOverTheDriverCallThatItMakes) {
  Fixture f;
  const TrackId stream = f.builder.FindOrAddStream(f.process, 0, 7);
  f.builder.AddApi(At(12, 18, f.thread), ApiKind::kLaunch, 1);
  f.builder.AddApi(At(10, 20, f.thread), ApiKind::kLaunch, 1);
  f.builder.AddDeviceOp(At(30, 40, stream), DeviceOpKind::kKernel, CopyDirection::kUnknown, 0, 1);
  const Trace trace = f.Build();
  EXPECT_EQ(trace.api.begin[Index(trace.device_ops.launch[0])].ns, 10);
}

TEST(TraceBuilder, OperationsWithoutALaunchAreCountedByKind) {
  Fixture f;
  const TrackId stream = f.builder.FindOrAddStream(f.process, 0, 7);
  f.builder.AddApi(At(0, 1, f.thread), ApiKind::kOther, kNoCorrelation);
  const auto add = [&](DeviceOpKind kind, int64_t correlation) {
    f.builder.AddDeviceOp(At(5, 6, stream), kind, CopyDirection::kUnknown, 0, correlation);
  };
  add(DeviceOpKind::kKernel, kNoCorrelation);
  add(DeviceOpKind::kCopy, 9);
  add(DeviceOpKind::kMemset, 9);
  const Trace trace = f.Build();
  EXPECT_EQ(trace.device_ops.launch, std::vector(3, kNoRow));
  EXPECT_EQ(trace.quality.CountOf("kernel_without_launch"), 1);
  EXPECT_EQ(trace.quality.CountOf("copy_without_launch"), 2);
}

TEST(TraceBuilder, RebasingMovesEveryTimeAndTheBaseTogether) {
  Fixture f;
  f.builder.trace().base_ns = 1'000;
  f.Range(500, 900);
  f.builder.AddInstant(At(300, 300, f.thread), 't');
  f.builder.AddGap({{TraceTime{400}, TraceTime{450}}, f.process, kEmptyString});
  f.builder.AddOther({TraceTime{350}, f.builder.Intern("{}")});
  const Trace trace = f.Build(true);
  EXPECT_EQ(trace.base_ns, 1'300);
  EXPECT_EQ(trace.instants.begin[0].ns, 0);
  EXPECT_EQ(trace.ranges.interval(Row{0}), (Interval{TraceTime{200}, TraceTime{600}}));
  EXPECT_EQ(trace.gaps[0].interval, (Interval{TraceTime{100}, TraceTime{150}}));
  EXPECT_EQ(trace.others[0].begin.ns, 50);
  EXPECT_EQ(trace.extent, (Interval{TraceTime{200}, TraceTime{600}}));
}

TEST(TraceBuilder, TheExtentSpansRangesCallsAndDeviceOperations) {
  Fixture f;
  const TrackId stream = f.builder.FindOrAddStream(f.process, 0, 7);
  f.Range(100, 110);
  f.builder.AddApi(At(90, 95, f.thread), ApiKind::kLaunch, 1);
  f.builder.AddDeviceOp(At(120, 400, stream), DeviceOpKind::kKernel, CopyDirection::kUnknown, 0, 1);
  f.builder.AddInstant(At(5'000, 0, f.thread), 't');
  EXPECT_EQ(f.Build().extent, (Interval{TraceTime{90}, TraceTime{400}}));
}

TEST(TraceBuilder, WhatIsExpectedChangesNoRow) {
  Fixture guessed;
  Fixture plain;
  for (Fixture* const f : {&guessed, &plain}) {
    const TrackId stream = f->builder.FindOrAddStream(f->process, 0, 7);
    for (int64_t i = 0; i < 1000; ++i) {
      if (i == 10 && f == &guessed) {
        f->builder.ExpectTimes(1000);  // ten times too many ranges, and of kernels none
        f->builder.ExpectTimes(0.5);
      }
      const StringId key = f->builder.Intern("i");
      Event range = At(i, i + 1, f->thread);
      const Arg args[] = {{key, {.type = ArgValue::Type::kInt, .integer = i}}};
      range.args = f->builder.AddArgs(args);
      range.category = i < 500 ? kEmptyString : key;  // no column of it until then
      f->builder.AddRange(range, RangeKind::kCpuOp);
      if (i >= 10) {
        f->builder.AddDeviceOp(At(i, i + 1, stream), DeviceOpKind::kKernel, CopyDirection::kUnknown,
                               0, i);
      }
    }
  }
  const Trace expected = plain.Build();
  const Trace trace = guessed.Build();
  EXPECT_EQ(trace.ranges.begin, expected.ranges.begin);
  EXPECT_EQ(trace.ranges.args, expected.ranges.args);
  EXPECT_EQ(trace.ranges.category, expected.ranges.category);
  EXPECT_EQ(trace.device_ops.correlation, expected.device_ops.correlation);
}

// Claims of a hostile file. Every difference of two stored times must be a valid Duration.
TEST(TraceBuilder, TimesThatNoClockReachesAreClampedAndCounted) {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  Fixture f;
  f.builder.trace().base_ns = kMax;
  const TrackId stream = f.builder.FindOrAddStream(f.process, 0, 7);
  f.Range(kMin, kMax);
  f.Range(kMax, kMax);
  f.Range(0, 10);
  f.builder.AddApi(At(kMin, kMax, f.thread), ApiKind::kLaunch, 1);
  f.builder.AddApi(At(kMin, 0, f.thread), ApiKind::kLaunch, 1);
  f.builder.AddDeviceOp(At(kMin, kMax, stream), DeviceOpKind::kKernel, CopyDirection::kUnknown, 0,
                        1);
  f.builder.AddGap({{TraceTime{kMin}, TraceTime{kMax}}, f.process, kEmptyString});
  f.builder.AddOther({TraceTime{kMax}});
  f.builder.AddOther({TraceTime{kMin}});
  const Trace trace = f.Build(true);
  EXPECT_GT(trace.quality.CountOf("time_out_of_range"), 0);
  for (const Interval& interval : {trace.extent, trace.gaps[0].interval}) {
    EXPECT_GE(interval.begin.ns, 0);
    EXPECT_GT(interval.Length().ns, 0);
  }
  EXPECT_LT(trace.others[1].begin, trace.others[0].begin);
}

}  // namespace
}  // namespace trainprof
