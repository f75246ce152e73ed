// What rows of devices and calls become: one example of each by hand, and what later
// versions may add. Random ones: device_rows_twin_test.cpp.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/support/scratch_folder.h"
#include "tests/support/segment_writer.h"
#include "tests/support/trace_text.h"
#include "tests/trace/recording/device_rows_fixture.h"
#include "tests/trace/recording/rows_of.h"
#include "trace/formats/chrome/kineto_words.h"
#include "trace/recording/read/reader.h"

namespace trainprof::testing {
namespace {

using namespace recording;

constexpr int64_t kOrigin = SegmentWriter::kOriginNs;

DeviceFacts A100(uint32_t ordinal = 0) {
  DeviceFacts facts{};
  facts.ordinal = ordinal;
  facts.multiprocessors = 108;
  facts.compute_major = 8;
  facts.memory_bytes = uint64_t{40} << 30;
  facts.memory_bytes_per_second = 1'555'000'000'000;
  facts.clock_khz = 1'410'000;
  facts.warps_per_multiprocessor = 64;
  facts.blocks_per_multiprocessor = 32;
  facts.registers_per_multiprocessor = 65536;
  facts.shared_bytes_per_multiprocessor = 167936;
  facts.uuid[0] = static_cast<char>(1 + ordinal);
  return facts;
}

std::string ArgsText(const StringTable& texts, const std::vector<Arg>& args) {
  std::string text;
  for (const Arg& arg : args) {
    text += fmt::format("{}{}=", text.empty() ? "" : " ", texts.View(arg.key));
    if (arg.value.type == ArgValue::Type::kInt) text += std::to_string(arg.value.integer);
    if (arg.value.type == ArgValue::Type::kDouble) text += fmt::format("{:.3f}", arg.value.real);
    if (arg.value.text != kEmptyString) text += texts.View(arg.value.text);
  }
  return text;
}

// As an export spells them.
std::string Spelled(const Trace& trace, Table table, uint32_t row) {
  StringTable spelled;
  std::vector<Arg> args;
  const StringTable& texts = SpellArguments(trace, table, Row{row}, spelled, args);
  return ArgsText(texts, args);
}

// "stream 7: name 10-20 <- cudaLaunchKernel {args}", a line each.
std::string Ops(const Trace& t) {
  std::string text;
  for (uint32_t i = 0; i < t.device_ops.size(); ++i) {
    const Row launch = t.device_ops.launch[i];
    text += fmt::format(
        "{}: {} {}-{} <- {} {{{}}}\n", t.Text(t.tracks[Index(t.device_ops.track[i])].name),
        t.Text(t.device_ops.name[i]), t.device_ops.begin[i].ns, t.device_ops.end(i).ns,
        launch == kNoRow ? "nothing" : t.Text(t.api.name[Index(launch)]),
        Spelled(t, Table::kDeviceOps, i));
  }
  return text;
}

TEST_F(DeviceRows, AKernelHasItsNameItsShapeAndItsLaunch) {
  writer_.Device(A100(), "NVIDIA A100");
  writer_.Stream(1, 7, -1);
  DeviceRow row = RowOf(DeviceRowType::kKernel, 1000, 3000, 42);
  row.name = writer_.String("_Z4gemmIfEvPT_");
  row.kernel = {{216, 2, 1}, {128, 1, 1}, 168, 1024, 2048, 0, 0, {1, 1, 1}, 0};
  writer_.Row(row);
  writer_.Row(CallOf(500, 600, 42, writer_.String("cudaLaunchKernel")));
  const Trace t = Read();
  EXPECT_EQ(Ops(t),
            "stream 7 (priority -1): void gemm<float>(float*) 1000-3000 <- cudaLaunchKernel "
            "{device=0 context=1 stream=7 registers per thread=168 shared memory=3072 blocks per "
            "SM=4.000 warps per SM=16.000 grid=[216,2,1] block=[128,1,1] theoretical occupancy "
            "%=18.750}\n");
  EXPECT_EQ(t.api.kind[0], ApiKind::kLaunch);
  EXPECT_EQ(t.tracks[Index(t.api.track[0])].tid, 100);
  ASSERT_EQ(t.devices.size(), 1u);
  EXPECT_EQ(t.Text(t.devices[0].name), "NVIDIA A100");
  EXPECT_EQ(t.devices[0].num_sms, 108);
  EXPECT_TRUE(t.quality.items().empty()) << QualityText(t);
}

TEST_F(DeviceRows, CopiesAndMemsetsReadAsKinetos) {
  DeviceRow copy = RowOf(DeviceRowType::kCopy, 0, 1000, 1);
  copy.detail = 1;
  copy.source_kind = 1;
  copy.target_kind = 3;
  copy.copy.bytes = 8000;
  writer_.Row(copy);
  DeviceRow peer = RowOf(DeviceRowType::kPeerCopy, 2000, 3000, 2);
  peer.detail = 10;
  peer.source_kind = peer.target_kind = 3;
  peer.copy = {4000, 1, 1, 11, 0, 1, 0, 0};
  writer_.Row(peer);
  DeviceRow set = RowOf(DeviceRowType::kMemset, 4000, 4100, 3);
  set.source_kind = 3;
  set.memset.bytes = 64;
  writer_.Row(set);
  const Trace t = Read();
  EXPECT_EQ(Ops(t),
            "stream 7: Memcpy HtoD (Pageable -> Device) 0-1000 <- nothing {device=0 context=1 "
            "stream=7 bytes=8000 memory bandwidth (GB/s)=8.000}\n"
            "stream 7: Memcpy PtoP (Device -> Device) 2000-3000 <- nothing {device=0 context=1 "
            "stream=7 fromDevice=1 inDevice=0 toDevice=0 fromContext=11 inContext=1 toContext=1 "
            "bytes=4000 memory bandwidth (GB/s)=4.000}\n"
            "stream 7: Memset (Device) 4000-4100 <- nothing {device=0 context=1 stream=7 "
            "bytes=64}\n");
  EXPECT_EQ(t.device_ops.direction[0], CopyDirection::kHostToDevice);
  EXPECT_EQ(t.device_ops.direction[1], CopyDirection::kPeer);
  EXPECT_EQ(t.device_ops.bytes[2], 64);
  EXPECT_EQ(t.device_ops.source[0], MemoryKind::kPageable);
  EXPECT_EQ(t.device_ops.target, std::vector(3, MemoryKind::kDevice));
  // Only what has no column is an argument.
  EXPECT_EQ(t.device_ops.args[0], kNoArgs);
  EXPECT_EQ(t.device_ops.args[2], kNoArgs);
}

// A configuration is stored once, however many kernels have it.
TEST_F(DeviceRows, KernelsOfOneConfigurationShareIt) {
  writer_.Device(A100(), "NVIDIA A100");
  DeviceRow row = RowOf(DeviceRowType::kKernel, 1000, 1100, 1);
  row.name = writer_.String("_Z4gemmIfEvPT_");
  row.kernel = {{216, 2, 1}, {128, 1, 1}, 168, 1024, 2048, 0, 16, {2, 1, 1}, 0};
  writer_.Row(row);
  for (uint32_t i = 2; i < 6; ++i) {
    row.begin_ns += 200;
    row.end_ns += 200;
    row.correlation = i;
    if (i == 4) row.kernel.grid[2] = 7;
    writer_.Row(row);
  }
  const Trace t = Read();
  EXPECT_EQ(t.device_ops.launch_config,
            (std::vector<LaunchConfigId>{LaunchConfigId{0}, LaunchConfigId{0}, LaunchConfigId{0},
                                         LaunchConfigId{1}, LaunchConfigId{1}}));
  ASSERT_EQ(t.launch_configs.size(), 2u);
  const LaunchConfig& config = t.launch_configs[0];
  EXPECT_EQ(config.grid, (LaunchConfig::Shape{216, 2, 1}));
  EXPECT_EQ(config.block, (LaunchConfig::Shape{128, 1, 1}));
  EXPECT_EQ(config.cluster, (LaunchConfig::Shape{2, 1, 1}));
  EXPECT_EQ(config.registers_per_thread, 168);
  EXPECT_EQ(config.shared_bytes, 3072);
  EXPECT_EQ(config.local_bytes_per_thread, 16);
  EXPECT_EQ(config.theoretical_occupancy_percent, 18.75);
  EXPECT_EQ(config.context, 1);
  EXPECT_EQ(config.graph_node, LaunchConfig::kUnknown);
  EXPECT_EQ(t.launch_configs[1].grid, (LaunchConfig::Shape{216, 2, 7}));
}

TEST_F(DeviceRows, AWaitNamesTheEventAndItsStream) {
  DeviceRow event = RowOf(DeviceRowType::kEvent, 100, 100, 5);
  event.stream = 20;
  event.sync.event = 9;
  event.begin_ns = event.end_ns = 0;  // not known when it was reached
  writer_.Row(event);
  DeviceRow wait = RowOf(DeviceRowType::kSync, 200, 300, 8);
  wait.detail = 2;
  wait.sync.event = 9;
  writer_.Row(wait);
  DeviceRow context = RowOf(DeviceRowType::kSync, 400, 500, 9);
  context.detail = 4;
  context.stream = UINT32_MAX;
  writer_.Row(context);
  const Trace t = Read();
  ASSERT_EQ(t.syncs.size(), 2u);
  EXPECT_EQ(t.Text(t.syncs.name[0]), "Stream Wait Event");
  EXPECT_EQ(t.syncs.kind, (std::vector{SyncKind::kStreamWaits, SyncKind::kContext}));
  EXPECT_EQ(t.syncs.context, (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(t.syncs.waited_event, (std::vector<int64_t>{9, kNoCorrelation}));
  EXPECT_EQ(t.syncs.waited_stream, (std::vector<int64_t>{20, kNoCorrelation}));
  EXPECT_EQ(t.syncs.waited_device, (std::vector<int64_t>{0, kNoCorrelation}));
  EXPECT_EQ(t.syncs.waited_record, (std::vector<int64_t>{5, kNoCorrelation}));
  EXPECT_EQ(t.syncs.args, decltype(t.syncs.args)(2));
  EXPECT_EQ(Spelled(t, Table::kSyncs, 0),
            "cuda_sync_kind=Stream Wait Event wait_on_stream=20 wait_on_device=0 "
            "wait_on_cuda_event_record_corr_id=5 wait_on_cuda_event_id=9 stream=7 device=0 "
            "context=1");
  EXPECT_EQ(t.Text(t.syncs.name[1]), "Context Sync");
  EXPECT_EQ(Spelled(t, Table::kSyncs, 1),
            "cuda_sync_kind=Context Sync stream=-1 device=0 context=1");
  EXPECT_EQ(t.tracks[Index(t.syncs.track[1])].tid, -1);
}

// It is no synchronization record of CUPTI's, and no work of a device.
TEST_F(DeviceRows, AHostFunctionIsWaitedForByItsStream) {
  DeviceRow function = RowOf(DeviceRowType::kSync, 200, 300, 8);
  function.detail = kHostFunctionSync;
  function.sync.thread = 4712;
  writer_.Row(function);
  const Trace t = Read();
  ASSERT_EQ(t.syncs.size(), 1u);
  EXPECT_EQ(t.syncs.kind[0], SyncKind::kHostFunction);
  EXPECT_EQ(t.Text(t.syncs.name[0]), "Host Function");
  EXPECT_EQ(t.syncs.waited_thread[0], 4712);
  EXPECT_EQ(t.syncs.correlation[0], 8);
  EXPECT_EQ(t.syncs.waited_event[0], kNoCorrelation);
  EXPECT_EQ(t.syncs.awaited[0], kNoTrack);
  EXPECT_EQ(t.tracks[Index(t.syncs.track[0])].tid, 7);
  EXPECT_EQ(Spelled(t, Table::kSyncs, 0),
            "cuda_sync_kind=Host Function wait_on_host_thread=4712 stream=7 device=0 context=1");
  EXPECT_EQ(t.device_ops.size(), 0u);
}

TEST_F(DeviceRows, MemoryIsCountedOnTheThreadThatAskedForIt) {
  const auto memory = [&](int64_t at, uint8_t operation, uint64_t bytes, uint32_t correlation) {
    DeviceRow row = RowOf(DeviceRowType::kMemory, at, at, correlation);
    row.detail = operation;
    row.source_kind = 3;
    row.memory.address = 0x7000;
    row.memory.bytes = bytes;
    writer_.Row(row);
  };
  memory(300, 2, 1000, 3);  // later in time, earlier in the file
  memory(100, 1, 1000, 1);
  memory(200, 1, 500, 2);
  writer_.Row(CallOf(90, 110, 1, writer_.String("cudaMalloc"), 77));
  const Trace t = Read();
  ASSERT_EQ(t.instants.size(), 3u);
  std::map<int64_t, std::string> by_time;
  for (uint32_t i = 0; i < 3; ++i) {
    by_time[t.instants.begin[i].ns] = Spelled(t, Table::kInstants, i);
    EXPECT_EQ(t.AllocationOf(Row{i})->address, 0x7000);
  }
  EXPECT_EQ(t.instants.args, decltype(t.instants.args)(3));
  EXPECT_EQ(by_time[100],
            "Total Reserved=1000 Bytes=1000 Addr=28672 Device Id=0 Device Type=1 kind=Device");
  EXPECT_EQ(by_time[200].substr(0, 30), "Total Reserved=1500 Bytes=500 ");
  EXPECT_EQ(by_time[300].substr(0, 31), "Total Reserved=500 Bytes=-1000 ");
  const TrackId thread = t.api.track[0];
  EXPECT_EQ(t.instants.rows_of(thread).second - t.instants.rows_of(thread).first, 1u);
}

TEST_F(DeviceRows, AnAllocationOfThePinnedPoolSaysSo) {
  DeviceRow row = RowOf(DeviceRowType::kMemory, 100, 100, 1);
  row.detail = 1;
  row.name = writer_.String("libpool.so");
  row.source_kind = 2;
  row.memory = {4096, 64, 0, 1024, 640};
  writer_.Row(row);
  const Trace t = Read();
  ASSERT_EQ(t.allocations.size(), 1u);
  EXPECT_EQ(t.allocations[0].kind, MemoryKind::kPinned);
  EXPECT_EQ(t.allocations[0].Total(MemoryTotal::kHost), 0);  // the pool's is counted already
  EXPECT_EQ(t.allocations[0].pool_used_bytes, 640);
  EXPECT_EQ(Spelled(t, Table::kInstants, 0),
            "Total Host=0 Bytes=64 Addr=4096 Device Id=-1 Device Type=0 kind=Pinned "
            "pool bytes=1024 pool used bytes=640 source=libpool.so");
}

TEST_F(DeviceRows, AGraphsNodesAllJoinItsLaunchAndAWholeGraphIsOneRow) {
  for (uint64_t node = 1; node <= 2; ++node) {
    DeviceRow row = RowOf(DeviceRowType::kKernel, 1000 * static_cast<int64_t>(node),
                          1000 * static_cast<int64_t>(node) + 500, 4);
    row.name = writer_.String("node");
    row.graph = 3;
    row.graph_node = node;
    writer_.Row(row);
  }
  DeviceRow whole = RowOf(DeviceRowType::kGraph, 5000, 6000, 5);
  whole.graph = 3;
  writer_.Row(whole);
  const uint32_t name = writer_.String("cudaGraphLaunch");
  writer_.Row(CallOf(10, 20, 4, name));
  writer_.Row(CallOf(30, 40, 5, name));
  const Trace t = Read();
  ASSERT_EQ(t.device_ops.size(), 3u);
  EXPECT_EQ(t.device_ops.launch[0], Row{0});
  EXPECT_EQ(t.device_ops.launch[1], Row{0});
  EXPECT_EQ(t.device_ops.launch[2], Row{1});
  EXPECT_NE(Spelled(t, Table::kDeviceOps, 1).find("graph id=3 graph node id=2"), std::string::npos);
  EXPECT_EQ(t.Text(t.device_ops.name[2]), "CUDA graph");
}

TEST_F(DeviceRows, OverheadIsARangeOfItsThread) {
  DeviceRow row = RowOf(DeviceRowType::kOverhead, 100, 900, 0);
  row.detail = OverheadDetail(5 << 16);
  row.overhead.object_kind = 2;
  row.overhead.object = 100;
  writer_.Row(row);
  const Trace t = Read();
  ASSERT_EQ(t.ranges.size(), 1u);
  EXPECT_EQ(t.ranges.kind[0], RangeKind::kOverhead);
  EXPECT_EQ(t.Text(t.ranges.name[0]), "Lazy Function Loading");
  EXPECT_EQ(t.tracks[Index(t.ranges.track[0])].tid, 100);
}

TEST_F(DeviceRows, DevicesKeepTheirOwnStreamsOfOneNumber) {
  for (uint32_t device = 0; device < 2; ++device) {
    writer_.Device(A100(device), "GPU");
    DeviceRow row = RowOf(DeviceRowType::kMemset, 0, 10, 1 + device);
    row.device = device;
    row.context = 1 + device;
    writer_.Row(row);
  }
  const Trace t = Read();
  ASSERT_EQ(t.devices.size(), 2u);
  ASSERT_EQ(t.device_ops.size(), 2u);
  EXPECT_NE(t.device_ops.track[0], t.device_ops.track[1]);
}

// As with CUDA_VISIBLE_DEVICES: both processes of a rank say 0 and mean another.
TEST_F(DeviceRows, TheUuidTellsDevicesOfTwoProcessesApart) {
  writer_.Device(A100(), "GPU");
  writer_.Row(RowOf(DeviceRowType::kMemset, 0, 10, 1));
  for (int i = 1; i <= 2; ++i) {
    SegmentWriter other(scratch_ / "pid-1", SegmentWriter::kDeadPid - i);
    other.BeginWriter(0, 200, "other");
    DeviceFacts facts = A100();
    facts.uuid[0] = static_cast<char>(i);  // the same as the first's, then another
    other.Device(facts, "GPU");
    other.Row(RowOf(DeviceRowType::kMemset, 20, 30, 1));
    other.Finish();
  }
  const Trace t = Read();
  ASSERT_EQ(t.devices.size(), 2u);
  EXPECT_EQ(t.devices[0].id, 0);
  EXPECT_EQ(t.devices[1].id, 1);
  ASSERT_EQ(t.device_ops.size(), 3u);
}

// The same, of MIG slices, whose UUIDs CUPTI before 13.3 update 1 gets wrong.
TEST_F(DeviceRows, AWrongUuidOfASliceJoinsNothing) {
  const auto devices = [](const char* version) {
    const ScratchFolder scratch;
    for (int i = 1; i <= 2; ++i) {
      SegmentWriter writer(scratch / "pid-1", SegmentWriter::kDeadPid - i);
      writer.BeginWriter(0, 200, "one");
      writer.Fact("cupti.version", version);
      DeviceFacts facts = A100();
      facts.flags = 1;
      facts.uuid[0] = static_cast<char>(i);
      writer.Device(facts, "GPU");
      writer.Row(RowOf(DeviceRowType::kMemset, 0, 10, 1));
      writer.Finish();
    }
    const Trace trace = std::move(recording::ReadRecording(scratch.path()).value().at(0).trace);
    return std::pair(trace.devices.size(), trace.quality.CountOf("mig_uuid_unknown"));
  };
  EXPECT_EQ(devices("13.3 (130300)"), std::pair(size_t{1}, int64_t{2}));
  EXPECT_EQ(devices("12.4 (22)"), std::pair(size_t{1}, int64_t{2}));
  EXPECT_EQ(devices("13.3 (130301)"), std::pair(size_t{2}, int64_t{0}));
}

TEST_F(DeviceRows, OneIdInTwoProcessesJoinsWithinEach) {
  writer_.Row(RowOf(DeviceRowType::kMemset, 0, 10, 1));
  writer_.Row(CallOf(0, 5, 1, writer_.String("cudaMemsetAsync")));
  SegmentWriter other(scratch_ / "pid-1", SegmentWriter::kDeadPid - 1);
  other.BeginWriter(0, 200, "other");
  other.Row(RowOf(DeviceRowType::kMemset, 20, 30, 1));
  other.Row(CallOf(15, 19, 1, other.String("cuMemsetD8Async"), 200));
  other.Finish();
  const Trace t = Read();
  EXPECT_EQ(t.quality.CountOf("ambiguous_correlation"), 0);
  for (size_t i = 0; i < 2; ++i) {
    const Row launch = t.device_ops.launch[i];
    ASSERT_NE(launch, kNoRow);
    EXPECT_EQ(t.tracks[Index(t.api.track[Index(launch)])].process,
              t.tracks[Index(t.device_ops.track[i])].process);
  }
}

TEST_F(DeviceRows, LaterVersionsMayAppendColumnsAndAddTypes) {
  uint64_t longer[14] = {};
  DeviceRow row = RowOf(DeviceRowType::kMemset, 0, 10, 1);
  memcpy(longer, &row, sizeof row);
  writer_.RawRow(ChunkKind::kDeviceRows, sizeof longer, longer, sizeof longer);
  writer_.Row(RowOf(static_cast<DeviceRowType>(77), 0, 10, 1));
  writer_.RawRow(static_cast<ChunkKind>(9), 16, longer, 32);
  const Trace t = Read();
  EXPECT_EQ(t.device_ops.size(), 1u);
  EXPECT_EQ(
      QualityText(t),
      "unknown_record 1 (data_loss)\nunread_chunk 1 (data_loss)\ncopy_without_launch 1 (info)\n");
}

TEST_F(DeviceRows, RowsOfAnImpossibleSizeCostTheirChunk) {
  uint64_t shorter[2] = {};
  writer_.RawRow(ChunkKind::kDeviceRows, sizeof shorter, shorter, sizeof shorter);
  const Trace t = Read();
  EXPECT_EQ(t.device_ops.size(), 0u);
  EXPECT_EQ(t.quality.CountOf("corrupt_chunk"), 1);
}

}  // namespace
}  // namespace trainprof::testing
