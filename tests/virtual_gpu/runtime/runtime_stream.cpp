// libcudart: kernel launches, streams, events.
#include "tests/virtual_gpu/model/kernels.h"
#include "tests/virtual_gpu/runtime/runtime_call.h"

using namespace vgpu;

namespace {

CUfunction Function(const Kernel* kernel) {
  return reinterpret_cast<CUfunction>(const_cast<Kernel*>(kernel));
}

}  // namespace

extern "C" {

cudaError_t cudaLaunchKernel(const void* func, dim3 gridDim, dim3 blockDim, void** args,
                             size_t sharedMem, cudaStream_t stream) {
  VGPU_RUNTIME_CALL(cudaLaunchKernel_v7000, launch_call_ns, func, gridDim, blockDim, args,
                    sharedMem, stream);
  const Kernel* kernel = FindKernel(func);
  if (kernel == nullptr) return call.Return(cudaErrorInvalidDeviceFunction);
  call.SetKernel(kernel);
  const CUresult result =
      cuLaunchKernel(Function(kernel), gridDim.x, gridDim.y, gridDim.z, blockDim.x, blockDim.y,
                     blockDim.z, static_cast<unsigned>(sharedMem), stream, args, nullptr);
  // The driver's "invalid value" is the runtime's "invalid configuration" here.
  if (result == CUDA_ERROR_INVALID_VALUE) return call.Return(cudaErrorInvalidConfiguration);
  return call.Return(result);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* func, void** args) {
  VGPU_RUNTIME_CALL(cudaLaunchKernelExC_v11060, launch_call_ns, config, func, args);
  const Kernel* kernel = FindKernel(func);
  if (kernel == nullptr) return call.Return(cudaErrorInvalidDeviceFunction);
  call.SetKernel(kernel);
  CUlaunchConfig driver_config = {};
  driver_config.gridDimX = config->gridDim.x;
  driver_config.gridDimY = config->gridDim.y;
  driver_config.gridDimZ = config->gridDim.z;
  driver_config.blockDimX = config->blockDim.x;
  driver_config.blockDimY = config->blockDim.y;
  driver_config.blockDimZ = config->blockDim.z;
  driver_config.sharedMemBytes = static_cast<unsigned>(config->dynamicSmemBytes);
  driver_config.hStream = config->stream;
  driver_config.attrs = reinterpret_cast<CUlaunchAttribute*>(config->attrs);  // the same layout
  driver_config.numAttrs = config->numAttrs;
  return call.Return(cuLaunchKernelEx(&driver_config, Function(kernel), args, nullptr));
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* func) {
  VGPU_RUNTIME_CALL(cudaFuncGetAttributes_v3020, api_call_ns, attributes, func);
  const Kernel* kernel = FindKernel(func);
  if (kernel == nullptr) return call.Return(cudaErrorInvalidDeviceFunction);
  *attributes = {};
  attributes->numRegs = kernel->spec.registers;
  attributes->sharedSizeBytes = static_cast<size_t>(kernel->spec.static_shared_bytes);
  attributes->localSizeBytes = static_cast<size_t>(kernel->spec.local_bytes_per_thread);
  attributes->maxThreadsPerBlock = kernel->spec.max_threads_per_block;
  return call.Return(cudaSuccess);
}

cudaError_t cudaFuncSetAttribute(const void* func, cudaFuncAttribute attr, int value) {
  VGPU_RUNTIME_CALL(cudaFuncSetAttribute_v9000, api_call_ns, func, attr, value);
  return call.Return(FindKernel(func) == nullptr ? cudaErrorInvalidDeviceFunction : cudaSuccess);
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  VGPU_RUNTIME_CALL(cudaStreamCreate_v3020, api_call_ns, stream);
  return call.Return(cuStreamCreate(stream, CU_STREAM_DEFAULT));
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  VGPU_RUNTIME_CALL(cudaStreamCreateWithFlags_v5000, api_call_ns, stream, flags);
  return call.Return(cuStreamCreate(stream, flags));
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags, int priority) {
  VGPU_RUNTIME_CALL(cudaStreamCreateWithPriority_v5050, api_call_ns, stream, flags, priority);
  return call.Return(cuStreamCreateWithPriority(stream, flags, priority));
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  VGPU_RUNTIME_CALL(cudaStreamDestroy_v5050, api_call_ns, stream);
  return call.Return(cuStreamDestroy(stream));
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  VGPU_RUNTIME_CALL(cudaStreamSynchronize_v3020, sync_call_ns, stream);
  return call.Return(cuStreamSynchronize(stream));
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  VGPU_RUNTIME_CALL(cudaStreamQuery_v3020, api_call_ns, stream);
  return call.Return(cuStreamQuery(stream));
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
  VGPU_RUNTIME_CALL(cudaStreamWaitEvent_v3020, api_call_ns, stream, event, flags);
  return call.Return(cuStreamWaitEvent(stream, event, flags));
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void* userData) {
  VGPU_RUNTIME_CALL(cudaLaunchHostFunc_v10000, api_call_ns, stream, fn, userData);
  return call.Return(cuLaunchHostFunc(stream, fn, userData));
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  VGPU_RUNTIME_CALL(cudaStreamGetPriority_v5050, api_call_ns, stream, priority);
  return call.Return(cuStreamGetPriority(stream, priority));
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  VGPU_RUNTIME_CALL(cudaEventCreate_v3020, api_call_ns, event);
  return call.Return(cuEventCreate(event, CU_EVENT_DEFAULT));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  VGPU_RUNTIME_CALL(cudaEventCreateWithFlags_v3020, api_call_ns, event, flags);
  return call.Return(cuEventCreate(event, flags));
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  VGPU_RUNTIME_CALL(cudaEventDestroy_v3020, api_call_ns, event);
  return call.Return(cuEventDestroy(event));
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  VGPU_RUNTIME_CALL(cudaEventRecord_v3020, api_call_ns, event, stream);
  return call.Return(cuEventRecord(event, stream));
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags) {
  VGPU_RUNTIME_CALL(cudaEventRecordWithFlags_v11010, api_call_ns, event, stream, flags);
  return call.Return(cuEventRecord(event, stream));
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  VGPU_RUNTIME_CALL(cudaEventQuery_v3020, api_call_ns, event);
  return call.Return(cuEventQuery(event));
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  VGPU_RUNTIME_CALL(cudaEventSynchronize_v3020, sync_call_ns, event);
  return call.Return(cuEventSynchronize(event));
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  VGPU_RUNTIME_CALL(cudaEventElapsedTime_v12080, api_call_ns, milliseconds, start, end);
  return call.Return(cuEventElapsedTime(milliseconds, start, end));
}

}  // extern "C"
