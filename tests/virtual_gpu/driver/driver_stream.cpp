// libcuda: kernel launches, streams, events.
#include "tests/virtual_gpu/driver/driver_call.h"
#include "tests/virtual_gpu/model/clock.h"
#include "tests/virtual_gpu/model/graph.h"
#include "tests/virtual_gpu/model/host_functions.h"
#include "tests/virtual_gpu/model/kernels.h"
#include "tests/virtual_gpu/model/operations.h"
#include "tests/virtual_gpu/model/owned.h"

using namespace vgpu;

namespace {

struct Shape {
  unsigned grid[3];
  unsigned block[3];
  unsigned cluster[3];
  unsigned shared_bytes;
};

CUresult LaunchKernel(DriverCall& call, CUfunction function, const Shape& launch, CUstream stream) {
  Context* context = CurrentContext();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  const Kernel* kernel = reinterpret_cast<const Kernel*>(function);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  uint64_t threads_of_block = 1;
  Operation operation = {};
  Work& work = operation.work;
  for (int i = 0; i < 3; ++i) {
    if (launch.grid[i] == 0 || launch.block[i] == 0) return CUDA_ERROR_INVALID_VALUE;
    threads_of_block *= launch.block[i];
    work.grid[i] = launch.grid[i];
    work.block[i] = launch.block[i];
    work.cluster[i] = launch.cluster[i];
  }
  if (threads_of_block > static_cast<uint64_t>(kernel->spec.max_threads_per_block)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  call.SetKernel(kernel);
  work.kind = WorkKind::kKernel;
  work.kernel = kernel;
  work.dynamic_shared_bytes = launch.shared_bytes;
  operation.fixed_ns = TakeNextKernelNs();
  IssueOrCapture(StreamOf(*context, stream), operation);
  return CUDA_SUCCESS;
}

CUstream Handle(Stream* stream) { return reinterpret_cast<CUstream>(stream); }
CUevent Handle(Event* event) { return reinterpret_cast<CUevent>(event); }
Event* FromHandle(CUevent event) { return reinterpret_cast<Event*>(event); }

}  // namespace

extern "C" {

CUresult cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                        unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
                        unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
                        void** kernelParams, void** extra) {
  VGPU_DRIVER_CALL(cuLaunchKernel, launch_call_ns, f, gridDimX, gridDimY, gridDimZ, blockDimX,
                   blockDimY, blockDimZ, sharedMemBytes, hStream, kernelParams, extra);
  return call.Return(LaunchKernel(call, f,
                                  {{gridDimX, gridDimY, gridDimZ},
                                   {blockDimX, blockDimY, blockDimZ},
                                   {0, 0, 0},
                                   sharedMemBytes},
                                  hStream));
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction f, void** kernelParams,
                          void** extra) {
  VGPU_DRIVER_CALL(cuLaunchKernelEx, launch_call_ns, config, f, kernelParams, extra);
  Shape launch = {{config->gridDimX, config->gridDimY, config->gridDimZ},
                  {config->blockDimX, config->blockDimY, config->blockDimZ},
                  {0, 0, 0},
                  config->sharedMemBytes};
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    if (config->attrs[i].id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) continue;
    launch.cluster[0] = config->attrs[i].value.clusterDim.x;
    launch.cluster[1] = config->attrs[i].value.clusterDim.y;
    launch.cluster[2] = config->attrs[i].value.clusterDim.z;
  }
  return call.Return(LaunchKernel(call, f, launch, config->hStream));
}

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  VGPU_DRIVER_CALL(cuModuleLoadData, api_call_ns, module, image);
  static int the_module;  // all declared kernels are in it
  *module = reinterpret_cast<CUmodule>(&the_module);
  return call.Return(CUDA_SUCCESS);
}

CUresult cuModuleUnload(CUmodule module) {
  VGPU_DRIVER_CALL(cuModuleUnload, api_call_ns, module);
  return call.Return(CUDA_SUCCESS);
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  VGPU_DRIVER_CALL(cuModuleGetFunction, api_call_ns, function, module, name);
  const Kernel* kernel = FindKernelByName(name);
  *function = reinterpret_cast<CUfunction>(const_cast<Kernel*>(kernel));
  return call.Return(kernel == nullptr ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS);
}

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned int flags, int priority) {
  VGPU_DRIVER_CALL(cuStreamCreateWithPriority, api_call_ns, stream, flags, priority);
  VGPU_NEED_CONTEXT(context);
  *stream = Handle(CreateStream(*context, (flags & CU_STREAM_NON_BLOCKING) == 0, priority));
  return call.Return(CUDA_SUCCESS);
}

CUresult cuStreamCreate(CUstream* stream, unsigned int flags) {
  VGPU_DRIVER_CALL(cuStreamCreate, api_call_ns, stream, flags);
  VGPU_NEED_CONTEXT(context);
  *stream = Handle(CreateStream(*context, (flags & CU_STREAM_NON_BLOCKING) == 0, 0));
  return call.Return(CUDA_SUCCESS);
}

