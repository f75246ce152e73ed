// Lanes that are made on a thread while frames go on.
#include "viewer/timeline/lane_store.h"

#include <gtest/gtest.h>

#include <thread>

#include "trace/base/cancel.h"
#include "trace/build/trace_builder.h"

namespace trainprof {
namespace {

constexpr int64_t kEvents = 60'000;  // of a long line: more than a frame makes at once
constexpr uint32_t kLong = 1;        // lines of each rank
constexpr uint32_t kShort = 2;
constexpr uint32_t kOtherLong = 3;

// Threads with nested ranges: two long ones and a short one between them.
Trace LongLines(int64_t base_ns = 0) {
  TraceBuilder builder;
  const ProcessId process = builder.FindOrAddProcess(1);
  const StringId names[] = {builder.Intern("aten::mm"), builder.Intern("data_wait")};
  for (const auto& [tid, events] : {std::pair{1, kEvents}, {2, int64_t{10}}, {3, kEvents}}) {
    const TrackId thread = builder.FindOrAddThread(process, tid);
    for (int64_t i = 0; i < events; ++i) {
      const int64_t at = i / 2 * 100 + i % 2 * 10;
      builder.AddRange({.begin = {at},
                        .end = {at + (i % 2 == 0 ? 90 : 5 + i % 7)},
                        .name = names[i / 1000 % 2],
                        .track = thread},
                       RangeKind::kUserAnnotation);
    }
  }
  Trace trace = std::move(builder).Build();
  trace.base_ns = base_ns;
  return trace;
}

struct LongJob {
  explicit LongJob(std::vector<int64_t> bases) {
    for (const int64_t base : bases) traces.push_back(LongLines(base));
  }
  // Of the first ranks.
  std::shared_ptr<const Lines> LinesOf(size_t ranks) const {
    std::vector<RankView> views;
    for (size_t r = 0; r < ranks; ++r) views.push_back({&traces[r], &analysis, &accounts});
    return std::make_shared<const Lines>(views);
  }

