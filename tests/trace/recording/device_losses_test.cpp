// What is told of device rows that are missing, late, or cannot be true.
#include <gtest/gtest.h>

#include "tests/support/trace_text.h"
#include "tests/trace/recording/device_rows_fixture.h"
#include "tests/trace/recording/rows_of.h"

namespace trainprof::testing {
namespace {

using namespace recording;

class DeviceLosses : public DeviceRows {};

std::string DetailOf(const Trace& trace, std::string_view kind) {
  for (const QualityItem& item : trace.quality.items()) {
    if (item.kind == kind) return item.detail;
  }
  return {};
}

TEST_F(DeviceLosses, LaunchesWithoutAnyKernelSayWhy) {
  const uint32_t name = writer_.String("cudaLaunchKernel");
  for (uint32_t i = 1; i <= 3; ++i) writer_.Row(CallOf(10 * i, 10 * i + 5, i, name));
  CallRow failed = CallOf(90, 95, 4, name);
  failed.result = 9;
  writer_.Row(failed);
  writer_.Fact("cupti.state", "CUPTI is held by 'nsys'.");
  const Trace t = Read();
  EXPECT_EQ(t.quality.CountOf("launches_without_kernel"), 3);
  EXPECT_EQ(DetailOf(t, "launches_without_kernel"),
            "3 launches but 0 kernel records: CUPTI is held by 'nsys'.");
  EXPECT_EQ(t.environment.back(),
            (std::pair<std::string, std::string>("cupti.state", "CUPTI is held by 'nsys'.")));
}

// Copies had their records: the launches behind them are not on their way.
TEST_F(DeviceLosses, LaunchesWithoutAnyKernelAreToldAmongOtherRecordsToo) {
  writer_.Row(CallOf(10, 15, 1, writer_.String("cudaMemsetAsync")));
  writer_.Row(RowOf(DeviceRowType::kMemset, 20, 30, 1));
  writer_.Row(CallOf(40, 45, 2, writer_.String("cudaLaunchKernel")));
  const Trace t = Read();
  EXPECT_EQ(t.quality.CountOf("undelivered_at_end"), 0);
  EXPECT_EQ(DetailOf(t, "launches_without_kernel"),
            "1 launches but 0 kernel records: the cause is not recorded");
  EXPECT_TRUE(t.gaps.empty());
}

TEST_F(DeviceLosses, CallsThatFailedAreToldByTheirNameAndError) {
  CallRow full = CallOf(10, 20, 1, writer_.String("cudaMalloc"));
  full.result = 2;
  CallRow busy = CallOf(30, 40, 2, writer_.String("cudaEventQuery"));
  busy.result = 600;  // not ready: an answer, no failure
  CallRow strange = CallOf(50, 60, 3, writer_.String("cudaLaunchKernel"));
  strange.result = 98;
  for (const CallRow& row : {full, busy, strange}) writer_.Row(row);
  const Trace t = Read();
  EXPECT_EQ(t.quality.CountOf("failed_calls"), 2);
  EXPECT_EQ(DetailOf(t, "failed_calls"),
            "1 x cudaMalloc gives error 2 (out of memory); 1 x cudaLaunchKernel gives error 98");
}

TEST_F(DeviceLosses, WaitsWithoutRecordsOfThemAreTold) {
  writer_.Row(CallOf(10, 20, 1, writer_.String("cudaDeviceSynchronize")));
  writer_.Row(RowOf(DeviceRowType::kMemset, 0, 5, 9));
  DeviceRow function = RowOf(DeviceRowType::kSync, 5, 8, 10);
  function.detail = kHostFunctionSync;  // another kind of CUPTI's
  writer_.Row(function);
  EXPECT_EQ(Read().quality.CountOf("no_sync_records"), 1);
}

TEST_F(DeviceLosses, WhatCuptiRefusedIsToldInItsWords) {
  writer_.Fact("cupti.refused", "a gives 1; b gives 2");
  writer_.Fact("cupti.setup_us", "512345");
  writer_.Fact("cupti.largest_undelivered_ms", "4210");
  const Trace t = Read();
  EXPECT_EQ(t.quality.CountOf("cupti_calls_refused"), 2);
  EXPECT_EQ(DetailOf(t, "cupti_calls_refused"), "a gives 1; b gives 2");
  EXPECT_EQ(DetailOf(t, "slow_cupti_setup"),
            "CUPTI set-up took 512 ms; the step that it fell into is set aside");
  EXPECT_EQ(DetailOf(t, "late_delivery"),
            "CUPTI held records back for up to 4.2 s; a kill loses as much");
}

TEST_F(DeviceLosses, LostRecordsAreCountedByKind) {
  writer_.Fact("cupti.dropped", "17");
  writer_.Row(
      RowOf(DeviceRowType::kMemset, -SegmentWriter::kOriginNs, 10, 2));  // begins at 0 of the clock
  const Trace t = Read();
  EXPECT_EQ(t.quality.CountOf("dropped_device_records"), 17);
  EXPECT_EQ(t.quality.CountOf("zero_start_records"), 1);
  EXPECT_EQ(t.device_ops.size(), 0u);
}

TEST_F(DeviceLosses, TimesThatCannotBeAreLoss) {
  const uint32_t name = writer_.String("cudaLaunchKernel");
  const int64_t ms = 1'000'000;
  const auto add = [&](uint32_t correlation, int64_t launch, int64_t begin, int64_t end) {
    writer_.Row(CallOf(launch, launch + 5, correlation, name));
    writer_.Row(RowOf(DeviceRowType::kKernel, begin, end, correlation));
  };
  add(1, 5 * ms, 6 * ms, 7 * ms);
  add(2, 5 * ms, 4 * ms + 1, 7 * ms);  // interpolated times are a little off
  add(3, 5 * ms, 4 * ms - 1, 7 * ms);
  add(4, 5 * ms, 7 * ms, 7 * ms - 1);
  const Trace t = Read();
  EXPECT_EQ(t.device_ops.size(), 3u);
  EXPECT_EQ(t.quality.CountOf("device_before_launch"), 1);
  EXPECT_EQ(t.quality.CountOf("reversed_records"), 1);
  EXPECT_EQ(t.quality.CountOf("launches_without_kernel"), 0) << "it was answered";
  for (const QualityItem& item : t.quality.items()) {
    EXPECT_EQ(item.severity, QualitySeverity::kDataLoss) << item.kind;
  }
}

// What is launched between the two calls of a capture, on whichever thread, becomes a graph's node.
TEST_F(DeviceLosses, CapturedLaunchesAreNone) {
  const uint32_t launch = writer_.String("cudaLaunchKernel");
  const uint32_t begin = writer_.String("cudaStreamBeginCapture");
  const uint32_t end = writer_.String("cuStreamEndCapture");
  int64_t at = 0;
  const auto call = [&](uint32_t correlation, uint32_t name, uint32_t result = 0) {
    at += 10;
    CallRow row = CallOf(at, at + 5, correlation, name);
    row.result = result;
    writer_.Row(row);
  };
  call(2, launch);  // of a capture that began before calls were recorded
  call(3, end);
  call(4, launch);  // lost
  call(5, begin, 900);
  call(6, launch);  // lost: no capture began
  call(7, begin);
  call(8, launch);
  call(9, begin);  // of another stream
  call(10, launch);
  call(11, end);
  call(12, launch);
  call(13, end, 901);
  call(14, launch);
  writer_.Row(RowOf(DeviceRowType::kKernel, 1000, 1100, 14));
  call(15, begin);
  call(16, launch);  // goes on when the recording ends
  const Trace t = Read();
  EXPECT_EQ(t.quality.CountOf("captured_launches"), 5);
  EXPECT_EQ(t.quality.CountOf("launches_without_kernel"), 2);
  EXPECT_EQ(t.quality.CountOf("undelivered_at_end"), 0);
}

// Their records answer launches, too: of themselves, and of graphs that have no other node.
TEST_F(DeviceLosses, HostFunctionsThatNoRecordTellsOfAreCountedWhereCuptiTells) {
  const auto host_function = [](int64_t at, uint32_t correlation) {
    DeviceRow row = RowOf(DeviceRowType::kSync, at, at + 5, correlation);
    row.detail = kHostFunctionSync;
    return row;
  };
  const uint32_t launch = writer_.String("cudaLaunchHostFunc");
  const uint32_t graph = writer_.String("cudaGraphLaunch");
  writer_.Row(RowOf(DeviceRowType::kMemset, 0, 5, 99));
  writer_.Row(CallOf(10, 12, 1, launch));
  writer_.Row(host_function(15, 1));
  writer_.Row(CallOf(20, 22, 2, writer_.String("cuLaunchHostFunc_v2")));
  writer_.Row(CallOf(30, 32, 3, writer_.String("cudaStreamBeginCapture")));
  writer_.Row(CallOf(40, 42, 4, launch));
  writer_.Row(CallOf(50, 52, 5, writer_.String("cudaStreamEndCapture")));
  writer_.Row(CallOf(60, 62, 6, graph));  // lost
  writer_.Row(CallOf(70, 72, 7, graph));
  writer_.Row(host_function(75, 7));
  CallRow failed = CallOf(80, 82, 8, launch);
  failed.result = 1;
  writer_.Row(failed);
  writer_.Row(RowOf(DeviceRowType::kMemset, 90, 95, 100));
  const auto count = [&](const char* version) {
    writer_.Fact("cupti.version", version);
    const Trace t = Read();
    EXPECT_EQ(t.quality.CountOf("graph_launches_without_nodes") +
                  t.quality.CountOf("launches_without_kernel"),
              1);
    return t.quality.CountOf("host_functions_without_time");
  };
  EXPECT_EQ(count("13.0 (130000)"), 0);
  EXPECT_EQ(count("13.1 (130100)"), 1);
  writer_.Fact("cupti.refused", "cuptiActivityEnable(HOST_LAUNCH) gives CUPTI_ERROR_INVALID_KIND");
  EXPECT_EQ(count("13.1 (130100)"), 0);
}

TEST_F(DeviceLosses, WhatSpansAPauseOfTheRecordingWasStampedLate) {
  writer_.Gap(1000, 5000, GapReason::kDevice);
  writer_.Gap(8000, 9000, GapReason::kLent);
  writer_.Gap(12'000, 13'000, GapReason::kWindow);  // the host's alone: devices are recorded in it
  uint32_t correlation = 0;
  const auto kernel = [&](int64_t begin, int64_t end) {
    writer_.Row(RowOf(DeviceRowType::kKernel, begin, end, ++correlation));
  };
  kernel(900, 4999);  // its end was delivered with it
  kernel(999, 5000);
  kernel(1000, 6000);  // launched in the pause
  kernel(7999, 9001);
  kernel(11'000, 14'000);
  kernel(5000, 5001);
  const Trace t = Read();
  EXPECT_EQ(t.quality.CountOf("straddling_records"), 2);
  EXPECT_EQ(t.device_ops.size(), 3u);
}

TEST_F(DeviceLosses, WhatHadNotBeenDeliveredAtTheEndIsAGap) {
  writer_.header().clean_exit.store(0);
  const uint32_t name = writer_.String("cudaLaunchKernel");
  for (uint32_t i = 1; i <= 5; ++i) writer_.Row(CallOf(100 * i, 100 * i + 5, i, name));
  for (uint32_t i = 1; i <= 3; ++i) {
    if (i != 2) writer_.Row(RowOf(DeviceRowType::kKernel, 100 * i + 50, 100 * i + 60, i));
  }
  const Trace t = Read();
  EXPECT_EQ(t.quality.CountOf("launches_without_kernel"), 1);
  EXPECT_EQ(t.quality.CountOf("undelivered_at_end"), 2);
  ASSERT_EQ(t.gaps.size(), 1u);
  EXPECT_EQ(t.gaps[0].kind, GapKind::kDevice);
  EXPECT_EQ(t.gaps[0].interval, (Interval{{400}, {501}}));
}

// Autograd's thread has a buffer of its own, which was not full yet when another thread's was delivered: what it launched
// since is not lost in the middle, and the time from there on is a gap.
TEST_F(DeviceLosses, EachThreadHasALastDelivery) {
  writer_.header().clean_exit.store(0);
  const uint32_t name = writer_.String("cudaLaunchKernel");
  for (uint32_t i = 1; i <= 8; ++i) {
    CallRow call = CallOf(100 * i, 100 * i + 5, i, name);
    call.tid = i % 2 == 0 ? 10 : 11;
    writer_.Row(call);
  }
  for (const uint32_t answered : {1, 2, 4, 6}) {
    writer_.Row(RowOf(DeviceRowType::kKernel, 100 * answered + 50, 100 * answered + 60, answered));
  }
  Trace t = Read();
  EXPECT_EQ(t.quality.CountOf("launches_without_kernel"), 0);
  EXPECT_EQ(t.quality.CountOf("undelivered_at_end"), 4) << "3, 5 and 7 of the one, 8 of the other";
  ASSERT_EQ(t.gaps.size(), 1u);
  EXPECT_EQ(t.gaps[0].interval, (Interval{{300}, {801}}));
}

// No buffer becomes that old.
TEST_F(DeviceLosses, WhatAThreadLacksForLongIsLost) {
  writer_.header().clean_exit.store(0);
  const uint32_t name = writer_.String("cudaLaunchKernel");
  const auto launch = [&](int64_t at, uint32_t id, uint32_t tid) {
    CallRow call = CallOf(at, at + 5, id, name);
    call.tid = tid;
    writer_.Row(call);
  };
  launch(100, 1, 10);
  launch(200, 2, 11);
  launch(3'000'000'000, 3, 10);
  launch(3'000'000'000 + 50, 4, 11);
  writer_.Row(RowOf(DeviceRowType::kKernel, 110, 120, 1));
  writer_.Row(RowOf(DeviceRowType::kKernel, 3'000'000'000 + 10, 3'000'000'000 + 20, 3));
  const Trace t = Read();
  EXPECT_EQ(t.quality.CountOf("launches_without_kernel"), 1);
  EXPECT_EQ(t.quality.CountOf("undelivered_at_end"), 1);
}

// The process was killed while its first kernels ran: the time since the last delivery is none yet.
TEST_F(DeviceLosses, WhatWasNeverAnsweredIsNotLostInTheMiddle) {
  writer_.header().clean_exit.store(0);
  const uint32_t name = writer_.String("cudaLaunchKernel");
  for (uint32_t i = 1; i <= 2; ++i) writer_.Row(CallOf(100 * i, 100 * i + 5, i, name));
  writer_.Row(RowOf(DeviceRowType::kInFlight, 100, 100, 1));
  const Trace t = Read();
  EXPECT_EQ(t.quality.CountOf("launches_without_kernel"), 0);
  EXPECT_EQ(t.quality.CountOf("undelivered_at_end"), 1);
}

// NVTX ranges of a running or killed process reach to its last moment, what CUPTI tells does not.
TEST_F(DeviceLosses, StepsBehindTheLastDeliveryAreAGap) {
  writer_.header().clean_exit.store(0);
  writer_.Row(RowOf(DeviceRowType::kMemset, 100, 200, 1));
  writer_.Row(CallOf(50, 350, 1, writer_.String("cudaMemsetAsync")));
  writer_.Push("step", 300);
  writer_.Pop(5000);
  const Trace t = Read();
  ASSERT_EQ(t.gaps.size(), 1u);
  EXPECT_EQ(t.gaps[0].interval, (Interval{{200}, {5000}}));
  EXPECT_EQ(t.gaps[0].kind, GapKind::kDevice);
}

TEST_F(DeviceLosses, AGapOfTheDeviceIsNoGapOfTheHost) {
  writer_.Push("step", 100);
  writer_.Gap(200, 300, GapReason::kDevice);
  writer_.Gap(250, 400);
  writer_.Pop(500);
  const Trace t = Read();
  ASSERT_EQ(t.gaps.size(), 2u);
  EXPECT_EQ(t.gaps[0].kind, GapKind::kAll);
  EXPECT_EQ(t.gaps[0].interval, (Interval{{250}, {400}}));
  EXPECT_EQ(t.gaps[1].kind, GapKind::kDevice);
  EXPECT_EQ(t.gaps[1].interval, (Interval{{200}, {300}}));
}

// The process died between the row and the note that its record is one.
TEST_F(DeviceLosses, ASalvagedRowIsNotCountedTwice) {
  DeviceRow row = RowOf(DeviceRowType::kKernel, 0, 10, 1);
  row.name = writer_.String("kernel");
  writer_.Row(RowOf(DeviceRowType::kMemset, 0, 5, 9));
  writer_.Row(row);
  writer_.BeginWriter(1, 100, "salvage");
  row.name = writer_.String("kernel");
  writer_.Row(row);
  writer_.Row(RowOf(DeviceRowType::kKernel, 20, 30, 2));
  const Trace t = Read();
  EXPECT_EQ(t.device_ops.size(), 3u);
}

}  // namespace
}  // namespace trainprof::testing
