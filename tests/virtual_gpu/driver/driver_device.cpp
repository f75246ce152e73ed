// libcuda: initialisation, devices, contexts, and the lookup of functions by name.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "tests/virtual_gpu/driver/driver_call.h"
#include "tests/virtual_gpu/model/faults.h"
#include "tests/virtual_gpu/model/memory.h"
#include "tests/virtual_gpu/model/operations.h"

using namespace vgpu;

namespace {

constexpr const char* kDeviceName = "Virtual GPU (trainprof)";

bool Exists(CUdevice device) {
  return device >= 0 && static_cast<size_t>(device) < TheMachine().devices.size();
}

CUcontext Handle(Context* context) { return reinterpret_cast<CUcontext>(context); }
Context* FromHandle(CUcontext context) { return reinterpret_cast<Context*>(context); }

// The figures of one H100, which the costs in the settings suit too. 0 for what is not listed.
int AttributeOf(CUdevice_attribute attribute) {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      return 1024;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
      return 1024;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
      return 1024;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
      return 64;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
      return 2147483647;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
      return 65535;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
      return 65535;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
      return 49152;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      return 232448;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
      return 233472;
    case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
      return 1024;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
      return 65536;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
      return 65536;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
      return 2048;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
      return 32;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
      return 32;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
      return static_cast<int>(Get(Setting::clock_mhz).greatest * 1000);
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
      return 2619000;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
      return 5120;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
      return 52428800;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      return static_cast<int>(Least(Setting::sm_count));
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
      return 2 * static_cast<int>(Least(Setting::copy_engines));
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      return 9;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      return 0;
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
      return 1;
    default:
      return 0;
  }
}

}  // namespace

extern "C" {

CUresult cuInit(unsigned int flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return Initialize();
}

CUresult cuDriverGetVersion(int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = static_cast<int>(
      FaultNumber(Fault::old_driver, static_cast<int64_t>(Least(Setting::driver_version))));
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  VGPU_DRIVER_CALL(cuDeviceGetCount, api_call_ns, count);
  *count = static_cast<int>(TheMachine().devices.size());
  return call.Return(CUDA_SUCCESS);
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  VGPU_DRIVER_CALL(cuDeviceGet, api_call_ns, device, ordinal);
  if (!Exists(ordinal)) return call.Return(CUDA_ERROR_INVALID_DEVICE);
  *device = ordinal;
  return call.Return(CUDA_SUCCESS);
}

CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  VGPU_DRIVER_CALL(cuDeviceGetName, api_call_ns, name, length, device);
  if (!Exists(device)) return call.Return(CUDA_ERROR_INVALID_DEVICE);
  snprintf(name, static_cast<size_t>(length), "%s", kDeviceName);
  return call.Return(CUDA_SUCCESS);
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  VGPU_DRIVER_CALL(cuDeviceGetUuid_v2, api_call_ns, uuid, device);
  if (!Exists(device)) return call.Return(CUDA_ERROR_INVALID_DEVICE);
  DeviceUuid(device, Has(Fault::mig), uuid->bytes);
  return call.Return(CUDA_SUCCESS);
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  VGPU_DRIVER_CALL(cuDeviceTotalMem_v2, api_call_ns, bytes, device);
  if (!Exists(device)) return call.Return(CUDA_ERROR_INVALID_DEVICE);
  *bytes = RoomOf(*TheMachine().devices[static_cast<size_t>(device)]).total_bytes;
  return call.Return(CUDA_SUCCESS);
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  VGPU_DRIVER_CALL(cuDeviceGetAttribute, api_call_ns, value, attribute, device);
  if (!Exists(device)) return call.Return(CUDA_ERROR_INVALID_DEVICE);
  *value = AttributeOf(attribute);
  return call.Return(CUDA_SUCCESS);
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  VGPU_DRIVER_CALL(cuDevicePrimaryCtxRetain, api_call_ns, context, device);
  if (!Exists(device)) return call.Return(CUDA_ERROR_INVALID_DEVICE);
  *context = Handle(&UsePrimaryContext(device));
  return call.Return(CUDA_SUCCESS);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  VGPU_DRIVER_CALL(cuDevicePrimaryCtxRelease_v2, api_call_ns, device);
  return call.Return(Exists(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE);
}

CUresult cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* parameters, unsigned int flags,
                        CUdevice device) {
  VGPU_DRIVER_CALL(cuCtxCreate_v4, api_call_ns, context, parameters, flags, device);
  if (!Exists(device)) return call.Return(CUDA_ERROR_INVALID_DEVICE);
  Context* made = CreateContext(device);
  SetCurrentContext(made);
  *context = Handle(made);
  return call.Return(CUDA_SUCCESS);
}

