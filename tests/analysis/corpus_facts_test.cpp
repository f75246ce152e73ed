// Facts about real traces of others, computed independently of this code. They need the corpus
// folder (TRAINPROF_CORPUS); without it each test says so and skips.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "analysis/job/analysis.h"
#include "trace/formats/importer.h"

namespace trainprof {
namespace {

class CorpusFacts : public ::testing::Test {
 protected:
  static RankAnalysis Load(const char* file) {
    const std::filesystem::path path = std::filesystem::path(TRAINPROF_CORPUS) / file;
    Result<Trace> trace = ImportTrace(path.string());
    EXPECT_TRUE(trace.ok()) << trace.error();
    return trace.ok() ? Analyze(trace.value()) : RankAnalysis{};
  }
  void SetUp() override {
    if (std::string_view(TRAINPROF_CORPUS).empty()) {
      GTEST_SKIP() << "no corpus folder: set TRAINPROF_CORPUS";
    }
  }
};

double Busy(const RankAnalysis& rank) { return rank.DeviceShare(rank.devices.at(0).busy); }

Duration DeviceTime(const RankAnalysis& rank, DeviceClass c) {
  return rank.devices.at(0).account.at(static_cast<size_t>(c)).total;
}

const Finding* Find(const RankAnalysis& rank, std::string_view rule) {
  const auto it = std::find_if(rank.findings.begin(), rank.findings.end(),
                               [&](const Finding& f) { return f.rule == rule; });
  return it == rank.findings.end() ? nullptr : &*it;
}

void ExpectAccountsAddUp(const RankAnalysis& rank) {
  for (const DeviceReport& device : rank.devices) {
    Duration sum;
    for (const AccountLine& line : device.account) sum += line.total;
    EXPECT_EQ(sum, rank.device_window) << rank.path;
  }
  Duration host;
  for (const AccountLine& line : rank.host_account) host += line.total;
  EXPECT_EQ(host, rank.window) << rank.path;
}

TEST_F(CorpusFacts, Resnet50WithoutWorkersIsInputBound) {
  const RankAnalysis rank = Load("kineto_resnet50/workers0.pt.trace.json.gz");
  EXPECT_EQ(rank.steps.count(), 6u);
  EXPECT_NEAR(rank.steps.Median().ToMilliseconds(), 175.65, 0.05);
  // The device was behind the first step by 12 ms at its end: when it began there is not known.
  EXPECT_EQ(rank.device_steps.count(), 5u);
  EXPECT_NEAR(Busy(rank), 0.573, 0.0005);
  EXPECT_EQ(rank.devices.at(0).busy, rank.devices.at(0).busy_high);
  EXPECT_NEAR(rank.DeviceShare(rank.loader_wait.during_idle), 0.327, 0.0005);
  ASSERT_NE(Find(rank, "input-bound"), nullptr);
  EXPECT_EQ(Find(rank, "input-bound")->severity, Severity::kError);
  EXPECT_EQ(Find(rank, "input-bound")->where.at(0).line, 42);
  // What four workers then really gave: 49.7 ms of the median step.
  EXPECT_LE(Find(rank, "input-bound")->gain.low_ms_per_step, 49.7);
  EXPECT_GE(Find(rank, "input-bound")->gain.high_ms_per_step, 49.7);
  ASSERT_NE(Find(rank, "pageable-copy"), nullptr);
  EXPECT_EQ(Find(rank, "pageable-copy")->where.at(0).line, 44);
  ExpectAccountsAddUp(rank);
}

TEST_F(CorpusFacts, Resnet50WithFourWorkersIsNot) {
  const RankAnalysis rank = Load("kineto_resnet50/workers4.pt.trace.json.gz");
  EXPECT_NEAR(rank.steps.Median().ToMilliseconds(), 126.682, 0.001);
  EXPECT_NEAR(Busy(rank), 0.7258, 0.0005);
  EXPECT_NEAR(rank.DeviceShare(rank.loader_wait.during_idle), 0.008, 0.0005);
  EXPECT_EQ(Find(rank, "input-bound"), nullptr);
  EXPECT_NE(Find(rank, "pageable-copy"), nullptr);
  ExpectAccountsAddUp(rank);
}

TEST_F(CorpusFacts, DdpWithItemHasSixtyHostSyncs) {
  const RankAnalysis rank = Load("hta/ddp_item_a100.json.gz");
  EXPECT_EQ(rank.rank, 3);
  EXPECT_EQ(rank.world_size, 8);
  EXPECT_NEAR(Busy(rank), 0.835, 0.0005);
  EXPECT_NEAR(rank.DeviceShare(DeviceTime(rank, DeviceClass::kExposedCommunication)), 0.189,
              0.0005);
  ASSERT_NE(Find(rank, "host-sync"), nullptr);
  EXPECT_EQ(Find(rank, "host-sync")->count, 60);
  EXPECT_EQ(Find(rank, "input-bound"), nullptr);
  ExpectAccountsAddUp(rank);
}

TEST_F(CorpusFacts, MissingGraphNodesAreUnrecordedNotIdle) {
  const RankAnalysis rank = Load("hta/ddp_d2h_graphs_a100.json.gz");
  // The first step's begin on the device is not known: it was 162 ms behind.
  EXPECT_EQ(rank.device_steps.count(), 4u);
  EXPECT_NEAR(Busy(rank), 0.350, 0.0005);
  // 517 ms end with an operation of a graph launched before the gap began.
  EXPECT_GE(DeviceTime(rank, DeviceClass::kIdleUnrecorded).ToMilliseconds(), 517);
  EXPECT_EQ(Find(rank, "low-utilisation"), nullptr);
  EXPECT_NEAR(rank.DeviceShare(DeviceTime(rank, DeviceClass::kExposedCommunication)), 0.1505,
              0.0005);
  // What the nodes explain that are missing is no error of the replay. The 945 aten::_local_scalar_dense are of CPU
  // scalars.
  EXPECT_LT(rank.identity_error, 0.02);
  EXPECT_EQ(rank.device_doubt,
            "nodes of graphs may be missing: behind their launches 62 % of the time is open");
  // One of them may have hidden it.
  EXPECT_EQ(Find(rank, "exposed-communication"), nullptr);
  ExpectAccountsAddUp(rank);
}

TEST_F(CorpusFacts, ColdStartGivesNoSteadyStateAllocationFinding) {
  const RankAnalysis rank = Load("hta/alexnet_cold_a100.json.gz");
  for (const Finding& finding : rank.findings) {
    EXPECT_EQ(finding.title.find("lloc"), std::string::npos) << finding.title;
  }
  EXPECT_EQ(Find(rank, "low-utilisation"), nullptr);
  ExpectAccountsAddUp(rank);
}

// And what waited for what gives the steps back.
TEST_F(CorpusFacts, EveryTraceAddsUpToTheNanosecondAndIsReplayed) {
  int with_steps = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(TRAINPROF_CORPUS)) {
    const std::string path = entry.path().string();
    if (!path.ends_with(".json.gz") || path.find("not_a_trace") != std::string::npos) continue;
    const Result<Trace> trace = ImportTrace(path);
    ASSERT_TRUE(trace.ok()) << trace.error();
    const RankAnalysis rank = Analyze(trace.value());
    ExpectAccountsAddUp(rank);
    if (rank.device_steps.count() == 0) continue;
    EXPECT_LE(rank.identity_error, 0.02) << path;
    ++with_steps;
  }
  EXPECT_GE(with_steps, 15);
}

}  // namespace
}  // namespace trainprof
