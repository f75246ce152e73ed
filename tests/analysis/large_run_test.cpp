// What is worked out in parts on several cores is what one core works out whole: on a run that is long enough for that.
#include <gtest/gtest.h>
#include <sched.h>

#include "analysis/job/analysis.h"
#include "trace/base/parallel.h"
#include "trace/build/trace_builder.h"

namespace trainprof {
namespace {

// 40 steps of 7,000 launches each, with a wait, a pause and host work of the user's in each: enough calls, gaps and
// nodes for two parts of each (analysis/account/idle.cpp, analysis/graph, trace/build/launch_join.cpp).
// `has_looks`: another thread's use of the CPU was looked at once.
Trace LongRun(bool has_looks = false) {
  TraceBuilder builder;
  const ProcessId process = builder.FindOrAddProcess(1);
  const TrackId thread = builder.FindOrAddThread(process, 100);
  const TrackId streams[] = {builder.FindOrAddStream(process, 0, 7),
                             builder.FindOrAddStream(process, 0, 8)};
  const StringId step = builder.Intern("train_step");
  const StringId own = builder.Intern("augment");
  const StringId launch = builder.Intern("cudaLaunchKernel");
  const StringId sync = builder.Intern("cudaStreamSynchronize");
  const StringId kernel = builder.Intern("gemm");
  int64_t host = 1000;
  int64_t gpu[] = {0, 0};
  int64_t correlation = 0;
  for (int s = 0; s < 40; ++s) {
    const int64_t begin = host;
    for (int i = 0; i < 7000; ++i) {
      ++correlation;
      builder.AddApi({{host}, {host + 2000}, launch, thread}, ApiKind::kLaunch, correlation);
      int64_t& at = gpu[i % 5 == 0 ? 1 : 0];
      const int64_t from = std::max(at + 1000, host + 5000);
      at = from + 1000 + 500 * (i % 7);
      builder.AddDeviceOp({{from}, {at}, kernel, streams[i % 5 == 0 ? 1 : 0]},
                          DeviceOpKind::kKernel, CopyDirection::kUnknown, 0, correlation, {});
      host += 4000;
    }
    builder.AddApi({{host}, {std::max(gpu[0], gpu[1]) + 5000}, sync, thread}, ApiKind::kSync,
                   ++correlation);
    host = std::max(gpu[0], gpu[1]) + 10'000;
    builder.AddRange({{host}, {host + 2'000'000}, own, thread}, RangeKind::kUserAnnotation);
    host += 2'500'000;
    builder.AddRange({{begin}, {host}, step, thread}, RangeKind::kUserAnnotation);
  }
  if (has_looks) {
    const TrackId other = builder.FindOrAddThread(process, 200);
    builder.AddRow(builder.trace().cpu_times, {{5000}, {5000}, kEmptyString, other}, kEmptyString,
                   int64_t{1000}, int64_t{1000}, int64_t{0}, int64_t{0});
  }
  return std::move(builder).Build();
}

TEST(LargeRuns, SeveralCoresSayWhatOneSays) {
  Trace trace = LongRun();
  trace.source = SourceKind::kRecording;  // what recording took is left out, too
  const RankAnalysis of_several = Analyze(trace);
  cpu_set_t all;
  CPU_ZERO(&all);
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &all)) {
      CPU_SET(core, &one);
      break;
    }
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(UsableCores(), 1u);
  const Trace built_by_one = LongRun();
  const RankAnalysis of_one = Analyze(trace);
  ASSERT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
  EXPECT_FALSE(of_one.findings.empty());
  EXPECT_GT(of_one.devices.at(0).busy.ns, 0);
  EXPECT_EQ(of_several, of_one);
  EXPECT_TRUE(built_by_one.device_ops == trace.device_ops) << "and joined to the same calls";
  EXPECT_NE(trace.device_ops.launch.back(), kNoRow);
}

// A look at the CPU of a thread that did nothing has gaps split in their order, one by one.
TEST(LargeRuns, GapsInHalvesAreGapsInOrder) {
  const Trace trace = LongRun();
  const Trace in_order = LongRun(true);
  ASSERT_EQ(in_order.cpu_times.size(), 1u);
  const RankModel a(trace);
  const RankModel b(in_order);
  ASSERT_EQ(a.devices.size(), 1u);
  ASSERT_EQ(b.devices.size(), 1u);
  EXPECT_EQ(a.devices[0].total, b.devices[0].total);
  ASSERT_EQ(a.devices[0].idle.size(), b.devices[0].idle.size());
  ASSERT_GT(a.devices[0].idle.size(), size_t{1} << 17);
  for (size_t i = 0; i < a.devices[0].idle.size(); ++i) {
    ASSERT_EQ(a.devices[0].idle[i].interval, b.devices[0].idle[i].interval) << i;
    ASSERT_EQ(a.devices[0].idle[i].value, b.devices[0].idle[i].value) << i;
  }
}

}  // namespace
}  // namespace trainprof