CUresult cuCtxDestroy_v2(CUcontext context) {
  VGPU_DRIVER_CALL(cuCtxDestroy_v2, api_call_ns, context);
  if (context == nullptr) return call.Return(CUDA_ERROR_INVALID_VALUE);
  SynchronizeContext(*FromHandle(context));
  DestroyContext(FromHandle(context));
  return call.Return(CUDA_SUCCESS);
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  VGPU_DRIVER_CALL(cuCtxGetCurrent, api_call_ns, context);
  *context = Handle(CurrentContext());
  return call.Return(CUDA_SUCCESS);
}

CUresult cuCtxSetCurrent(CUcontext context) {
  VGPU_DRIVER_CALL(cuCtxSetCurrent, api_call_ns, context);
  SetCurrentContext(FromHandle(context));
  return call.Return(CUDA_SUCCESS);
}

CUresult cuCtxGetDevice(CUdevice* device) {
  VGPU_DRIVER_CALL(cuCtxGetDevice, api_call_ns, device);
  VGPU_NEED_CONTEXT(context);
  *device = context->device->ordinal;
  return call.Return(CUDA_SUCCESS);
}

CUresult cuCtxSynchronize(void) {
  DriverCall call(CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize, nullptr, Setting::sync_call_ns);
  if (call.ready() != CUDA_SUCCESS) return call.Return(call.ready());
  VGPU_NEED_CONTEXT(context);
  SynchronizeContext(*context);
  return call.Return(CUDA_SUCCESS);
}

// Looks the newest version of the function up in this library.
CUresult cuGetProcAddress_v2(const char* symbol, void** function, int, cuuint64_t,
                             CUdriverProcAddressQueryResult* status) {
  static void* const self = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  *function = nullptr;
  for (const char* version : {"_v4", "_v3", "_v2", ""}) {
    *function = dlsym(self, (std::string(symbol) + version).c_str());
    if (*function != nullptr) break;
  }
  const bool found = *function != nullptr;
  if (status != nullptr) {
    *status = found ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  return found ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetErrorName(CUresult error, const char** name) {
  switch (error) {
    case CUDA_SUCCESS:
      *name = "CUDA_SUCCESS";
      break;
    case CUDA_ERROR_INVALID_VALUE:
      *name = "CUDA_ERROR_INVALID_VALUE";
      break;
    case CUDA_ERROR_OUT_OF_MEMORY:
      *name = "CUDA_ERROR_OUT_OF_MEMORY";
      break;
    case CUDA_ERROR_NOT_INITIALIZED:
      *name = "CUDA_ERROR_NOT_INITIALIZED";
      break;
    case CUDA_ERROR_NO_DEVICE:
      *name = "CUDA_ERROR_NO_DEVICE";
      break;
    case CUDA_ERROR_INVALID_DEVICE:
      *name = "CUDA_ERROR_INVALID_DEVICE";
      break;
    case CUDA_ERROR_INVALID_CONTEXT:
      *name = "CUDA_ERROR_INVALID_CONTEXT";
      break;
    case CUDA_ERROR_INVALID_HANDLE:
      *name = "CUDA_ERROR_INVALID_HANDLE";
      break;
    case CUDA_ERROR_NOT_FOUND:
      *name = "CUDA_ERROR_NOT_FOUND";
      break;
    case CUDA_ERROR_NOT_READY:
      *name = "CUDA_ERROR_NOT_READY";
      break;
    default:
      *name = "CUDA_ERROR_UNKNOWN";
      break;
  }
  return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char** text) { return cuGetErrorName(error, text); }

}  // extern "C"
