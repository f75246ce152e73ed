// libcudart: errors, devices, versions.
#include <cstdio>
#include <cstring>

#include "tests/virtual_gpu/model/faults.h"
#include "tests/virtual_gpu/runtime/runtime_call.h"

namespace vgpu {
namespace {

thread_local cudaError_t last_error = cudaSuccess;

constexpr int kRuntimeMajor = CUDART_VERSION / 1000;

}  // namespace

cudaError_t Remember(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) last_error = error;
  return error;
}

cudaError_t PrepareRuntime() {
  if (CurrentContext() != nullptr && Readiness() == CUDA_SUCCESS) return cudaSuccess;
  if (Has(Fault::no_driver)) return Remember(cudaErrorInsufficientDriver);
  const CUresult ready = cuInit(0);
  if (ready != CUDA_SUCCESS) return Remember(static_cast<cudaError_t>(ready));
  int driver_version = 0;
  cuDriverGetVersion(&driver_version);
  if (driver_version / 1000 < kRuntimeMajor) return Remember(cudaErrorInsufficientDriver);
  if (CurrentContext() == nullptr) SetCurrentContext(&UsePrimaryContext(0));
  return cudaSuccess;
}

}  // namespace vgpu

using namespace vgpu;

extern "C" {

cudaError_t cudaGetLastError(void) {
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError(void) { return last_error; }

const char* cudaGetErrorName(cudaError_t error) {
  const char* name = nullptr;
  if (error == cudaErrorInsufficientDriver) return "cudaErrorInsufficientDriver";
  cuGetErrorName(static_cast<CUresult>(error), &name);
  return name;
}

const char* cudaGetErrorString(cudaError_t error) { return cudaGetErrorName(error); }

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = 0;  // as without a driver
  if (!Has(Fault::no_driver)) cuDriverGetVersion(version);
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 0;
  VGPU_RUNTIME_CALL(cudaGetDeviceCount_v3020, api_call_ns, count);
  return call.Return(cuDeviceGetCount(count));
}

cudaError_t cudaSetDevice(int device) {
  VGPU_RUNTIME_CALL(cudaSetDevice_v3020, api_call_ns, device);
  if (device < 0 || static_cast<size_t>(device) >= TheMachine().devices.size()) {
    return call.Return(cudaErrorInvalidDevice);
  }
  SetCurrentContext(&UsePrimaryContext(device));
  return call.Return(cudaSuccess);
}

cudaError_t cudaGetDevice(int* device) {
  VGPU_RUNTIME_CALL(cudaGetDevice_v3020, api_call_ns, device);
  *device = CurrentDevice();
  return call.Return(cudaSuccess);
}

cudaError_t cudaInitDevice(int device, unsigned int deviceFlags, unsigned int flags) {
  VGPU_RUNTIME_CALL(cudaInitDevice_v12000, api_call_ns, device, deviceFlags, flags);
  UsePrimaryContext(device);
  return call.Return(cudaSuccess);
}

cudaError_t cudaSetDeviceFlags(unsigned int flags) {
  VGPU_RUNTIME_CALL(cudaSetDeviceFlags_v3020, api_call_ns, flags);
  return call.Return(cudaSuccess);
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attr, int device) {
  VGPU_RUNTIME_CALL(cudaDeviceGetAttribute_v5000, api_call_ns, value, attr, device);
  return call.Return(cuDeviceGetAttribute(value, static_cast<CUdevice_attribute>(attr), device));
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  VGPU_RUNTIME_CALL(cudaGetDeviceProperties_v12000, api_call_ns, properties, device);
  *properties = {};
  const CUresult named = cuDeviceGetName(properties->name, sizeof properties->name, device);
  if (named != CUDA_SUCCESS) return call.Return(named);
  cuDeviceTotalMem(&properties->totalGlobalMem, device);
  CUuuid uuid;
  cuDeviceGetUuid(&uuid, device);
  memcpy(&properties->uuid, &uuid, sizeof uuid);
  const auto get = [device](CUdevice_attribute attribute) {
    int value = 0;
    cuDeviceGetAttribute(&value, attribute, device);
    return value;
  };
  properties->major = get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  properties->minor = get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  properties->multiProcessorCount = get(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  properties->warpSize = get(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  properties->maxThreadsPerBlock = get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  properties->maxThreadsPerMultiProcessor = get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  properties->maxBlocksPerMultiProcessor = get(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
  properties->regsPerMultiprocessor = get(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  properties->regsPerBlock = get(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
  properties->asyncEngineCount = get(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
  properties->concurrentKernels = 1;
  properties->unifiedAddressing = 1;
  properties->managedMemory = 1;
  properties->sharedMemPerBlock =
      static_cast<size_t>(get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK));
  properties->sharedMemPerMultiprocessor =
      static_cast<size_t>(get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR));
  properties->l2CacheSize = get(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  return call.Return(cudaSuccess);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  VGPU_RUNTIME_CALL(cudaDeviceGetStreamPriorityRange_v5050, api_call_ns, least, greatest);
  *least = 0;
  *greatest = -5;
  return call.Return(cudaSuccess);
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  VGPU_RUNTIME_CALL(cudaDeviceCanAccessPeer_v4000, api_call_ns, can, device, peer);
  *can = device != peer;
  return call.Return(cudaSuccess);
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags) {
  VGPU_RUNTIME_CALL(cudaDeviceEnablePeerAccess_v4000, api_call_ns, peer, flags);
  return call.Return(cudaSuccess);
}

cudaError_t cudaDeviceSynchronize(void) {
  VGPU_RUNTIME_CALL_PLAIN(cudaDeviceSynchronize_v3020, sync_call_ns);
  return call.Return(cuCtxSynchronize());
}

cudaError_t cudaDeviceReset(void) {
  VGPU_RUNTIME_CALL_PLAIN(cudaDeviceReset_v3020, sync_call_ns);
  return call.Return(cuCtxSynchronize());
}

cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult* status) {
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
  const CUresult result = cuGetProcAddress(symbol, function, CUDART_VERSION, flags, &found);
  if (status != nullptr) *status = static_cast<cudaDriverEntryPointQueryResult>(found);
  return Remember(static_cast<cudaError_t>(result));
}

}  // extern "C"
