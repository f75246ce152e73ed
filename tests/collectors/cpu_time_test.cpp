// What a thread that steps has used of the CPU: against its own clock.
#include <gtest/gtest.h>

#include <numeric>

#include "tests/collectors/recorded_run.h"

namespace trainprof::testing {
namespace {

struct Sums {
  int64_t wall_ns = 0;
  int64_t cpu_ns = 0;
  int64_t waits = 0;
};

// Of the looks that lie within ranges of that name, but for what passes between a range's edge and the
// look that it is due for; or of all.
Sums SumsWithin(const Trace& t, std::string_view name = {}) {
  constexpr Duration kAtEdge = Milliseconds(1);
  Sums sums;
  const CpuTimeTable& looks = t.cpu_times;
  for (uint32_t row = 0; row < looks.size(); ++row) {
    bool within = name.empty();
    for (uint32_t range = 0; range < t.ranges.size() && !within; ++range) {
      const TraceTime before = looks.begin[row] - Nanoseconds(looks.wall_ns[row]);
      within = t.Text(t.ranges.name[range]) == name && t.ranges.begin[range] - before <= kAtEdge &&
               looks.begin[row] - t.ranges.end(range) <= kAtEdge;
    }
    if (!within) continue;
    sums.wall_ns += looks.wall_ns[row];
    sums.cpu_ns += looks.cpu_ns[row];
    sums.waits += looks.waits[row];
  }
  return sums;
}

TEST(CpuTime, OfAThreadThatStepsIsWhatItUsed) {
  constexpr int kSteps = 20;
  RecordedRun run;
  ASSERT_EQ(run.Run({"workingsteps", std::to_string(kSteps)}), 0);
  const Trace trace = run.ReadOne();
  const Sums all = SumsWithin(trace);
  const int64_t truth_ns = std::stoll(run.output());
  EXPECT_NEAR(static_cast<double>(all.cpu_ns), static_cast<double>(truth_ns), 2e6);
  const Sums work = SumsWithin(trace, "work");
  const Sums sleep = SumsWithin(trace, "sleep");
  EXPECT_GE(work.cpu_ns, kSteps * 3'000'000 / 2);
  EXPECT_LE(work.cpu_ns, work.wall_ns + 1'000'000) << "in us, on two clocks";
  EXPECT_LE(sleep.cpu_ns, sleep.wall_ns / 4);
  EXPECT_GE(sleep.waits, kSteps / 2);
  EXPECT_GE(sleep.wall_ns, kSteps * 3'000'000 / 2);
  const auto is_one_threads = [&](TrackId track) { return track == trace.cpu_times.track[0]; };
  EXPECT_TRUE(
      std::all_of(trace.cpu_times.track.begin(), trace.cpu_times.track.end(), is_one_threads));
}

TEST(CpuTime, IsNotAskedForMoreOftenThanItMayCost) {
  const Trace trace = RecordWith("", {"steps", "20000"});
  const double seconds = static_cast<double>(trace.extent.Length().ns) / 1e9;
  EXPECT_LE(static_cast<double>(trace.cpu_times.size()), seconds * 5'000 + 2);
}

TEST(CpuTime, OfNoStepsIsNotAskedFor) {
  EXPECT_EQ(RecordWith("", {"bulk", "1000"}).cpu_times.size(), 0u);
}

}  // namespace
}  // namespace trainprof::testing
