// Programs that end while a device works: its records have no times then, and nothing is lost.
#include <gtest/gtest.h>

#include <memory>

#include "collectors/cupti/in_flight.h"
#include "tests/collectors/cuda_run.h"
#include "trace/recording/read/reader.h"

namespace trainprof::testing {
namespace {

using collectors::InFlight;
using recording::DeviceRow;
using recording::DeviceRowType;

DeviceRow Kernel(uint32_t correlation, uint32_t stream = 7, uint32_t context = 1) {
  DeviceRow row{};
  row.type = DeviceRowType::kKernel;
  row.correlation = correlation;
  row.stream = stream;
  row.context = context;
  return row;
}

DeviceRow Sync(uint8_t kind, uint32_t correlation, uint32_t stream = 7) {
  DeviceRow row = Kernel(correlation, stream);
  row.type = DeviceRowType::kSync;
  row.detail = kind;
  return row;
}

struct InFlightRows : ::testing::Test {
  std::unique_ptr<InFlight> rows = std::make_unique<InFlight>();
  std::vector<uint32_t> under_way;

  void Expect(uint64_t in_flight, uint64_t lost) {
    const InFlight::Rows settled = rows->Settle([&](uint32_t id) { under_way.push_back(id); });
    EXPECT_EQ(settled.in_flight, in_flight);
    EXPECT_EQ(settled.lost, lost);
  }
};

TEST_F(InFlightRows, WithoutTimesBeforeTheEndIsLost) {
  EXPECT_FALSE(rows->Take(Kernel(5)));
  Expect(0, 0);
}

TEST_F(InFlightRows, TheLastOfAStreamWereUnderWay) {
  rows->Note(Kernel(10));
  rows->ProgramEnds();
  EXPECT_TRUE(rows->Take(Kernel(11)));
  EXPECT_TRUE(rows->Take(Kernel(12)));
  rows->Note(Kernel(20, 8));  // another stream
  Expect(2, 0);
}

TEST_F(InFlightRows, WhatTheStreamHasPassedIsLost) {
  rows->ProgramEnds();
  EXPECT_TRUE(rows->Take(Kernel(11)));
  EXPECT_TRUE(rows->Take(Kernel(13)));
  rows->Note(Kernel(12));  // comes later, in another buffer
  Expect(1, 1);
}

TEST_F(InFlightRows, NodesOfAGraphHalfDoneWereUnderWay) {
  rows->ProgramEnds();
  rows->Note(Kernel(11));
  for (int node = 0; node < 100'000; ++node) ASSERT_TRUE(rows->Take(Kernel(11)));
  Expect(100'000, 0);
  EXPECT_EQ(under_way, std::vector<uint32_t>{11});
}

TEST_F(InFlightRows, WhatTheHostHasSeenEndIsLost) {
  rows->ProgramEnds();
  for (const uint32_t stream : {7u, 8u, 9u}) EXPECT_TRUE(rows->Take(Kernel(11, stream)));
  rows->Note(Sync(3, 12, 8));
  rows->Note(Sync(1, 13, 9));  // waits for an event alone
  Expect(2, 1);
  EXPECT_TRUE(rows->Take(Kernel(21)));
  rows->Note(Sync(4, 22, 0));
  EXPECT_TRUE(rows->Take(Kernel(23)));
  Expect(1, 1);
}

TEST_F(InFlightRows, IdsMayWrap) {
  rows->ProgramEnds();
  rows->Note(Kernel(0xfffffff0));
  EXPECT_TRUE(rows->Take(Kernel(5)));
  Expect(1, 0);
}

TEST_F(InFlightRows, MoreThanThereIsRoomForAreLost) {
  rows->ProgramEnds();
  uint32_t taken = 0;
  while (taken < 1'000'000 && rows->Take(Kernel(1 + taken))) ++taken;
  EXPECT_LT(taken, 1'000'000u);
  Expect(taken, 0);
}

TEST(CuptiInFlight, WhatIsUnderWayAtTheEndIsNoLoss) {
  CudaRun run;
  ASSERT_EQ(run.Run({"leaves", "5"}), 0);
  const RecordedRows rows = run.Rows();
  EXPECT_EQ(rows.Fact("cupti.in_flight_at_exit"), "5");
  EXPECT_EQ(rows.Fact("cupti.untimed"), "");
  EXPECT_EQ(rows.Fact("cupti.state"), "recording");
  EXPECT_EQ(rows.Of(DeviceRowType::kKernel).size(), 30u);
  EXPECT_EQ(rows.CountCalls("cudaLaunchKernel"), 35);
  auto ranks = recording::ReadRecording(run.directory());
  ASSERT_TRUE(ranks.ok());
  const Trace& trace = ranks.value().at(0).trace;
  EXPECT_EQ(trace.quality.CountOf("in_flight_at_exit"), 5);
  for (const QualityItem& item : trace.quality.items()) {
    EXPECT_NE(item.severity, QualitySeverity::kDataLoss) << item.kind << ": " << item.detail;
  }
}

TEST(CuptiInFlight, AProgramThatNeverWaitsLosesNothing) {
  CudaRun run;
  ASSERT_EQ(run.Run({"unfinished", "30"}), 0);
  EXPECT_EQ(run.Rows().Fact("cupti.in_flight_at_exit"), "30");
  EXPECT_EQ(run.Rows().Fact("cupti.untimed"), "");
  auto ranks = recording::ReadRecording(run.directory());
  ASSERT_TRUE(ranks.ok());
  for (const QualityItem& item : ranks.value().at(0).trace.quality.items()) {
    EXPECT_NE(item.severity, QualitySeverity::kDataLoss) << item.kind << ": " << item.detail;
  }
}

}  // namespace
}  // namespace trainprof::testing
