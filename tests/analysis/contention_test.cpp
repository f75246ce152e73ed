// What gains are unsure by where programs compete for the host's processors.
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

}  // namespace
}  // namespace trainprof