CUresult cuStreamDestroy_v2(CUstream stream) {
  VGPU_DRIVER_CALL(cuStreamDestroy_v2, api_call_ns, stream);
  if (reinterpret_cast<uintptr_t>(stream) <= 2) return call.Return(CUDA_ERROR_INVALID_HANDLE);
  DestroyStream(reinterpret_cast<Stream*>(stream));
  return call.Return(CUDA_SUCCESS);
}

CUresult cuStreamSynchronize(CUstream stream) {
  VGPU_DRIVER_CALL(cuStreamSynchronize, sync_call_ns, stream);
  VGPU_NEED_CONTEXT(context);
  SynchronizeStream(StreamOf(*context, stream));
  return call.Return(CUDA_SUCCESS);
}

CUresult cuStreamQuery(CUstream stream) {
  VGPU_DRIVER_CALL(cuStreamQuery, api_call_ns, stream);
  VGPU_NEED_CONTEXT(context);
  return call.Return(IsIdle(StreamOf(*context, stream)) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY);
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags) {
  VGPU_DRIVER_CALL(cuStreamWaitEvent, api_call_ns, stream, event, flags);
  VGPU_NEED_CONTEXT(context);
  if (event == nullptr) return call.Return(CUDA_ERROR_INVALID_HANDLE);
  StreamWaitsEvent(StreamOf(*context, stream), *FromHandle(event));
  return call.Return(CUDA_SUCCESS);
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* argument) {
  VGPU_DRIVER_CALL(cuLaunchHostFunc, api_call_ns, stream, function, argument);
  VGPU_NEED_CONTEXT(context);
  if (function == nullptr) return call.Return(CUDA_ERROR_INVALID_VALUE);
  LaunchHostFunction(StreamOf(*context, stream), function, argument);
  return call.Return(CUDA_SUCCESS);
}

CUresult cuStreamGetPriority(CUstream stream, int* priority) {
  VGPU_DRIVER_CALL(cuStreamGetPriority, api_call_ns, stream, priority);
  VGPU_NEED_CONTEXT(context);
  *priority = StreamOf(*context, stream).priority;
  return call.Return(CUDA_SUCCESS);
}

CUresult cuEventCreate(CUevent* event, unsigned int flags) {
  VGPU_DRIVER_CALL(cuEventCreate, api_call_ns, event, flags);
  auto made = std::make_unique<Event>();
  {
    const std::lock_guard guard(TheMachine().lock);
    made->id = TheMachine().NextEventId();
  }
  made->timing = (flags & CU_EVENT_DISABLE_TIMING) == 0;
  *event = Handle(Owned<Event>::Keep(std::move(made)));
  return call.Return(CUDA_SUCCESS);
}

CUresult cuEventDestroy_v2(CUevent event) {
  VGPU_DRIVER_CALL(cuEventDestroy_v2, api_call_ns, event);
  return call.Return(Owned<Event>::Destroy(event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  VGPU_DRIVER_CALL(cuEventRecord, api_call_ns, event, stream);
  VGPU_NEED_CONTEXT(context);
  if (event == nullptr) return call.Return(CUDA_ERROR_INVALID_HANDLE);
  RecordEvent(*FromHandle(event), StreamOf(*context, stream));
  return call.Return(CUDA_SUCCESS);
}

CUresult cuEventQuery(CUevent event) {
  VGPU_DRIVER_CALL(cuEventQuery, api_call_ns, event);
  if (event == nullptr) return call.Return(CUDA_ERROR_INVALID_HANDLE);
  const std::lock_guard guard(TheMachine().lock);
  return call.Return(FromHandle(event)->time_ns <= NowNs() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY);
}

CUresult cuEventSynchronize(CUevent event) {
  VGPU_DRIVER_CALL(cuEventSynchronize, sync_call_ns, event);
  if (event == nullptr) return call.Return(CUDA_ERROR_INVALID_HANDLE);
  SynchronizeEvent(*FromHandle(event));
  return call.Return(CUDA_SUCCESS);
}

CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
  VGPU_DRIVER_CALL(cuEventElapsedTime_v2, api_call_ns, milliseconds, start, end);
  if (start == nullptr || end == nullptr) return call.Return(CUDA_ERROR_INVALID_HANDLE);
  const std::lock_guard guard(TheMachine().lock);
  const Event& first = *FromHandle(start);
  const Event& last = *FromHandle(end);
  if (!first.timing || !last.timing || first.time_ns == 0 || last.time_ns == 0) {
    return call.Return(CUDA_ERROR_INVALID_HANDLE);
  }
  if (std::max(first.time_ns, last.time_ns) > NowNs()) return call.Return(CUDA_ERROR_NOT_READY);
  *milliseconds = static_cast<float>(static_cast<double>(last.time_ns - first.time_ns) * 1e-6);
  return call.Return(CUDA_SUCCESS);
}

}  // extern "C"
