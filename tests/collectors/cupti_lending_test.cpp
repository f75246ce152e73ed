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
  for (const Gap& gap : run.trace.gaps) {
    EXPECT_EQ(gap.kind, GapKind::kDevice);
    EXPECT_EQ(run.trace.strings.View(gap.reason), "another profiler has the GPU");
    for (uint32_t i = 0; i < run.trace.device_ops.size(); ++i) {
      const Interval times = run.trace.device_ops.interval(Row{i});
      EXPECT_TRUE(times.end <= gap.interval.begin || gap.interval.end <= times.begin);
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

}  // namespace
}  // namespace trainprof::testing
