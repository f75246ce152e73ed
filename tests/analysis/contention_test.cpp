// What of gains is for other programs, and for chance.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "analysis/gain.h"
#include "tests/support/trace_script.h"

namespace trainprof {
namespace {

// Steps of 5 ms, sixty before the last, every other five of them `more_us` longer. Another program takes a fifth of the
// thread's time. The device ends its work after `kernel_us`; the thread waits for it, and does for the rest of a step
// what nothing tells. That wait is dropped.
GainSources SourcesWith(int kernel_us, int more_us) {
  std::string host = "thread 1\n";
  std::string device = "stream 0 7\n";
  int at = 0;
  for (int step = 0; step < 61; ++step) {
    const int length = 5000 + step / 5 % 2 * more_us;
    host += fmt::format(
        "step {0} {1} step\ncpu {0} {1} | used={2} interruptions=2\n"
        "call {3} {4} cudaLaunchKernel | corr={7}\ncall {5} {6} cudaStreamSynchronize | corr={8}\n",
        at, at + length, length * 4 / 5, at + 10, at + 20, at + 30, at + kernel_us + 20,
        2 * step + 1, 2 * step + 2);
    device +=
        fmt::format("kernel {} {} forward | corr={}\nsync {} {} Stream Sync | corr={}\n", at + 15,
                    at + kernel_us + 15, 2 * step + 1, at + 30, at + kernel_us + 20, 2 * step + 2);
    at += length;
  }
  const Trace trace = TraceFromScript(host + device);
  const RankModel model(trace);
  EXPECT_TRUE(model.host_is_contended);
  Change change{Edit::kRemoveWaits, {}, kNoDevice};
  for (uint32_t call = 0; call < trace.api.size(); ++call) {
    if (trace.api.kind[call] == ApiKind::kSync) change.rows.push_back(Row{call});
  }
  return GainOf(model, Finding{}, change).sources;
}

// Means of five steps lie half a millisecond about that of all, twelve of them: the standard error of such a mean is
// 0.5 sqrt(12 / 11) / sqrt(12), and 1.796 of these hold nine in ten. The host is the limit before and after.
TEST(Contention, MakesRunsDifferByWhatStepsDifferByBeforeAndAfter) {
  EXPECT_NEAR(SourcesWith(2000, 1000).runs_ms, std::sqrt(2) * 1.796 * 0.5 / std::sqrt(11), 0.01);
}

// Without the wait the thread is ahead of its device: whatever it takes, the step is as long.
TEST(Contention, IsNoneOfWhereTheDeviceIsTheLimit) {
  EXPECT_NEAR(SourcesWith(4950, 0).runs_ms, 5 * 0.02, 0.001);
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
