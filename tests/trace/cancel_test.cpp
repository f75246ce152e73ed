#include "trace/base/cancel.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/trace/cancel_everywhere.h"
#include "trace/base/parallel.h"
#include "trace/build/trace_builder.h"

namespace trainprof {
namespace {

TEST(Cancel, WithoutAScopeNothingCanBeCancelled) {
  EXPECT_EQ(CancelScope::Current(), nullptr);
  CancelPoint();
}

TEST(Cancel, EndsTheWorkAtTheNextPoint) {
  std::atomic<bool> cancel = false;
  int reached = 0;
  EXPECT_TRUE(RunUnlessCancelled(&cancel, [&] {
    CancelPoint();
    reached = 1;
  }));
  EXPECT_EQ(reached, 1);
  EXPECT_FALSE(RunUnlessCancelled(&cancel, [&] {
    cancel = true;
    reached = 2;
    CancelPoint();
    reached = 3;
  }));
  EXPECT_EQ(reached, 2);
  EXPECT_TRUE(RunUnlessCancelled(nullptr, [] { CancelPoint(); }));
}

TEST(Cancel, AResultSaysWhatWasCancelled) {
  std::atomic<bool> cancel = false;
  const auto work = [&]() -> Result<int> {
    CancelPoint();
    return 7;
  };
  EXPECT_EQ(ResultUnlessCancelled("a.json", &cancel, work).value(), 7);
  cancel = true;
  const Result<int> cancelled = ResultUnlessCancelled("a.json", &cancel, work);
  ASSERT_FALSE(cancelled.ok());
  EXPECT_EQ(cancelled.error(), "a.json: cancelled");
}

TEST(Cancel, LoopsAskOnceInManyRows) {
  int asked = 0;
  const CancelScope scope([&] { return ++asked == 0; });
  for (size_t row = 0; row < 100'000; ++row) CancelPoint(row);
  EXPECT_GE(asked, 3);
  EXPECT_LE(asked, 30);
}

TEST(Cancel, WhatIsAroundTheWorkCancelsItToo) {
  bool outer_is_over = false;
  const CancelScope outer([&] { return outer_is_over; });
  {
    const CancelScope inner([] { return false; });
    CancelPoint();
    outer_is_over = true;
    EXPECT_THROW(CancelPoint(), Cancelled);
  }
  EXPECT_EQ(CancelScope::Current(), &outer);
}

TEST(Cancel, FailuresAreNoCancelling) {
  const std::atomic<bool> cancel = false;
  EXPECT_THROW((void)RunUnlessCancelled(&cancel, [] { throw std::runtime_error("no room"); }),
               std::runtime_error);
}

// Wherever a job runs, it asks what the thread that waits for it would.
TEST(Cancel, EndsAllJobsOfRunAll) {
  std::atomic<bool> cancel = false;
  std::atomic<int> ended = 0;
  const std::function<void()> until_cancelled = [&] {
    try {
      while (true) CancelPoint();
    } catch (const Cancelled&) {
      ++ended;
      throw;
    }
  };
  const std::function<void()> cancelling = [&] { cancel = true; };
  const std::function<void()> jobs[] = {cancelling, until_cancelled, until_cancelled,
                                        until_cancelled};
  EXPECT_FALSE(RunUnlessCancelled(&cancel, [&] { RunAll(jobs); }));
  EXPECT_EQ(ended, 3);
}

// Rows in any order, so that all is sorted; calls and what they launched in one process or two.
Trace BuildSome(int processes) {
  TraceBuilder builder;
  builder.trace().base_ns = 5;
  for (int p = 0; p < processes; ++p) {
    const ProcessId process = builder.FindOrAddProcess(100 + p);
    const TrackId thread = builder.FindOrAddThread(process, 1);
    const TrackId stream = builder.FindOrAddStream(process, p, 7);
    for (int64_t i = 20; i > 0; --i) {
      const Event event{TraceTime{100 * i}, TraceTime{100 * i + 50}, builder.Intern("e"), thread};
      Event op = event;
      op.track = stream;
      builder.AddRange(event, RangeKind::kCpuOp);
      builder.AddApi(event, ApiKind::kLaunch, i);
      builder.AddDeviceOp(op, DeviceOpKind::kKernel, CopyDirection::kUnknown, 0, i);
      builder.AddCounter(event);
    }
  }
  return std::move(builder).Build(true);
}

TEST(Cancel, SortingAndJoiningEndAnywhere) {
  for (const int processes : {1, 2}) {
    testing::ExpectCancellableEverywhere(
        [&] { EXPECT_EQ(BuildSome(processes).ranges.size(), 20u * processes); }, 30);
  }
}

// As many rows as are sorted on several cores.
TEST(Cancel, SortingOnSeveralCoresEnds) {
  std::atomic<int> asked = 0;
  constexpr int kFirstQuestions = 40;
  const CancelScope scope([&] { return ++asked > kFirstQuestions; });
  TraceBuilder builder;
  const TrackId thread = builder.FindOrAddThread(builder.FindOrAddProcess(1), 1);
  for (int64_t i = 200'000; i > 0; --i) {
    builder.AddRange({TraceTime{i}, TraceTime{i + 1}, kEmptyString, thread}, RangeKind::kCpuOp);
    builder.AddApi({TraceTime{i}, TraceTime{i + 1}, kEmptyString, thread}, ApiKind::kLaunch, i);
  }
  EXPECT_THROW((void)std::move(builder).Build(), Cancelled);
}

}  // namespace
}  // namespace trainprof
