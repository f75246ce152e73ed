// What of gains is for other programs, and for chance.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/gain.h"
#include "tests/support/trace_script.h"

namespace trainprof {
namespace {

// Another program takes a fifth of the thread's time. The device ends its work after `kernel_us`; for the rest of the
// 5 ms the thread does what nothing tells. What it waited for is dropped.
GainSources SourcesWith(int steps, int kernel_us, int wait_us) {
  const Trace trace = TraceFromScript(fmt::format(R"(
    thread 1
    repeat {0} every 5000
      step 0 5000 step
      cpu 0 5000 | used=4000 interruptions=2
      call 10 20 cudaLaunchKernel | corr=1
      call 70 {2} cudaStreamSynchronize | corr=2
    end
    stream 0 7
    repeat {0} every 5000
      kernel 15 {1} forward | corr=1
      sync 70 {2} Stream Sync | corr=2
    end)",
                                                  steps, kernel_us, wait_us));
  const RankModel model(trace);
  EXPECT_TRUE(model.host_is_contended);
  Change change{Edit::kRemoveWaits, {}, kNoDevice};
  for (uint32_t call = 0; call < trace.api.size(); ++call) change.rows.push_back(Row{call});
  return GainOf(model, Finding{}, change).sources;
}

// It had the processor for a fourth of the thread's own time: half of that, and 4 % for those that come and go, of the
// 3.03 ms that the host works, before and after. A tenth of a second meets few of its turns.
TEST(Contention, IsOfTheHostsWorkAndMoreWhereTheWindowIsShort) {
  const double long_run_ms = std::sqrt(2) * (0.5 * 0.25 + 0.04) * 3.03;
  EXPECT_NEAR(SourcesWith(400, 2000, 2005).runs_ms, long_run_ms, 0.001);
  EXPECT_NEAR(SourcesWith(81, 2000, 2005).runs_ms, long_run_ms / std::sqrt(0.4), 0.01);
  EXPECT_NEAR(SourcesWith(12, 2000, 2005).runs_ms, 2.5 * long_run_ms, 0.001);
}

// Without the wait the thread is ahead of its device: whatever it takes, the step is as long.
TEST(Contention, IsNoneOfWhereTheDeviceIsTheLimit) {
  const double before_ms = (0.5 * 0.25 + 0.04) * 0.1;
  EXPECT_NEAR(SourcesWith(400, 4950, 4965).runs_ms, std::max(before_ms, 5 * 0.02), 0.001);
}

// Steps of 2.1 ms, and one in which the host does nothing recorded for 2 ms behind its wait: without that it would have
// done so while the device works. `sync`: the calls of the others.
Gain WithOneOddStep(std::string_view sync) {
  const Trace trace = TraceFromScript(fmt::format(R"(
    thread 1
    repeat 12 every 2100
      step 0 2100 step
      call 10 20 cudaLaunchKernel | corr=1
      {0}
    end
    step 25200 29300 step
    call 25210 25220 cudaLaunchKernel | corr=100
    call 25230 27205 cudaStreamSynchronize | corr=101
    repeat 4 every 2100
      step 29300 31400 step
      call 29310 29320 cudaLaunchKernel | corr=201
    end
    stream 0 7
    repeat 12 every 2100
      kernel 15 2000 forward | corr=1
    end
    kernel 25215 27200 forward | corr=100
    sync 25230 27205 Stream Sync | corr=101
    repeat 4 every 2100
      kernel 29315 31300 forward | corr=201
    end)",
                                                  sync));
  const RankModel model(trace);
  Change change{Edit::kRemoveWaits, {}, kNoDevice};
  for (uint32_t call = 0; call < trace.api.size(); ++call) {
    if (trace.api.kind[call] == ApiKind::kSync) change.rows.push_back(Row{call});
  }
  return GainOf(model, Finding{}, change);
}

// A quiet run lost 2.7 ms in one of its steps, and the wait in each of them "gave" 4 % where it gave 0.8 %.
TEST(Gain, OfWhatIsInEveryStepAndGainsInOneIsChance) {
  const Gain alone = WithOneOddStep("");
  EXPECT_NEAR(alone.expected_ms_per_step, 2.0 / 16, 0.02) << "it is in that step, and nowhere else";
  const Gain all = WithOneOddStep("call 30 2005 cudaStreamSynchronize | corr=2");
  EXPECT_NEAR(all.expected_ms_per_step, 0.114, 0.01) << "what each of the others gains";
  EXPECT_GT(all.high_ms_per_step, 0.114 + 2.0 / 16);
}

}  // namespace
}  // namespace trainprof
