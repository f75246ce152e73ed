// What a CUDA program does becomes rows: counted, named, timed, in every way of launching.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/collectors/cuda_run.h"
#include "tests/support/sanitized.h"

namespace trainprof::testing {
namespace {

using recording::CallRow;
using recording::DeviceRow;
using recording::DeviceRowType;

// Every kernel has its launch, by correlation, and starts after that call began.
void ExpectLaunchesMatch(const RecordedRows& rows, const std::string& call) {
  std::map<uint32_t, const CallRow*> launches;
  for (const CallRow& row : rows.calls) {
    if (rows.names[row.name] == call) launches[row.correlation] = &row;
  }
  for (const DeviceRow& kernel : rows.Of(DeviceRowType::kKernel)) {
    const auto launch = launches.find(kernel.correlation);
    ASSERT_NE(launch, launches.end()) << kernel.correlation;
    EXPECT_GE(kernel.begin_ns, launch->second->begin_ns - (HardGpu() ? 50'000 : 0));
    EXPECT_GT(kernel.end_ns, kernel.begin_ns);
  }
}

// Also where CUPTI keeps a second's records until it is flushed, which are more than the buffers hold.
TEST_F(CuptiRows, AMillionKernelsAtFullSpeedLoseNone) {
  constexpr int64_t kKernels = Rounds(1'000'000);
  for (const char* faults : {"", "complete_at_flush"}) {
    SCOPED_TRACE(faults);
    CudaRun run;
    run.environment["VGPU_SETTINGS"] = "scale=0";
    if (faults[0] != 0) run.environment["VGPU_FAULTS"] = faults;
    run.environment[recording::kEnvOptions] = "full=1";
    ASSERT_EQ(run.Run({"kernels", std::to_string(kKernels)}), 0);
    const RecordedRows rows = run.Rows();
    EXPECT_EQ(rows.Of(DeviceRowType::kKernel).size(), kKernels);
    EXPECT_EQ(rows.CountCalls("cudaLaunchKernel"), kKernels);
    EXPECT_EQ(rows.Fact("cupti.dropped"), "");
    EXPECT_EQ(rows.Fact("cupti.refused_buffers"), "");
    EXPECT_EQ(rows.Fact("cupti.overwritten_bytes"), "");
    EXPECT_EQ(rows.dropped, 0u);
    EXPECT_EQ(rows.damaged, 0);
    EXPECT_EQ(rows.Fact("cupti.state"), "recording");
    std::set<uint32_t> correlations;
    for (const DeviceRow& row : rows.device) correlations.insert(row.correlation);
    EXPECT_GE(correlations.size(), static_cast<size_t>(kKernels)) << "none twice";
  }
}

TEST_F(CuptiRows, KernelsCarryTheirLaunch) {
  CudaRun run;
  ASSERT_EQ(run.Run({"kernels", "10"}), 0);
  const RecordedRows rows = run.Rows();
  const auto kernels = rows.Of(DeviceRowType::kKernel);
  ASSERT_EQ(kernels.size(), 10u);
  ExpectLaunchesMatch(rows, "cudaLaunchKernel");
  for (const DeviceRow& row : kernels) {
    EXPECT_EQ(rows.names[row.name], "_Z6kernelPf");
    EXPECT_EQ(row.kernel.grid[0], 8u);
    EXPECT_EQ(row.kernel.grid[1], 2u);
    EXPECT_EQ(row.kernel.block[0], 128u);
    EXPECT_EQ(row.kernel.registers_per_thread, 40u);
    EXPECT_EQ(row.kernel.static_shared_bytes, 1024u);
    EXPECT_EQ(row.kernel.dynamic_shared_bytes, 2048u);
  }
  ASSERT_GE(rows.devices.size(), 1u);
  EXPECT_EQ(rows.devices[0].multiprocessors, 132u);
  EXPECT_GE(rows.contexts, 1);
}

TEST_F(CuptiRows, CopiesMemsetsSyncsEventsAndMemoryAreThere) {
  CudaRun run;
  ASSERT_EQ(run.Run({"mixed"}), 0);
  const RecordedRows rows = run.Rows();
  const auto copies = rows.Of(DeviceRowType::kCopy);
  ASSERT_EQ(copies.size(), 3u);
  std::multiset<uint64_t> bytes;
  for (const DeviceRow& row : copies) bytes.insert(row.copy.bytes);
  EXPECT_EQ(bytes, (std::multiset<uint64_t>{4, 1 << 18, 1 << 20}));
  ASSERT_EQ(rows.Of(DeviceRowType::kMemset).size(), 1u);
  EXPECT_EQ(rows.Of(DeviceRowType::kMemset)[0].memset.bytes, 1u << 16);
  EXPECT_EQ(rows.Of(DeviceRowType::kMemset)[0].memset.value, 7u);
  EXPECT_EQ(rows.Of(DeviceRowType::kKernel).size(), 2u);
  EXPECT_GE(rows.Of(DeviceRowType::kSync).size(), 2u);
  EXPECT_EQ(rows.Of(DeviceRowType::kEvent).size(), 1u);
  EXPECT_GE(rows.Of(DeviceRowType::kMemory).size(), 2u);
  for (const char* call : {"cudaMemcpy", "cudaMemcpyAsync", "cudaMemsetAsync", "cudaEventRecord",
                           "cudaStreamWaitEvent", "cudaEventSynchronize", "cudaDeviceSynchronize",
                           "cudaMalloc", "cudaMallocHost", "cudaFree", "cudaLaunchKernel"}) {
    EXPECT_GE(rows.CountCalls(call), 1) << call;
  }
  EXPECT_EQ(rows.CountCalls("cuLaunchKernel"), 0) << "nested in a call of the runtime";
  EXPECT_EQ(rows.CountCalls("cudaEventCreate"), 0) << "of no interest";
}

TEST_F(CuptiRows, ThreadsAndDevicesAreToldApart) {
  CudaRun run;
  ASSERT_EQ(run.Run({"threads", "500"}), 0);
  std::map<uint32_t, int> by_thread;
  for (const CallRow& row : run.Rows().calls) ++by_thread[row.tid];
  EXPECT_GE(by_thread.size(), 4u);
  EXPECT_EQ(run.Rows().Of(DeviceRowType::kKernel).size(), 2000u);

  CudaRun two;
  two.environment["VGPU_SETTINGS"] = "devices=2";
  ASSERT_EQ(two.Run({"devices", "100"}), 0);
  std::map<uint32_t, int> by_device;
  const RecordedRows rows = two.Rows();
  for (const DeviceRow& row : rows.Of(DeviceRowType::kKernel)) ++by_device[row.device];
  EXPECT_EQ(by_device, (std::map<uint32_t, int>{{0, 100}, {1, 100}}));
  ASSERT_EQ(rows.Of(DeviceRowType::kPeerCopy).size(), 1u);
  EXPECT_EQ(rows.Of(DeviceRowType::kPeerCopy)[0].copy.target_device, 1u);
}

TEST_F(CuptiRows, GraphsAreRecordedByNodeOrAsAWhole) {
  CudaRun nodes;
  ASSERT_EQ(nodes.Run({"graph", "20"}), 0);
  const RecordedRows by_node = nodes.Rows();
  EXPECT_EQ(by_node.Of(DeviceRowType::kKernel).size(), 100u);
  EXPECT_EQ(by_node.CountCalls("cudaGraphLaunch"), 20);
  std::set<uint64_t> node_ids;
  for (const DeviceRow& row : by_node.Of(DeviceRowType::kKernel)) node_ids.insert(row.graph_node);
  EXPECT_EQ(node_ids.size(), 5u);

  CudaRun whole;
  whole.environment[recording::kEnvOptions] = "graphs=graph";
  ASSERT_EQ(whole.Run({"graph", "20"}), 0);
  const RecordedRows by_graph = whole.Rows();
  EXPECT_EQ(by_graph.Of(DeviceRowType::kGraph).size(), 20u);
  EXPECT_EQ(by_graph.Of(DeviceRowType::kKernel).size(), 0u);
  EXPECT_EQ(by_graph.Fact("cupti.graphs"), "graph");
}

TEST_F(CuptiRows, OlderCuptiIsReadByItsOwnRecordSizes) {
  for (const char* version : {"12.4", "12.6", "12.8"}) {
    CudaRun run;
    run.environment["VGPU_CUPTI_VERSION"] = version;
    run.environment["VGPU_SETTINGS"] = "devices=2";
    ASSERT_EQ(run.Run({"mixed"}), 0) << version << run.output();
    const RecordedRows rows = run.Rows();
    EXPECT_EQ(rows.Of(DeviceRowType::kKernel).size(), 2u) << version;
    EXPECT_EQ(rows.Of(DeviceRowType::kCopy).size(), 3u) << version;
    EXPECT_EQ(rows.Fact("cupti.unreadable_bytes"), "") << version;
    EXPECT_EQ(rows.CountCalls("cudaEventCreate"), 0) << "sifted: " << version;
    EXPECT_EQ(rows.Fact("cupti.version").substr(0, 4), version);
  }
}

TEST_F(CuptiRows, OffMeansOff) {
  CudaRun run;
  run.environment[recording::kEnvOptions] = "gpu=off";
  ASSERT_EQ(run.Run({"kernels", "10"}), 0);
  const RecordedRows rows = run.Rows();
  EXPECT_TRUE(rows.device.empty());
  EXPECT_EQ(rows.Fact("cupti.state"), "off: --no-gpu");
}

TEST_F(CuptiRows, NamesThatMayBeOthersAreToldOf) {
  for (const auto& [version, told] : {std::pair{"13.4.0", true}, std::pair{"13.4.1", false}}) {
    CudaRun run;
    run.environment["VGPU_CUPTI_VERSION"] = version;
    ASSERT_EQ(run.Run({"kernels", "1"}), 0);
    EXPECT_EQ(!run.Rows().Fact("cupti.names").empty(), told) << version;
  }
}

// A driver's call that ends a buffer is nested in the runtime's that begins the next one: one row. Without
// the runtime it is a row, at the program's end as well.
TEST_F(CuptiRows, NoCallIsARowTwiceWhereBuffersMeet) {
  CudaRun run;
  run.environment["VGPU_SETTINGS"] = "scale=0";
  ASSERT_EQ(run.Run({"kernels", "100000"}), 0);
  const RecordedRows rows = run.Rows();
  std::map<uint32_t, int> launches;
  for (const auto& call : rows.calls) ++launches[call.correlation];
  EXPECT_GE(launches.size(), 100'000u);
  for (const auto& [correlation, count] : launches) EXPECT_EQ(count, 1) << correlation;
}

}  // namespace
}  // namespace trainprof::testing
