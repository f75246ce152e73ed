// When GPU detail is recorded, and what bounds it.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>

#include "collectors/cupti/schedule.h"
#include "tests/collectors/cuda_run.h"

namespace trainprof::testing {
namespace {

using collectors::Schedule;
using collectors::ScheduleInput;
using recording::DeviceRowType;

constexpr int64_t kSecond = recording::kNsPerSecond;

// The steps, from 1, at which recording goes on and off where each takes so long. Asked as the collector
// asks: when a step begins that NextStep() names, at NextNs(), and each second.
std::vector<uint64_t> SwitchedAt(int64_t step_ns, uint64_t steps) {
  Schedule schedule{};
  schedule.Start({}, {0, 0, true});
  std::vector<uint64_t> switched;
  bool open = true;
  int64_t next_second = 0;
  for (uint64_t step = 1; step <= steps; ++step) {
    const auto begin = static_cast<int64_t>(step) * step_ns;
    const auto ask = [&](int64_t now) {
      const bool want = schedule.Want({now, step, true});
      if (want != open) switched.push_back(step);
      open = want;
    };
    if (step == 1 || step == schedule.NextStep()) ask(begin);
    int asked = 0;
    for (;;) {
      const int64_t now = std::min(next_second, schedule.NextNs());
      if (now >= begin + step_ns) break;
      EXPECT_LT(++asked, 100) << "it may not ask for ever";
      if (asked == 100) return switched;
      ask(std::max(now, begin));
      if (now == next_second) next_second += kSecond;
    }
  }
  return switched;
}

TEST(CuptiSchedule, FortyStepsThenTenAtAHundredAndSixtyAtHalfAMinuteAndEveryFiveMinutes) {
  const std::vector<uint64_t> fast = SwitchedAt(kSecond / 100, 70'000);
  ASSERT_GE(fast.size(), 8u);
  EXPECT_EQ(fast[0], 41u) << "warm-up and 30 steps are whole";
  EXPECT_EQ(fast[1], 160u);
  EXPECT_EQ(fast[2], 171u) << "ten whole steps";
  EXPECT_NEAR(static_cast<double>(fast[3]), 3000, 3) << "half a minute";
  EXPECT_EQ(fast[4] - fast[3], 11u);
  EXPECT_NEAR(static_cast<double>(fast[5]), 33'000, 20) << "five minutes after that";
  EXPECT_EQ(fast[6] - fast[5], 11u);
  EXPECT_NEAR(static_cast<double>(fast[7] - fast[5]), 30'000, 20);
}

TEST(CuptiSchedule, WhatIsRecordedAnywayIsNotSampledAgain) {
  // The first forty last beyond half a minute.
  const std::vector<uint64_t> slow = SwitchedAt(kSecond, 1000);
  ASSERT_GE(slow.size(), 5u);
  EXPECT_EQ(slow[0], 41u);
  EXPECT_EQ(slow[1], 160u);
  EXPECT_EQ(slow[2], 171u);
  EXPECT_NEAR(static_cast<double>(slow[3]), 171 + 301, 2);
  EXPECT_EQ(slow[4] - slow[3], 11u);
  // Half a minute lies within the sample at step 160.
  const std::vector<uint64_t> middling = SwitchedAt(30 * kSecond / 165, 2000);
  ASSERT_GE(middling.size(), 4u);
  EXPECT_EQ(middling[2], 171u);
  EXPECT_NEAR(static_cast<double>(middling[3]), 171 + 10 * 165, 5);
}

TEST(CuptiSchedule, WithoutStepsByTime) {
  Schedule schedule{};
  schedule.Start({}, {0, 0, true});
  int64_t recorded = 0;
  for (int64_t t = 0; t < 1000; ++t) recorded += schedule.Want({t * kSecond, 0, true}) ? 1 : 0;
  EXPECT_EQ(recorded, 60 + 3 * 10);
}

TEST(CuptiSchedule, LateStepsStillGetTheirFirstForty) {
  Schedule schedule{};
  schedule.Start({}, {0, 0, true});
  EXPECT_TRUE(schedule.Want({0, 0, true}));
  EXPECT_FALSE(schedule.Want({90 * kSecond, 0, true}));
  EXPECT_EQ(schedule.NextStep(), 1u) << "woken by the first one";
  EXPECT_TRUE(schedule.Want({100 * kSecond, 1, true}));
  EXPECT_TRUE(schedule.Want({139 * kSecond, 40, true}));
  EXPECT_FALSE(schedule.Want({140 * kSecond, 41, true}));
  EXPECT_EQ(schedule.NextStep(), 160u);
}

// Three steps of warm-up, then a CUDA graph runs them. Recorded in full it would fill the disk.
TEST(CuptiSchedule, StepsThatCeaseAreSampledByTime) {
  Schedule schedule{};
  schedule.Start({}, {0, 0, true});
  int64_t recorded = 0;
  for (int64_t t = 0; t < 1000; ++t) {
    const uint64_t steps = t < 3 ? 0 : std::min<uint64_t>(3, static_cast<uint64_t>(t - 2));
    recorded += schedule.Want({t * kSecond, steps, true}) ? 1 : 0;
    EXPECT_GT(schedule.NextNs(), t * kSecond);
  }
  EXPECT_NEAR(static_cast<double>(recorded), 15 + 3 * 10, 2) << "each five minutes ten seconds";
  // They come again: the first forty go on.
  EXPECT_TRUE(schedule.Want({1001 * kSecond, 4, true}));
  EXPECT_TRUE(schedule.Want({1002 * kSecond, 40, true}));
  EXPECT_FALSE(schedule.Want({1003 * kSecond, 43, true}));
}

TEST(CuptiSchedule, ASampleThatNoStepBringsComesAllTheSame) {
  Schedule schedule{};
  schedule.Start({}, {0, 0, true});
  int64_t t = 0;
  for (; t < 20; ++t) schedule.Want({t * kSecond, static_cast<uint64_t>(10 * t), true});
  int64_t recorded = 0;
  for (; t < 1000; ++t) recorded += schedule.Want({t * kSecond, 190, true}) ? 1 : 0;
  EXPECT_NEAR(static_cast<double>(recorded), 4 * 10, 2) << "at half a minute, then each five";
}

TEST(CuptiSchedule, SlowStepsDoNotCease) {
  const std::vector<uint64_t> slow = SwitchedAt(30 * kSecond, 60);
  ASSERT_GE(slow.size(), 3u);
  EXPECT_EQ(slow[0], 1u) << "before the second one nobody knows how slow they are";
  EXPECT_EQ(slow[1], 2u);
  EXPECT_EQ(slow[2], 41u);
}

TEST(CuptiSchedule, AWindowOfTheUsersIsRecordedWholeAndAStepAhead) {
  Schedule schedule{};
  schedule.Start({true, true, 100, 0}, {0, 0, false});
  EXPECT_FALSE(schedule.Want({0, 99, false}));
  EXPECT_EQ(schedule.NextStep(), 100u);
  EXPECT_TRUE(schedule.Want({0, 100, false})) << "step 99 has begun";
  EXPECT_TRUE(schedule.Want({900 * kSecond, 500, true}));
  EXPECT_FALSE(schedule.Want({900 * kSecond, 501, false}));
}

// Longer than a busy machine lets the thread that opens and closes the window wait for a processor.
constexpr char kStepMs[] = "20";

TEST(CuptiWindow, StepsBeyondTheFirstFortyAreLeftOutAndAGapSaysSo) {
  CudaRun run;
  ASSERT_EQ(run.Run({"steps", "80", kStepMs}), 0);
  const RecordedRows rows = run.Rows();
  const size_t kernels = rows.Of(DeviceRowType::kKernel).size();
  EXPECT_GE(kernels, 40u);
  EXPECT_LE(kernels, 45u);
  EXPECT_EQ(rows.gaps_begun, 1);
  CudaRun full;
  full.environment[recording::kEnvOptions] = "full=1";
  ASSERT_EQ(full.Run({"steps", "80"}), 0);
  EXPECT_EQ(full.Rows().Of(DeviceRowType::kKernel).size(), 80u);
  EXPECT_EQ(full.Rows().gaps_begun, 0);
}

TEST(CuptiWindow, StepsAskedForAreThereWhole) {
  CudaRun run;
  run.environment[recording::kEnvOptions] = "steps=20:30";
  ASSERT_EQ(run.Run({"steps", "60", kStepMs}), 0);
  const RecordedRows rows = run.Rows();
  // Kernels and calls are switched on and off one after the other: between the two, at the window's
  // edges, a kernel may lack its call.
  for (const auto count : {static_cast<int64_t>(rows.Of(DeviceRowType::kKernel).size()),
                           rows.CountCalls("cudaLaunchKernel")}) {
    EXPECT_GE(count, 10);
    EXPECT_LE(count, 13);
  }
  EXPECT_EQ(rows.gaps_ended, 1);
  EXPECT_EQ(rows.gaps_begun, 2);
}

struct Edge {
  const char* name;
  const char* version;
  const char* faults;
  const char* settings = "";
  const char* pause_ms = "250";
  const char* kernel_ns = "120000";
};
void PrintTo(const Edge& edge, std::ostream* out) { *out << edge.version << " " << edge.faults; }
class CuptiWindowEnds : public ::testing::TestWithParam<Edge> {};

// Of a launch and of those around it: which call it is, and when its kernel ran.
std::string WhatIsKnownOf(uint32_t launch, const RecordedRows& rows) {
  std::ostringstream text;
  text << "launch " << launch;
  const auto is_near = [&](uint32_t id) { return id + 4 >= launch && id <= launch + 4; };
  for (const recording::CallRow& call : rows.calls) {
    if (!is_near(call.correlation)) continue;
    text << "\n  call " << call.correlation << " " << rows.names[call.name] << " of " << call.tid
         << " " << call.begin_ns << " to " << call.end_ns;
  }
  for (const recording::DeviceRow& row : rows.device) {
    if (!is_near(row.correlation)) continue;
    text << "\n  row of kind " << static_cast<int>(row.type) << " of " << row.correlation << " "
         << row.begin_ns << " to " << row.end_ns;
  }
  for (const auto& [key, value] : rows.facts) text << "\n  " << key << ": " << value;
  return text.str();
}

// A dozen windows a run, each closed while work is under way, and most of the launches are in buffers that
// CUPTI has not delivered. Or the device is far behind, and the next window begins before the last one
// has ended.
TEST_P(CuptiWindowEnds, WithoutAHangALostLaunchOrAKernelLongerThanItWas) {
  CudaRun run;
  run.environment[recording::kEnvOptions] = std::string("pause_ms=") + GetParam().pause_ms;
  run.environment["VGPU_CUPTI_VERSION"] = GetParam().version;
  run.environment["VGPU_FAULTS"] = GetParam().faults;
  run.environment["VGPU_SETTINGS"] = GetParam().settings;
  ASSERT_EQ(run.Run({"loaded", "5000", GetParam().kernel_ns}), 0);
  const RecordedRows rows = run.Rows();
  EXPECT_EQ(rows.Fact("cupti.state"), "recording");
  EXPECT_GE(rows.gaps_ended, kIsSanitized ? 2 : 8);
  std::set<uint32_t> answered;
  for (const recording::DeviceRow& kernel : rows.Of(DeviceRowType::kKernel)) {
    answered.insert(kernel.correlation);
    // As long as it takes, and twice as long where the other stream's run beside it.
    EXPECT_LT(kernel.end_ns - kernel.begin_ns, 2'000'000) << kernel.correlation;
  }
  std::set<uint32_t> launched;
  for (const recording::CallRow& call : rows.calls) {
    if (rows.names[call.name] == "cudaLaunchKernel") launched.insert(call.correlation);
  }
  EXPECT_GT(launched.size(), 100u);
  for (const uint32_t launch : launched) {
    EXPECT_TRUE(answered.count(launch)) << WhatIsKnownOf(launch, rows);
  }
  // What was launched between windows, several times as much, takes no room but for some at their edges.
  size_t alone = 0;
  for (const uint32_t kernel : answered) alone += launched.count(kernel) == 0 ? 1 : 0;
  // Unless the next window begins before the last one has ended: then CUPTI delivers them many pauses late.
  const bool ends = std::string_view(GetParam().name) != "GoesOnMeanwhile";
  if (ends) {
    EXPECT_LT(alone, launched.size() / 2);
  }
  EXPECT_EQ(rows.Fact("cupti.untimed"), "");
}

INSTANTIATE_TEST_SUITE_P(
    Versions, CuptiWindowEnds,
    ::testing::Values(Edge{"Plain", "13.1", ""}, Edge{"DisableHolds", "13.1", "disable_holds"},
                      Edge{"CompleteAtFlush", "12.8", "disable_holds,complete_at_flush"},
                      Edge{"DisableHangs", "13.0.0", "disable_hangs"},
                      Edge{"BesideOthers", "13.5", "disable_holds", "driver_version=13030"},
                      Edge{"GoesOnMeanwhile", "13.1", "disable_holds", "", "100", "300000"}),
    [](const auto& edge) { return std::string(edge.param.name); });

TEST(CuptiWindow, WorkThatIsNotWaitedForIsCountedAndRecordingGoesOn) {
  CudaRun run;
  run.environment[recording::kEnvOptions] = "duration_ms=600";
  ASSERT_EQ(run.Run({"behind", "60"}), 0);
  const RecordedRows rows = run.Rows();
  EXPECT_EQ(rows.Fact("cupti.state"), "recording");
  EXPECT_EQ(rows.CountCalls("cudaLaunchKernel"), 61);
  EXPECT_EQ(rows.Of(DeviceRowType::kKernel).size(), 0u);
  EXPECT_EQ(rows.Fact("cupti.untimed"), "61");
}

// A queue of some three seconds, of which the device does a kernel each 30 ms.
TEST(CuptiWindow, WorkIsWaitedForAsLongAsTheDeviceGetsOn) {
  CudaRun run;
  run.environment[recording::kEnvOptions] = "duration_ms=600";
  ASSERT_EQ(run.Run({"kernels", "120", "30000000"}), 0);
  const RecordedRows rows = run.Rows();
  EXPECT_EQ(rows.gaps_begun, 1);
  EXPECT_EQ(rows.CountCalls("cudaLaunchKernel"), 120);
  EXPECT_EQ(rows.Of(DeviceRowType::kKernel).size(), 120u);
  EXPECT_EQ(rows.Fact("cupti.untimed"), "");
}

TEST(CuptiWindow, DelayRunsWithoutNvtx) {
  CudaRun run;
  run.environment[recording::kEnvOptions] = "delay_ms=60000";
  ASSERT_EQ(run.Run({"kernels", "100"}), 0);
  EXPECT_EQ(run.Rows().Of(DeviceRowType::kKernel).size(), 0u);
}

TEST(CuptiBound, IsKeptAndWhatIsMissingIsCounted) {
  constexpr uint64_t kBound = 8 << 20;
  CudaRun run(kBound);
  run.environment["VGPU_SETTINGS"] = "scale=0";
  ASSERT_EQ(run.Run({"kernels", "200000"}), 0);
  EXPECT_LE(run.BytesOfSegments(), kBound);
  const RecordedRows rows = run.Rows();
  EXPECT_GT(rows.Of(DeviceRowType::kKernel).size(), 10'000u);
  EXPECT_GT(rows.dropped, 0u);
  if (HardGpu()) return;  // all comes at the end
  EXPECT_EQ(rows.gaps_begun, 1) << "recording stops where there is no room";
}

// CUPTI keeps every buffer until the end: more than the ring may hold.
TEST(CuptiBound, OfMemoryIsKeptWhateverCuptiHolds) {
  if (kIsSanitized) GTEST_SKIP() << "all it asks is of memory, and ci asks it";
  constexpr int64_t kKernels = 1'300'000;
  for (const char* version : {"13.0", "12.4"}) {  // may refuse a buffer; would crash without one
    CudaRun run;
    run.environment["VGPU_SETTINGS"] = "scale=0";
    run.environment["VGPU_FAULTS"] = "withheld_until_exit";
    run.environment["VGPU_CUPTI_VERSION"] = version;
    run.environment[recording::kEnvOptions] = "full=1";
    ASSERT_EQ(run.Run({"kernels", std::to_string(kKernels)}), 0) << version;
    uint64_t slot_bytes = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(run.directory())) {
      if (entry.path().extension() == ".slots") slot_bytes += entry.file_size();
    }
    EXPECT_LE(slot_bytes, 257u << 20) << version;
    const RecordedRows rows = run.Rows();
    const auto kernels = static_cast<int64_t>(rows.Of(DeviceRowType::kKernel).size());
    EXPECT_GT(kernels, 500'000) << version;
    EXPECT_LT(kernels, kKernels) << version;
    EXPECT_NE(rows.Fact("cupti.refused_buffers"), "") << version;
    EXPECT_NE(rows.Fact("cupti.dropped") + rows.Fact("cupti.overwritten_bytes"), "") << version;
  }
}

}  // namespace
}  // namespace trainprof::testing
