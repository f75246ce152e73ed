// When GPU detail is recorded, and what bounds it.
#include <gtest/gtest.h>

#include <filesystem>

#include "collectors/cupti/schedule.h"
#include "tests/collectors/cuda_run.h"

namespace trainprof::testing {
namespace {

using collectors::Schedule;
using collectors::ScheduleInput;
using recording::DeviceRowType;

constexpr int64_t kSecond = recording::kNsPerSecond;

TEST(CuptiSchedule, FortyStepsThenTenEveryFiveMinutes) {
  Schedule schedule{};
  schedule.Start({}, {0, 0, true});
  std::vector<uint64_t> opened;
  std::vector<uint64_t> closed;
  bool open = true;
  for (uint64_t step = 1; step <= 2000; ++step) {  // one a second
    const bool want = schedule.Want({static_cast<int64_t>(step) * kSecond, step, true});
    if (want != open) (want ? opened : closed).push_back(step);
    open = want;
  }
  EXPECT_EQ(closed.at(0), 41u) << "warm-up and 30 steps are whole";
  EXPECT_EQ(opened.at(0), 41u + 301) << "with a step, past the pause";
  EXPECT_EQ(closed.at(1) - opened.at(0), 11u) << "ten whole steps";
  EXPECT_EQ(opened.at(1) - closed.at(1), 301u);
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
}

TEST(CuptiSchedule, AWindowOfTheUsersIsRecordedWholeAndAStepAhead) {
  Schedule schedule{};
  schedule.Start({true, true, 100}, {0, 0, false});
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