  std::vector<Trace> traces;
  RankAnalysis analysis;
  std::vector<DeviceAccount> accounts;
};

// Frame after frame, each of which asks for the line.
void WaitFor(LaneStore& store, uint32_t line) {
  while (!store.Ask(line)) {
    store.Trim(SIZE_MAX);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void ExpectSame(const std::vector<Lane>& made, const std::vector<Lane>& expected) {
  ASSERT_EQ(made.size(), expected.size());
  for (size_t depth = 0; depth < made.size(); ++depth) {
    ASSERT_EQ(made[depth].size(), expected[depth].size());
    for (size_t i = 0; i < made[depth].size(); ++i) {
      ASSERT_EQ(made[depth].interval(i), expected[depth].interval(i));
      ASSERT_EQ(made[depth].category(i), expected[depth].category(i));
      ASSERT_EQ(made[depth].row(i), expected[depth].row(i));
    }
    EXPECT_EQ(made[depth].pyramid().size_bytes(), expected[depth].pyramid().size_bytes());
  }
}

TEST(LaneStoreThread, MakesLongLinesWhileShortOnesAreThereAtOnce) {
  const LongJob job({0});
  const std::shared_ptr<const Lines> lines = job.LinesOf(1);
  LaneStore store(lines);
  EXPECT_FALSE(store.Ask(kLong));
  EXPECT_FALSE(store.Has(kLong));
  EXPECT_TRUE(store.Ask(kShort));
  EXPECT_FALSE(store.Ask(kOtherLong));
  EXPECT_TRUE(store.busy());
  WaitFor(store, kLong);
  WaitFor(store, kOtherLong);
  EXPECT_FALSE(store.busy());
  LaneStore at_once(*lines);
  for (const uint32_t line : {kLong, kShort, kOtherLong}) {
    ExpectSame(store.LanesOf(line), at_once.LanesOf(line));
  }
  EXPECT_EQ(store.size_bytes(), at_once.size_bytes());
}

TEST(LaneStoreThread, AFrameMakesOnlySoMuchAtOnce) {
  const LongJob job({0});
  const std::shared_ptr<const Lines> lines = job.LinesOf(1);
  const size_t effort = EffortFor(*lines, kShort);
  EXPECT_LT(effort, LaneStore::kMostEffortAtOnce / 10);
  EXPECT_GT(EffortFor(*lines, kLong), LaneStore::kMostEffortAtOnce);
  EXPECT_GE(EffortFor(*lines, kLong), static_cast<size_t>(kEvents));
}

TEST(LaneStoreThread, LeavesWhatNobodyAsksForAnyMore) {
  const LongJob job({0});
  LaneStore store(job.LinesOf(1));
  EXPECT_FALSE(store.Ask(kLong));
  store.Trim(SIZE_MAX);
  EXPECT_TRUE(store.busy());
  store.Trim(SIZE_MAX);
  EXPECT_FALSE(store.busy());
  WaitFor(store, kOtherLong);
  EXPECT_FALSE(store.Has(kLong));
}

TEST(LaneStoreThread, WhatItMadeIsTakenOverByTheNextEdition) {
  const LongJob job({0, 5'000});
  auto store = std::make_unique<LaneStore>(job.LinesOf(1));
  EXPECT_FALSE(store->Ask(kLong));
  const std::shared_ptr<const Lines> both = job.LinesOf(2);
  store = std::make_unique<LaneStore>(both, std::move(*store));
  WaitFor(*store, kLong);
  LaneStore at_once(both);
  ExpectSame(store->LanesOf(kLong), at_once.LanesOf(kLong));
}

// An earlier rank moves the axis: what is being made shows other times then.
TEST(LaneStoreThread, WhatItMadeForAnotherAxisIsMadeAgain) {
  const LongJob job({5'000, 0});
  auto store = std::make_unique<LaneStore>(job.LinesOf(1));
  EXPECT_FALSE(store->Ask(kLong));
  const std::shared_ptr<const Lines> both = job.LinesOf(2);
  store = std::make_unique<LaneStore>(both, std::move(*store));
  WaitFor(*store, kLong);
  EXPECT_EQ(store->LanesOf(kLong)[0].interval(0).begin, TraceTime{5'000});
  LaneStore at_once(both);
  ExpectSame(store->LanesOf(kLong), at_once.LanesOf(kLong));
}

TEST(LaneStoreThread, EndsWithTheStore) {
  const LongJob job({0});
  for (int i = 0; i < 20; ++i) {
    LaneStore store(job.LinesOf(1));
    EXPECT_FALSE(store.Ask(kLong));
    if (i % 2 == 1) store.LanesOf(kOtherLong);
  }
}

// The innermost events of a long line are made on the thread as its lanes are, each for itself.
TEST(LaneStoreThread, MakesTheInnermostLaneWhenItIsAskedFor) {
  const LongJob job({0});
  const std::shared_ptr<const Lines> lines = job.LinesOf(1);
  LaneStore store(lines);
  store.LanesOf(kLong);
  const size_t before = store.size_bytes();
  EXPECT_FALSE(store.Has(kLong, Form::kInnermost));
  EXPECT_FALSE(store.Ask(kLong, Form::kInnermost));
  EXPECT_TRUE(store.busy());
  while (!store.Ask(kLong, Form::kInnermost)) {
    store.Trim(SIZE_MAX);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_FALSE(store.busy());
  EXPECT_GT(store.size_bytes(), before);
  LaneStore at_once(lines);
  ExpectSame({store.LaneOf(kLong, Form::kInnermost)}, {at_once.LaneOf(kLong, Form::kInnermost)});
  store.Trim(SIZE_MAX);
  store.Trim(0);
  EXPECT_FALSE(store.Has(kLong, Form::kInnermost) || store.Has(kLong));
  EXPECT_EQ(store.size_bytes(), 0u);
}

TEST(LineContents, EndEarlyWhenTheyAreCancelled) {
  const LongJob job({0});
  const std::shared_ptr<const Lines> lines = job.LinesOf(1);
  const Categorizer categorizer(job.traces[0]);
  const std::atomic<bool> cancel = true;
  EXPECT_FALSE(RunUnlessCancelled(&cancel, [&] {
    MakeContents(*lines, kLong, Form::kLanes, categorizer);
    ADD_FAILURE() << "went on to the end";
  }));
  EXPECT_FALSE(RunUnlessCancelled(&cancel, [&] {
    MakeContents(*lines, kLong, Form::kInnermost, categorizer);
    ADD_FAILURE() << "went on to the end";
  }));
}

}  // namespace
}  // namespace trainprof
