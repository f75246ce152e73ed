// libcupti: versions, names of errors, ids of CUDA's objects. What needs no driver works without
// one.
#include "tests/virtual_gpu/cupti/api.h"
#include "tests/virtual_gpu/model/faults.h"
#include "tests/virtual_gpu/model/graph.h"
#include "tests/virtual_gpu/model/session.h"

using namespace vgpu;

namespace {

struct ResultName {
  CUptiResult result;
  const char* name;
};

constexpr ResultName kResultNames[] = {
#define VGPU_NAME(id, name) {name, #name},
#include "vgpu_result_names.inc"
#undef VGPU_NAME
};

const Context* FromHandle(CUcontext context) {
  return context == nullptr ? CurrentContext() : reinterpret_cast<const Context*>(context);
}

}  // namespace

extern "C" {

CUptiResult cuptiGetVersion(uint32_t* version) {
  VGPU_NEED_POINTER(version);
  *version = EmulatedApiVersion();
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetTimestamp(uint64_t* timestamp) {
  VGPU_NEED_POINTER(timestamp);
  VGPU_CLAIM(Scope::kProcess);
  *timestamp = Has(Fault::own_timestamps) ? 1 : TheCupti().clock.Now();
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetResultString(CUptiResult result, const char** text) {
  VGPU_NEED_POINTER(text);
  for (const ResultName& known : kResultNames) {
    if (known.result != result) continue;
    *text = known.name;
    return CUPTI_SUCCESS;
  }
  *text = "<unknown>";
  return CUPTI_ERROR_INVALID_PARAMETER;
}

CUptiResult cuptiGetErrorMessage(CUptiResult result, const char** text) {
  VGPU_NEED_POINTER(text);
  if (result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES) {
    *text =
        "User doesn't have sufficient privileges which are required to start the profiling "
        "session.";
    return CUPTI_SUCCESS;
  }
  return cuptiGetResultString(result, text);
}

// From 13.3 on. version: of the records' layouts; 0: this library's.
CUptiResult cuptiActivityGetStructSize(CUpti_ActivityKind kind, uint32_t version, size_t* bytes) {
  VGPU_NEED_DRIVER(cuptiActivityGetStructSize);
  VGPU_NEED_POINTER(bytes);
  if (EmulatedToolkit() < 13030) return CUPTI_ERROR_API_NOT_IMPLEMENTED;
  if (version != 0 || RecordBytes(kind) == 0) return CUPTI_ERROR_INVALID_PARAMETER;
  *bytes = RecordBytes(kind);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetLastError(void) { return CUPTI_SUCCESS; }

CUptiResult cuptiGetContextId(CUcontext context, uint32_t* id) {
  VGPU_NEED_DRIVER(cuptiGetContextId);
  VGPU_NEED_POINTER(id);
  const Context* found = FromHandle(context);
  if (found == nullptr) return CUPTI_ERROR_INVALID_CONTEXT;
  *id = found->uid;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetDeviceId(CUcontext context, uint32_t* id) {
  VGPU_NEED_DRIVER(cuptiGetDeviceId);
  VGPU_NEED_POINTER(id);
  const Context* found = FromHandle(context);
  if (found == nullptr) return CUPTI_ERROR_INVALID_CONTEXT;
  *id = static_cast<uint32_t>(found->device->ordinal);
  return CUPTI_SUCCESS;
}

// per_thread: a null stream is the thread's own default stream.
CUptiResult cuptiGetStreamIdEx(CUcontext context, CUstream stream, uint8_t per_thread,
                               uint32_t* id) {
  VGPU_NEED_DRIVER(cuptiGetStreamIdEx);
  VGPU_NEED_POINTER(id);
  const Context* found = FromHandle(context);
  if (found == nullptr) return CUPTI_ERROR_INVALID_CONTEXT;
  const void* handle = stream;
  if (stream == nullptr && per_thread != 0) handle = CU_STREAM_PER_THREAD;
  *id = StreamOf(const_cast<Context&>(*found), handle).id;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetStreamId(CUcontext context, CUstream stream, uint32_t* id) {
  return cuptiGetStreamIdEx(context, stream, 0, id);
}

CUptiResult cuptiGetGraphId(CUgraph graph, uint32_t* id) {
  VGPU_NEED_DRIVER(cuptiGetGraphId);
  VGPU_NEED_POINTER(graph);
  VGPU_NEED_POINTER(id);
  *id = reinterpret_cast<const Graph*>(graph)->id;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetGraphExecId(CUgraphExec exec, uint32_t* id) {
  VGPU_NEED_DRIVER(cuptiGetGraphExecId);
  VGPU_NEED_POINTER(exec);
  VGPU_NEED_POINTER(id);
  *id = reinterpret_cast<const GraphExec*>(exec)->graph.id;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetGraphNodeId(CUgraphNode node, uint64_t* id) {
  VGPU_NEED_DRIVER(cuptiGetGraphNodeId);
  VGPU_NEED_POINTER(node);
  VGPU_NEED_POINTER(id);
  *id = reinterpret_cast<const GraphNode*>(node)->id;
  return CUPTI_SUCCESS;
}

}  // extern "C"
