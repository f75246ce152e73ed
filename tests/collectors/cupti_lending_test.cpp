// torch.profiler in the same process: it and we have CUPTI in turn, by agreement or without.
#include <gtest/gtest.h>

#include <future>
#include <map>

#include "tests/collectors/cuda_run.h"

namespace trainprof::testing {
namespace {

using recording::DeviceRowType;

struct Lent {
  RecordedRows rows;
  Trace trace;
  std::string output;
};

// 50 kernels in each of the stretches before, while, after, while and after the other has CUPTI.
Lent RunBeside(const std::string& how, const std::string& version = "13.0",
               const std::string& client = "second_client") {
  CudaRun run;
  run.environment["VGPU_CUPTI_VERSION"] = version;
  EXPECT_EQ(run.Run({client, "50", how}), 0) << how;
  return {run.Rows(), run.ReadOne(), run.output()};
}

void ExpectOursOutsideOfGaps(const Lent& run, int64_t stretches) {
  EXPECT_EQ(run.rows.Of(DeviceRowType::kKernel).size(), static_cast<size_t>(50 * stretches));
  EXPECT_EQ(run.rows.CountCalls("cudaLaunchKernel"), 50 * stretches);
  EXPECT_EQ(run.rows.damaged, 0);
  EXPECT_EQ(run.rows.dropped, 0u);
  for (const char* loss : {"cupti.dropped", "cupti.untimed", "cupti.unreadable_bytes"}) {
    EXPECT_EQ(run.rows.Fact(loss), "") << loss;
  }
  EXPECT_EQ(run.rows.Fact("cupti.state"), "recording");
  EXPECT_EQ(run.rows.gaps_begun, 0) << "the schedule has no part in it";
  ASSERT_EQ(run.trace.gaps.size(), 2u);
  // Of the device's clock, whichever way (docs/virtual_gpu.md, VGPU_HARD).
  const Duration error = HardGpu() ? Microseconds(10) : Nanoseconds(0);
  for (const Gap& gap : run.trace.gaps) {
    EXPECT_EQ(gap.kind, GapKind::kDevice);
    EXPECT_EQ(run.trace.strings.View(gap.reason), "another profiler has the GPU");
    for (uint32_t i = 0; i < run.trace.device_ops.size(); ++i) {
      const Interval times = run.trace.device_ops.interval(Row{i});
      EXPECT_TRUE(times.end <= gap.interval.begin + error ||
                  gap.interval.end <= times.begin + error);
    }
  }
  for (const QualityItem& item : run.trace.quality.items()) {
    EXPECT_NE(item.severity, QualitySeverity::kDataLoss) << item.kind << ": " << item.detail;
  }
}

TEST(CuptiLending, BothHaveTheirRecordsAndAGapSaysWhoseTheRestAre) {
  for (const char* how : {"leaves", "stays", "without"}) {
    SCOPED_TRACE(how);
    const Lent run = RunBeside(how);
    EXPECT_EQ(run.output, "output\nsecond client: 100 kernels\n");
    EXPECT_EQ(run.rows.lent_ticks.size(), 4u);
    ExpectOursOutsideOfGaps(run, 3);
  }
}

TEST(CuptiLending, OtherVersionsToo) {
  for (const char* version : {"12.4", "13.0.0", "13.1"}) {
    SCOPED_TRACE(version);
    const Lent run = RunBeside("stays", version);
    EXPECT_EQ(run.output, "output\nsecond client: 100 kernels\n");
    ExpectOursOutsideOfGaps(run, 3);
  }
}

// What CUDA does before, from its first use on, is the other's, or nobody's.
TEST(CuptiLending, ItMayBeLentBeforeCudaStarts) {
  const Lent run = RunBeside("early");
  EXPECT_EQ(run.output, "output\nsecond client: 100 kernels\n");
  ExpectOursOutsideOfGaps(run, 2);
}

// One that does not unsubscribe leaves us without callbacks, which is told.
TEST(CuptiLending, WhatASubscriberThatStaysCostsIsTold) {
  EXPECT_NE(RunBeside("stays").rows.Fact("cupti.refused").find("after torch.profiler"),
            std::string::npos);
  EXPECT_EQ(RunBeside("leaves").rows.Fact("cupti.refused"), "");
}

std::string DetailOf(const Lent& run, std::string_view kind) {
  for (const QualityItem& item : run.trace.quality.items()) {
    if (item.kind == kind) return item.detail;
  }
  return "";
}

TEST(CuptiTakeover, IsNoticedAndWhatFollowsIsOursAgain) {
  std::map<const char*, std::future<Lent>> runs;  // of some seconds of waiting each
  for (const char* version : {"12.4", "13.0", "13.1"}) {
    runs[version] = std::async(RunBeside, "leaves", version, "rude_client");
  }
  for (auto& [version, running] : runs) {
    SCOPED_TRACE(version);
    const Lent run = running.get();
    EXPECT_EQ(run.output, "output\nrude client: 200 kernels, intact\n");
    ExpectOursOutsideOfGaps(run, 3);
    EXPECT_EQ(run.rows.Fact("cupti.taken_over"), "2");
    EXPECT_NE(DetailOf(run, "cupti_taken_over"), "");
  }
}

TEST(CuptiTakeover, NothingIsTakenBackFromOneThatStaysAtIt) {
  // 12.1 does not show that the other has left.
  for (const auto& [how, version] : {std::pair{"keeps", "13.0"}, std::pair{"leaves", "12.1"}}) {
    SCOPED_TRACE(how);
    const Lent run = RunBeside(how, version, "rude_client");
    EXPECT_EQ(run.output, std::string("output\nrude client: ") + (how[0] == 'k' ? "100" : "200") +
                              " kernels, intact\n");
    EXPECT_EQ(run.rows.Of(DeviceRowType::kKernel).size(), 50u);
    ASSERT_EQ(run.trace.gaps.size(), 1u);
    EXPECT_NE(DetailOf(run, "gpu_recording_ended").find("has taken CUPTI over"), std::string::npos);
  }
}

// Others that name their subscriber, as we do then.
Lent RunSharing(const std::string& how, const std::string& version, const char* scope = "") {
  CudaRun run;
  run.environment["VGPU_CUPTI_VERSION"] = version;
  run.environment["VGPU_SETTINGS"] = "driver_version=13030";
  run.environment["TRAINPROF_CUPTI_SCOPE"] = scope;
  EXPECT_EQ(run.Run({"sharing_client", "50", how}), 0) << how;
  return {run.Rows(), run.ReadOne(), run.output()};
}

void ExpectAllIsOurs(const Lent& run, size_t kernels) {
  EXPECT_EQ(run.rows.Of(DeviceRowType::kKernel).size(), kernels);
  EXPECT_EQ(run.rows.CountCalls("cudaLaunchKernel"), static_cast<int64_t>(kernels));
  EXPECT_EQ(run.rows.Fact("cupti.state"), "recording");
  EXPECT_EQ(run.rows.Fact("cupti.refused"), "");
  EXPECT_TRUE(run.trace.gaps.empty());
  for (const QualityItem& item : run.trace.quality.items()) {
    EXPECT_NE(item.severity, QualitySeverity::kDataLoss) << item.kind << ": " << item.detail;
  }
}

TEST(CuptiSharing, BothHaveAll) {
  for (const char* version : {"13.3", "13.4", "13.5"}) {
    SCOPED_TRACE(version);
    const Lent run = RunSharing("later", version);
    EXPECT_EQ(run.output, "output\nsharing client: 100 kernels, refused: 0\n");
    EXPECT_EQ(run.rows.Fact("cupti.scope"), "subscriber");
    ExpectAllIsOurs(run, 200);
  }
}

// Also where we would not by ourselves.
TEST(CuptiSharing, WhoIsThereFirstDecides) {
  for (const char* scope : {"subscriber", "process"}) {
    SCOPED_TRACE(scope);
    const Lent run = RunSharing("first", "13.4", scope);
    EXPECT_EQ(run.output, "output\nsharing client: 100 kernels, refused: 0\n");
    EXPECT_EQ(run.rows.Fact("cupti.scope"), "subscriber");
    ExpectAllIsOurs(run, 200);
  }
}

TEST(CuptiSharing, IsNotWhereCuptiOrTheDriverCannot) {
  const Lent old = RunSharing("later", "13.2");
  EXPECT_EQ(old.output, "output\nsharing client: 0 kernels, refused: 39\n");
  const Lent told = RunSharing("later", "13.5", "process");
  EXPECT_EQ(told.output, "output\nsharing client: 0 kernels, refused: 39\n");
  for (const Lent* run : {&old, &told}) {
    EXPECT_EQ(run->rows.Fact("cupti.scope"), "");
    ExpectAllIsOurs(*run, 100);
  }
}

// A forced flush would give it records without times.
TEST(CuptiSharing, OurEndLeavesTheOthersRecordsAlone) {
  EXPECT_EQ(RunSharing("stays", "13.5").output, "output\n0 without times\n");
}

// After torch.profiler, which names no subscriber, we do not either: it may have left that set.
TEST(CuptiSharing, IsGivenUpForOneThatNamesNoSubscriber) {
  for (const char* how : {"leaves", "stays", "without", "early"}) {
    SCOPED_TRACE(how);
    CudaRun run;
    run.environment["VGPU_CUPTI_VERSION"] = "13.5";
    run.environment["VGPU_SETTINGS"] = "driver_version=13030";
    ASSERT_EQ(run.Run({"second_client", "50", how}), 0);
    const Lent lent = {run.Rows(), run.ReadOne(), run.output()};
    EXPECT_EQ(lent.output, "output\nsecond client: 100 kernels\n");
    ExpectOursOutsideOfGaps(lent, std::string(how) == "early" ? 2 : 3);
  }
}

}  // namespace
}  // namespace trainprof::testing
