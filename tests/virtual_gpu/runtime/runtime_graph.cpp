// libcudart: CUDA graphs, captured or built from kernel nodes.
#include "tests/virtual_gpu/model/graph.h"
#include "tests/virtual_gpu/model/kernels.h"
#include "tests/virtual_gpu/runtime/runtime_call.h"

using namespace vgpu;

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  VGPU_RUNTIME_CALL(cudaStreamBeginCapture_v10000, api_call_ns, stream, mode);
  return call.Return(cuStreamBeginCapture(stream, static_cast<CUstreamCaptureMode>(mode)));
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  VGPU_RUNTIME_CALL(cudaStreamEndCapture_v10000, api_call_ns, stream, graph);
  return call.Return(cuStreamEndCapture(stream, graph));
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  VGPU_RUNTIME_CALL(cudaStreamIsCapturing_v10000, api_call_ns, stream, status);
  return call.Return(cuStreamIsCapturing(stream, reinterpret_cast<CUstreamCaptureStatus*>(status)));
}

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned int flags) {
  VGPU_RUNTIME_CALL(cudaGraphCreate_v10000, api_call_ns, graph, flags);
  return call.Return(cuGraphCreate(graph, flags));
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  VGPU_RUNTIME_CALL(cudaGraphDestroy_v10000, api_call_ns, graph);
  return call.Return(cuGraphDestroy(graph));
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  VGPU_RUNTIME_CALL(cudaGraphGetNodes_v10000, api_call_ns, graph, nodes, count);
  return call.Return(cuGraphGetNodes(graph, nodes, count));
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* dependencies, size_t count,
                                   const cudaKernelNodeParams* kernel_params) {
  VGPU_RUNTIME_CALL(cudaGraphAddKernelNode_v10000, api_call_ns, node, graph, dependencies, count,
                    kernel_params);
  const Kernel* kernel = FindKernel(kernel_params->func);
  if (kernel == nullptr) return call.Return(cudaErrorInvalidDeviceFunction);
  Operation operation = {};
  Work& work = operation.work;
  work.kind = WorkKind::kKernel;
  work.kernel = kernel;
  const dim3 grid = kernel_params->gridDim;
  const dim3 block = kernel_params->blockDim;
  const uint32_t sizes[2][3] = {{grid.x, grid.y, grid.z}, {block.x, block.y, block.z}};
  for (int i = 0; i < 3; ++i) {
    work.grid[i] = sizes[0][i];
    work.block[i] = sizes[1][i];
  }
  work.dynamic_shared_bytes = kernel_params->sharedMemBytes;
  std::vector<GraphNode*> after;
  for (size_t i = 0; i < count; ++i) after.push_back(reinterpret_cast<GraphNode*>(dependencies[i]));
  GraphNode* added = AddNode(*reinterpret_cast<Graph*>(graph), operation, std::move(after));
  *node = reinterpret_cast<cudaGraphNode_t>(added);
  return call.Return(cudaSuccess);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                 unsigned long long flags) {
  VGPU_RUNTIME_CALL(cudaGraphInstantiate_v12000, graph_launch_call_ns, exec, graph, flags);
  return call.Return(cuGraphInstantiateWithFlags(exec, graph, flags));
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph,
                                          unsigned long long flags) {
  VGPU_RUNTIME_CALL(cudaGraphInstantiateWithFlags_v11040, graph_launch_call_ns, exec, graph, flags);
  return call.Return(cuGraphInstantiateWithFlags(exec, graph, flags));
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  VGPU_RUNTIME_CALL(cudaGraphExecDestroy_v10000, api_call_ns, exec);
  return call.Return(cuGraphExecDestroy(exec));
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  VGPU_RUNTIME_CALL(cudaGraphLaunch_v10000, graph_launch_call_ns, exec, stream);
  return call.Return(cuGraphLaunch(exec, stream));
}

}  // extern "C"
