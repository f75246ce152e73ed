// Waits for room in a device's queue, and the calls that waited.
#include <gtest/gtest.h>

#include "trace/build/trace_builder.h"

namespace trainprof {
namespace {

struct Builder {
  TraceBuilder trace;
  ProcessId process = trace.FindOrAddProcess(1);
  TrackId one = trace.FindOrAddThread(process, 1);
  TrackId other = trace.FindOrAddThread(process, 2);
  TrackId none = trace.FindOrAddThread(process, -1);  // as CUPTI's, when no thread is told

  Event At(int64_t begin, int64_t end, TrackId track, std::string_view name = "") {
    return {.begin = TraceTime{begin},
            .end = TraceTime{end},
            .name = trace.Intern(name),
            .track = track};
  }
  void Call(int64_t begin, int64_t end, TrackId track, ApiKind kind = ApiKind::kLaunch) {
    trace.AddApi(At(begin, end, track), kind, kNoCorrelation);
  }
  void Full(int64_t begin, int64_t end, TrackId track, std::string_view name = kQueueFull) {
    trace.AddRange(At(begin, end, track, name), RangeKind::kOverhead);
  }
};

std::vector<int64_t> Waited(const Trace& t) {
  std::vector<int64_t> waited;
  for (size_t row = 0; row < t.api.size(); ++row) waited.push_back(t.api.queue_full_ns[row]);
  return waited;
}

TEST(QueueFull, IsItsCallsOwn) {
  Builder b;
  b.Call(0, 10'000, b.one);
  b.Call(20'000, 90'000, b.one);  // waits twice
  b.Call(21'000, 89'000, b.one);  // of the driver, within it
  b.Call(20'000, 90'000, b.other);
  b.Full(25'000, 50'000, b.one);
  b.Full(60'000, 80'000, b.one);
  b.Full(30'000, 40'000, b.one, "Buffer Flush");
  const Trace t = std::move(b.trace).Build();
  EXPECT_EQ(Waited(t), (std::vector<int64_t>{0, 45'000, 0, 0}));
  EXPECT_EQ(t.quality.CountOf("queue_full_without_call"), 0);
}

TEST(QueueFull, OfNoThreadIsThatOfTheOnlyLaunchAroundIt) {
  Builder b;
  b.Call(0, 50'000, b.one);
  b.Call(0, 60'000, b.other, ApiKind::kSync);
  b.Call(100'000, 200'000, b.one);
  b.Call(100'000, 200'000, b.other);
  b.Full(10'000, 40'000, b.none);
  b.Full(110'000, 140'000, b.none);  // of one of two
  b.Full(300'000, 400'000, b.none);  // of none
  const Trace t = std::move(b.trace).Build();
  EXPECT_EQ(Waited(t), (std::vector<int64_t>{30'000, 0, 0, 0}));
  EXPECT_EQ(t.quality.CountOf("queue_full_without_call"), 2);
}

TEST(QueueFull, TakesNoMemoryWhereThereIsNone) {
  Builder b;
  for (int i = 0; i < 100; ++i) b.Call(i * 10, i * 10 + 5, b.one);
  const Trace t = std::move(b.trace).Build();
  EXPECT_EQ(t.api.queue_full_ns.size(), 100u);
  EXPECT_EQ(t.api.queue_full_ns.stored_bytes(), 0u);
}

}  // namespace
}  // namespace trainprof
