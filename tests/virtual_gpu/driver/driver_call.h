// How each driver function begins: VGPU_DRIVER_CALL frames the call for the tool and refuses where
// the driver does not work.
#pragma once

#include <cuda.h>
#include <cupti_driver_cbid.h>

// Types of functions that are gone, which the list of parameters still names and cuda.h no longer
// has.
typedef unsigned int CUdeviceptr_v1;
typedef struct CUDA_MEMCPY2D_v1_st CUDA_MEMCPY2D_v1;
typedef struct CUDA_MEMCPY3D_v1_st CUDA_MEMCPY3D_v1;
typedef struct CUDA_ARRAY_DESCRIPTOR_v1_st CUDA_ARRAY_DESCRIPTOR_v1;
typedef struct CUDA_ARRAY3D_DESCRIPTOR_v1_st CUDA_ARRAY3D_DESCRIPTOR_v1;
#include <generated_cuda_meta.h>

#include "tests/virtual_gpu/model/operations.h"
#include "tests/virtual_gpu/model/session.h"
#include "tests/virtual_gpu/model/settings.h"
#include "tests/virtual_gpu/model/tool.h"

namespace vgpu {

class DriverCall {
 public:
  DriverCall(uint32_t cbid, const void* params, Setting cost)
      : scope_(ApiDomain::kDriver, cbid, params), ready_(Readiness()) {
    if (ready_ == CUDA_SUCCESS && !NestedInApiCall()) scope_.TakeAtLeast(CallNs(cost));
  }

  CUresult ready() const { return ready_; }
  CUresult Return(CUresult result) { return static_cast<CUresult>(scope_.Return(result)); }
  void SetKernel(const Kernel* kernel) { scope_.SetKernel(kernel); }

 private:
  ApiScope scope_;
  CUresult ready_;
};

// The current context, else the error that calls without one get.
#define VGPU_NEED_CONTEXT(context)                     \
  ::vgpu::Context* context = ::vgpu::CurrentContext(); \
  if (context == nullptr) return call.Return(CUDA_ERROR_INVALID_CONTEXT)

// function: with its version, as in CUPTI's list; cost: the setting that says how long the call
// takes at least; then the arguments.
#define VGPU_DRIVER_CALL(function, cost, ...)                               \
  function##_params call_params = {__VA_ARGS__};                            \
  ::vgpu::DriverCall call(CUPTI_DRIVER_TRACE_CBID_##function, &call_params, \
                          ::vgpu::Setting::cost);                           \
  if (call.ready() != CUDA_SUCCESS) return call.Return(call.ready())

}  // namespace vgpu
