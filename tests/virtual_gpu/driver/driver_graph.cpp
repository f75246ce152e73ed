// libcuda: CUDA graphs.
#include "tests/virtual_gpu/driver/driver_call.h"
#include "tests/virtual_gpu/model/graph.h"
#include "tests/virtual_gpu/model/owned.h"

using namespace vgpu;

namespace {

Graph* FromHandle(CUgraph graph) { return reinterpret_cast<Graph*>(graph); }
GraphExec* FromHandle(CUgraphExec exec) { return reinterpret_cast<GraphExec*>(exec); }

}  // namespace

extern "C" {

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  VGPU_DRIVER_CALL(cuStreamBeginCapture_v2, api_call_ns, stream, mode);
  VGPU_NEED_CONTEXT(context);
  if (reinterpret_cast<uintptr_t>(stream) <= 1)
    return call.Return(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  const bool begun = BeginCapture(StreamOf(*context, stream));
  return call.Return(begun ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_STATE);
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  VGPU_DRIVER_CALL(cuStreamEndCapture, api_call_ns, stream, graph);
  VGPU_NEED_CONTEXT(context);
  std::unique_ptr<Graph> captured = EndCapture(StreamOf(*context, stream));
  if (captured == nullptr) return call.Return(CUDA_ERROR_ILLEGAL_STATE);
  *graph = reinterpret_cast<CUgraph>(Owned<Graph>::Keep(std::move(captured)));
  return call.Return(CUDA_SUCCESS);
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  VGPU_DRIVER_CALL(cuStreamIsCapturing, api_call_ns, stream, status);
  VGPU_NEED_CONTEXT(context);
  const std::lock_guard guard(TheMachine().lock);
  const bool capturing = StreamOf(*context, stream).capture != nullptr;
  *status = capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  return call.Return(CUDA_SUCCESS);
}

CUresult cuGraphCreate(CUgraph* graph, unsigned int flags) {
  VGPU_DRIVER_CALL(cuGraphCreate, api_call_ns, graph, flags);
  *graph = reinterpret_cast<CUgraph>(Owned<Graph>::Keep(NewGraph()));
  return call.Return(CUDA_SUCCESS);
}

CUresult cuGraphDestroy(CUgraph graph) {
  VGPU_DRIVER_CALL(cuGraphDestroy, api_call_ns, graph);
  return call.Return(Owned<Graph>::Destroy(graph) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
  VGPU_DRIVER_CALL(cuGraphGetNodes, api_call_ns, graph, nodes, count);
  const auto& all = FromHandle(graph)->nodes;
  if (nodes != nullptr) {
    for (size_t i = 0; i < *count && i < all.size(); ++i) {
      nodes[i] = reinterpret_cast<CUgraphNode>(all[i].get());
    }
  }
  *count = all.size();
  return call.Return(CUDA_SUCCESS);
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  VGPU_DRIVER_CALL(cuGraphInstantiateWithFlags, graph_launch_call_ns, exec, graph, flags);
  if (graph == nullptr) return call.Return(CUDA_ERROR_INVALID_VALUE);
  *exec = reinterpret_cast<CUgraphExec>(Owned<GraphExec>::Keep(Instantiate(*FromHandle(graph))));
  return call.Return(CUDA_SUCCESS);
}

CUresult cuGraphExecDestroy(CUgraphExec exec) {
  VGPU_DRIVER_CALL(cuGraphExecDestroy, api_call_ns, exec);
  return call.Return(Owned<GraphExec>::Destroy(exec) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  VGPU_DRIVER_CALL(cuGraphLaunch, graph_launch_call_ns, exec, stream);
  VGPU_NEED_CONTEXT(context);
  if (exec == nullptr) return call.Return(CUDA_ERROR_INVALID_VALUE);
  Launch(*FromHandle(exec), StreamOf(*context, stream));
  return call.Return(CUDA_SUCCESS);
}

}  // extern "C"
