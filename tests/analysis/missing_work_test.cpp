// Where device rows are missing the account says so, and names no cause that they would not have
// named.
#include "analysis/account/missing_work.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "analysis/job/analysis.h"
#include "tests/support/random_trace.h"
#include "tests/support/sanitized.h"
#include "tests/support/trace_script.h"
#include "trace/build/missing_rows.h"

namespace trainprof {
namespace {

using C = DeviceClass;

// "[begin, end) class" in us, one a part of the first device's idle time.
std::string IdleParts(const Trace& trace) {
  const std::vector<DeviceAccount> accounts = AccountDevices(trace, FindSteps(trace));
  std::string text;
  for (const Segment<C>& part : accounts.at(0).idle) {
    text += fmt::format("[{}, {}) {}\n", part.interval.begin.ns / 1000, part.interval.end.ns / 1000,
                        Name(part.value));
  }
  return text;
}

// The kernel of call 2 is missing: it may have run until that of call 3 began.
TEST(MissingWork, FromTheLaunchUntilTheStreamGoesOn) {
  EXPECT_EQ(IdleParts(TraceFromScript(R"(
    thread 1
    step 0 1000 step
    call 0 5 cudaLaunchKernel | corr=1
    call 100 105 cudaLaunchKernel | corr=2
    call 300 305 cudaLaunchKernel | corr=3
    call 700 705 cudaLaunchKernel | corr=4
    call 850 855 cudaLaunchKernel | corr=5
    stream 0 7
    kernel 6 50 a | corr=1
    kernel 306 600 c | corr=3
    kernel 706 800 d | corr=4
    kernel 856 1000 e | corr=5
  )")),
            "[0, 6) idle_launch_bound\n[50, 100) idle_unknown\n[100, 306) idle_unrecorded\n"
            "[600, 706) idle_launch_bound\n[800, 856) idle_launch_bound\n");
}

TEST(MissingWork, UntilTheThreadHasWaitedForTheDevice) {
  EXPECT_EQ(IdleParts(TraceFromScript(R"(
    thread 1
    step 0 1000 step
    call 0 5 cudaLaunchKernel | corr=1
    call 10 15 cudaLaunchKernel | corr=2
    call 20 25 cudaLaunchKernel | corr=3
    call 50 55 cudaLaunchKernel | corr=4
    call 60 200 cudaDeviceSynchronize | corr=5
    annotation 200 700 data_wait
    call 700 705 cudaLaunchKernel | corr=6
    stream 0 7
    kernel 6 11 a | corr=1
    kernel 11 21 b | corr=2
    kernel 21 50 c | corr=3
    kernel 706 1000 d | corr=6
  )")),
            "[0, 6) idle_launch_bound\n[50, 200) idle_unrecorded\n[200, 700) idle_input_wait\n"
            "[700, 706) idle_unknown\n");
}

// Where most rows are missing whole streams may be, and work whose launch nobody recorded.
TEST(MissingWork, AlwaysWhereMoreThanAQuarterIsMissing) {
  EXPECT_EQ(IdleParts(TraceFromScript(R"(
    thread 1
    step 0 1000 step
    call 100 105 cudaLaunchKernel | corr=1
    call 110 115 cudaLaunchKernel | corr=2
    call 700 705 cudaLaunchKernel | corr=3
    stream 0 7
    kernel 106 110 a | corr=1
    kernel 706 1000 c | corr=3
  )")),
            "[0, 106) idle_unrecorded\n[110, 706) idle_unrecorded\n");
}

TEST(MissingWork, AlwaysWhereTheInputEndsEarly) {
  Trace trace = TraceFromScript(R"(
    thread 1
    step 0 1000 step
    call 100 105 cudaLaunchKernel | corr=1
    stream 0 7
    kernel 106 500 a | corr=1
  )");
  EXPECT_EQ(IdleParts(trace), "[0, 106) idle_launch_bound\n[500, 1000) idle_unknown\n");
  trace.quality.Count(kTruncatedInput, QualitySeverity::kDataLoss);
  EXPECT_EQ(IdleParts(trace), "[0, 106) idle_unrecorded\n[500, 1000) idle_unrecorded\n");
  const RankAnalysis rank = Analyze(trace);
  EXPECT_TRUE(rank.passed.empty());
  EXPECT_EQ(rank.devices.at(0).busy_high, rank.device_window);
  EXPECT_EQ(rank.device_window, rank.window);
}

constexpr std::string_view kCaptured = R"(
    thread 1
    call 0 5 cudaLaunchKernel | corr=1
    call 10 15 cudaStreamBeginCapture | corr=2
    call 20 25 cudaLaunchKernel | corr=3
    call 30 35 cudaMemsetAsync | corr=4
    call 40 45 cudaStreamEndCapture_v2 | corr=5
    call 50 55 cudaMemsetAsync | corr=6
    call 60 65 cudaMemsetAsync | corr=7
    call 70 70 cudaMemcpyAsync | corr=8
    stream 0 7
    kernel 6 10 a | corr=1
    memset 66 67 Memset | corr=7
)";

TEST(MissingWork, WhatWasCapturedIntoAGraphAndEmptyMemsetsAreNotMissed) {
  const Trace trace = TraceFromScript(kCaptured);
  EXPECT_TRUE(LaunchesWithoutRow(trace).empty());
  EXPECT_EQ(trace.quality.CountOf("launches_without_kernel"), 0);
  EXPECT_EQ(trace.quality.CountOf("copies_without_row"), 2);  // info
}

// XLA loads modules with copies of 0 bytes; one that takes as long as others is missed.
TEST(MissingWork, OnlyCopiesThatReturnAtOnceAreEmpty) {
  std::string script(kCaptured);
  script.replace(script.find("call 70 70"), 10, "call 70 72");
  EXPECT_EQ(LaunchesWithoutRow(TraceFromScript(script)).size(), 1U);
}

TEST(MissingWork, OperationsWithoutAnIdMayBeThoseOfTheLaunches) {
  EXPECT_TRUE(LaunchesWithoutRow(TraceFromScript(R"(
    thread 1
    call 0 5 cudaLaunchKernel | corr=1
    call 10 15 cudaLaunchKernel | corr=2
    stream 0 7
    kernel 6 10 a
    kernel 16 20 b
  )"))
                  .empty());
}

TEST(MissingWork, WhatWasQueuedWhenTheRecordingEndedIsNoLoss) {
  const Trace trace = TraceFromScript(R"(
    thread 1
    call 0 5 cudaLaunchKernel | corr=1
    call 10 15 cudaLaunchKernel | corr=2
    stream 0 7
    kernel 6 16 a | corr=1
  )");
  EXPECT_EQ(trace.quality.CountOf("launches_without_kernel"), 0);
  EXPECT_EQ(trace.quality.CountOf("undelivered_at_end"), 1);
}

TEST(MissingWork, NoDeviceRowAtAllIsSaidOnceAndNoRulePasses) {
  const RankAnalysis rank = Analyze(TraceFromScript(R"(
    thread 1
    repeat 10 every 1000
      step 0 1000 step
      annotation 0 900 data_wait
      call 910 915 cudaLaunchKernel | corr=1
    end
  )"));
  EXPECT_TRUE(rank.findings.empty());
  EXPECT_TRUE(rank.passed.empty());
  EXPECT_EQ(rank.device_doubt, "10 launches and copies, and no row of what a device did");
  ASSERT_EQ(rank.quality.size(), 1u);
  EXPECT_EQ(rank.quality[0].kind, "launches_without_kernel");
}

// Kernels, by chance, all of a graph at once; of each thread one operation stays on each stream,
// unless all go.
TraceEvents WithoutKernels(TraceEvents events, int percent, Random& random) {
  std::map<int64_t, int> thread_of;
  for (const CallEvent& call : events.calls) thread_of[call.correlation] = call.thread;
  std::map<std::tuple<int, int, int>, int> left;
  const auto place = [&](const OpEvent& op) {
    return std::tuple(thread_of[op.correlation], op.device, op.stream);
  };
  for (const OpEvent& op : events.ops) ++left[place(op)];
  std::map<int64_t, std::vector<const OpEvent*>> calls;
  for (const OpEvent& op : events.ops) calls[op.correlation].push_back(&op);
  std::set<int64_t> gone;
  for (const auto& [correlation, ops] : calls) {
    const bool are_kernels = std::all_of(ops.begin(), ops.end(), [](const OpEvent* op) {
      return op->kind == DeviceOpKind::kKernel;
    });
    if (!are_kernels || !random.Chance(percent)) continue;
    for (const OpEvent* op : ops) --left[place(*op)];
    const bool none_left = std::any_of(ops.begin(), ops.end(),
                                       [&](const OpEvent* op) { return left[place(*op)] == 0; });
    if (none_left && percent < 100) {
      for (const OpEvent* op : ops) ++left[place(*op)];
    } else {
      gone.insert(correlation);
    }
  }
  std::erase_if(events.ops, [&](const OpEvent& op) { return gone.contains(op.correlation); });
  return events;
}

TEST(MissingWork, BusyIsNeverMoreThanTheRangeSaysAndNoCauseAppears) {
  constexpr uint64_t kTraces = testing::Rounds(1'500);
  int64_t hidden_ns = 0;
  for (const int percent : {10, 50, 100}) {
    for (uint64_t seed = 80'000; seed < 80'000 + kTraces; ++seed) {
      SCOPED_TRACE(fmt::format("{} %, seed {}", percent, seed));
      Random random(seed);
      const TraceEvents events = DrawTrace(seed, {.least_steps = 1,
                                                  .disorder = false,
                                                  .most_devices = seed % 2 == 0 ? 1 : 2,
                                                  .in_order = true});
      const Trace whole = BuildTrace(events);
      const Steps steps = FindSteps(whole);
      const Trace less = BuildTrace(WithoutKernels(events, percent, random));
      std::map<DeviceId, const DeviceAccount*> before;
      const std::vector<DeviceAccount> accounts = AccountDevices(whole, steps);
      for (const DeviceAccount& account : accounts) before[account.device] = &account;
      for (const DeviceAccount& after : AccountDevices(less, steps)) {
        const DeviceAccount& was = *before.at(after.device);
        const Duration busy = after.BusyWithin(steps.device_window);
        const Duration was_busy = was.BusyWithin(steps.device_window);
        hidden_ns += (was_busy - busy).ns;
        ASSERT_LE(was_busy, busy + after.Of(C::kIdleUnrecorded));
        // What is waited for on another device follows from what was launched there.
        if (accounts.size() > 1) continue;
        for (const C c : {C::kIdleInputWait, C::kIdleSyncDrain, C::kIdleAllocation,
                          C::kIdleLaunchBound, C::kIdlePython, C::kIdleIo, C::kIdleDependency}) {
          ASSERT_LE(after.Of(c), was.Of(c)) << Name(c);
        }
      }
    }
  }
  EXPECT_GT(hidden_ns, 0);
}

}  // namespace
}  // namespace trainprof
