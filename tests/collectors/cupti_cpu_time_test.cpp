// Looks at what a thread uses of the CPU, around its waits for the device.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/collectors/cuda_run.h"

namespace trainprof::testing {
namespace {

// A step waits 2 ms for its kernel and sleeps 3 ms: it gave the CPU up twice, and each time is told apart.
TEST(CuptiCpuTime, OfAWaitIsToldApartFromWhatIsBehindIt) {
  constexpr size_t kSteps = 20;
  constexpr Duration kBehind = Milliseconds(1);
  constexpr Duration kClocksDiffer = Microseconds(100);  // CUPTI's from ours, at most
  CudaRun run;
  ASSERT_EQ(run.Run({"steps", std::to_string(kSteps), "3", "2e6"}), 0);
  const Trace trace = run.ReadOne();
  const CpuTimeTable& looks = trace.cpu_times;
  size_t waits = 0;
  size_t looked_at = 0;
  size_t slept = 0;
  for (uint32_t call = 0; call < trace.api.size(); ++call) {
    if (trace.api.kind[call] != ApiKind::kSync) continue;
    ++waits;
    const TraceTime end = trace.api.end(call);
    const auto behind =
        std::lower_bound(looks.begin.begin(), looks.begin.end(), end - kClocksDiffer);
    const auto row = static_cast<size_t>(behind - looks.begin.begin());
    if (row + 1 >= looks.size() || looks.begin[row] - end > kBehind) continue;
    ++looked_at;
    // The next look is where the step's range ends.
    slept +=
        looks.waits[row + 1] >= 1 && Duration{looks.wall_ns[row + 1]} >= Milliseconds(2) ? 1 : 0;
  }
  EXPECT_EQ(waits, kSteps);
  EXPECT_GE(looked_at, kSteps / 2) << "but for what other programs hold up";
  EXPECT_EQ(slept, looked_at);
}

}  // namespace
}  // namespace trainprof::testing
