// CUDA graphs: what a launch does and what CUPTI records of it.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "tests/virtual_gpu/cupti_client.h"
#include "tests/virtual_gpu/vgpu.h"

namespace vgpu::testing {
namespace {

const void* Kernel() {
  VgpuKernelSpec spec = {};
  spec.name = "_Z4nodev";
  spec.least_ns = 50'000;
  return vgpuDeclareKernel(nullptr, &spec);
}

void Launch(const void* kernel, cudaStream_t stream) {
  ASSERT_EQ(cudaLaunchKernel(kernel, dim3(1), dim3(32), nullptr, 0, stream), cudaSuccess);
}

// first -> (left || right) -> last, captured from two streams.
cudaGraphExec_t Diamond(cudaStream_t stream) {
  const void* kernel = Kernel();
  cudaStream_t other;
  cudaEvent_t fork;
  cudaEvent_t join;
  EXPECT_EQ(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), cudaSuccess);
  EXPECT_EQ(cudaEventCreate(&fork), cudaSuccess);
  EXPECT_EQ(cudaEventCreate(&join), cudaSuccess);
  EXPECT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  Launch(kernel, stream);
  EXPECT_EQ(cudaEventRecord(fork, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(other, fork, 0), cudaSuccess);
  Launch(kernel, stream);
  Launch(kernel, other);
  EXPECT_EQ(cudaEventRecord(join, other), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(stream, join, 0), cudaSuccess);
  Launch(kernel, stream);
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaErrorInvalidValue);
  return exec;
}

TEST(VirtualGpuGraph, NodesOfALaunchShareItsCorrelationAndHaveIdsOfTheirOwn) {
  Start({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_RUNTIME});
  cudaStream_t stream;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  const cudaGraphExec_t exec = Diamond(stream);
  VgpuCounts counts;
  vgpuGetCounts(&counts);
  EXPECT_EQ(counts.kernels, 0u);  // capturing runs nothing
  ASSERT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  const auto records = AllRecords();
  const auto kernels =
      Select<CUpti_ActivityKernel10>(records, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  ASSERT_EQ(kernels.size(), 8u);
  std::set<uint32_t> correlations;
  std::set<uint64_t> nodes;
  for (const auto& kernel : kernels) {
    correlations.insert(kernel.correlationId);
    nodes.insert(kernel.graphNodeId);
    EXPECT_NE(kernel.graphId, 0u);
  }
  EXPECT_EQ(correlations.size(), 2u);
  EXPECT_EQ(nodes.size(), 4u);
  for (const auto& call : Select<CUpti_ActivityAPI>(records, CUPTI_ACTIVITY_KIND_RUNTIME)) {
    const bool launch = call.cbid == CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000;
    EXPECT_EQ(launch, correlations.count(call.correlationId) == 1);
  }
  // The branches overlap, and the last waits for both.
  EXPECT_GE(kernels[1].start, kernels[0].end);
  EXPECT_GE(kernels[2].start, kernels[0].end);
  EXPECT_LT(kernels[2].start, kernels[1].end);
  EXPECT_GE(kernels[3].start, std::max(kernels[1].end, kernels[2].end));
  EXPECT_GE(kernels[4].start, kernels[3].end);
}

TEST(VirtualGpuGraph, TracingGraphsLeavesOutTheirNodes) {
  Start({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_GRAPH_TRACE});
  cudaStream_t stream;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  const cudaGraphExec_t exec = Diamond(stream);
  ASSERT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
  Launch(Kernel(), stream);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  const auto records = AllRecords();
  EXPECT_EQ(Select<CUpti_ActivityKernel10>(records, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL).size(),
            1u);
  const auto graphs = Select<CUpti_ActivityGraphTrace2>(records, CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
  ASSERT_EQ(graphs.size(), 1u);
  EXPECT_GE(graphs[0].end - graphs[0].start, 150'000u);
  uint32_t id = 0;
  ASSERT_EQ(cuptiGetGraphExecId(reinterpret_cast<CUgraphExec>(exec), &id), CUPTI_SUCCESS);
  EXPECT_EQ(graphs[0].graphId, id);
}

// CUPTI_ACTIVITY_KIND_GRAPH_HOST_NODE and CUpti_ActivityGraphHostNode, which the headers of 13.0 lack.
constexpr auto kGraphHostNode = static_cast<CUpti_ActivityKind>(56);
struct GraphHostNode {
  uint32_t kind, stream, context, device, correlation, graph;
  uint64_t node;
  uint32_t process, thread;
  uint64_t start, end;
};

TEST(VirtualGpuGraph, AHostFunctionIsCapturedAndCalledByEachLaunch) {
  setenv("VGPU_CUPTI_VERSION", "13.1", 1);
  Start({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, kGraphHostNode});
  cudaStream_t stream;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  Launch(Kernel(), stream);
  std::vector<uint64_t> called_at;
  const auto note = [](void* argument) {
    static_cast<std::vector<uint64_t>*>(argument)->push_back(MonotonicNs());
  };
  ASSERT_EQ(cudaLaunchHostFunc(stream, note, &called_at), cudaSuccess);
  Launch(Kernel(), stream);
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(called_at.size(), 0u);  // capturing runs nothing
  for (int i = 0; i < 2; ++i) ASSERT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  ASSERT_EQ(called_at.size(), 2u);

  const auto records = AllRecords();
  const auto kernels =
      Select<CUpti_ActivityKernel10>(records, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  const auto nodes = Select<GraphHostNode>(records, kGraphHostNode);
  ASSERT_EQ(kernels.size(), 4u);
  ASSERT_EQ(nodes.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const CUpti_ActivityKernel10& before = kernels[2 * i];
    EXPECT_EQ(nodes[i].correlation, before.correlationId);
    EXPECT_EQ(nodes[i].graph, before.graphId);
    EXPECT_NE(nodes[i].node, before.graphNodeId);
    EXPECT_EQ(nodes[i].stream, before.streamId);
    EXPECT_LE(before.end, nodes[i].start);
    EXPECT_LE(nodes[i].start, called_at[i]);
    EXPECT_LE(called_at[i], nodes[i].end);
  }
  EXPECT_EQ(nodes[0].node, nodes[1].node);
}

TEST(VirtualGpuGraph, GraphsAreBuiltNodeByNodeToo) {
  Start({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  cudaGraph_t graph;
  ASSERT_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
  cudaKernelNodeParams params = {};
  params.func = const_cast<void*>(Kernel());
  params.gridDim = dim3(2);
  params.blockDim = dim3(64);
  cudaGraphNode_t first;
  cudaGraphNode_t second;
  ASSERT_EQ(cudaGraphAddKernelNode(&first, graph, nullptr, 0, &params), cudaSuccess);
  ASSERT_EQ(cudaGraphAddKernelNode(&second, graph, &first, 1, &params), cudaSuccess);
  size_t count = 0;
  ASSERT_EQ(cudaGraphGetNodes(graph, nullptr, &count), cudaSuccess);
  EXPECT_EQ(count, 2u);
  cudaGraphExec_t exec;
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(exec, nullptr), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  const auto kernels =
      Select<CUpti_ActivityKernel10>(AllRecords(), CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].gridX, 2);
  EXPECT_GE(kernels[1].start, kernels[0].end);
  ASSERT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  ASSERT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

// Launches the graph once; the correlations of its kernels less that of the launch.
std::multiset<int64_t> KernelsOfLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  const size_t before = AllRecords().size();
  EXPECT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  const auto all = AllRecords();
  const std::vector<AnyRecord> records(all.begin() + static_cast<ptrdiff_t>(before), all.end());
  int64_t launch = 0;
  for (const auto& call : Select<CUpti_ActivityAPI>(records, CUPTI_ACTIVITY_KIND_RUNTIME)) {
    if (call.cbid == CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000) launch = call.correlationId;
  }
  std::multiset<int64_t> offsets;
  for (const auto& kernel :
       Select<CUpti_ActivityKernel10>(records, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)) {
    offsets.insert(kernel.correlationId - launch);
  }
  return offsets;
}

TEST(VirtualGpuGraph, OneMadeWhileKernelsWereOffMayLeaveNone) {
  ASSERT_EQ(vgpuSetFault("graph_needs_kind", nullptr), 0);
  Start({CUPTI_ACTIVITY_KIND_RUNTIME});
  cudaStream_t stream;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  const cudaGraphExec_t early = Diamond(stream);
  ASSERT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), CUPTI_SUCCESS);
  const cudaGraphExec_t late = Diamond(stream);
  EXPECT_EQ(KernelsOfLaunch(early, stream).size(), 0u);
  EXPECT_EQ(KernelsOfLaunch(late, stream).size(), 4u);
  vgpuClearFaults();
  EXPECT_EQ(KernelsOfLaunch(early, stream).size(), 4u);
}

TEST(VirtualGpuGraph, InALaterSessionKernelsMayNameAnotherCall) {
  ASSERT_EQ(vgpuSetFault("late_session_correlation", nullptr), 0);
  Start({CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  cudaStream_t stream;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  const cudaGraphExec_t exec = Diamond(stream);
  EXPECT_EQ(KernelsOfLaunch(exec, stream), (std::multiset<int64_t>{0, 0, 0, 0}));
  ASSERT_EQ(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), CUPTI_SUCCESS);
  ASSERT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), CUPTI_SUCCESS);
  EXPECT_EQ(KernelsOfLaunch(exec, stream), (std::multiset<int64_t>{-1, -1, -1, -1}));
}

}  // namespace
}  // namespace vgpu::testing
