// How each runtime function begins: VGPU_RUNTIME_CALL initialises the driver on first use, makes
// the device's primary context current, and frames the call for the tool. Calls of the driver
// within it are nested.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <cupti_runtime_cbid.h>
#include <generated_cuda_runtime_api_meta.h>

#include "tests/virtual_gpu/model/operations.h"
#include "tests/virtual_gpu/model/session.h"
#include "tests/virtual_gpu/model/settings.h"
#include "tests/virtual_gpu/model/tool.h"

namespace vgpu {

// cudaSuccess once the driver works; the runtime's errors have the driver's numbers but for a
// driver that is absent or too old.
cudaError_t PrepareRuntime();
// Keeps an error for cudaGetLastError.
cudaError_t Remember(cudaError_t error);

class RuntimeCall {
 public:
  RuntimeCall(uint32_t cbid, const void* params, Setting cost)
      : scope_(ApiDomain::kRuntime, cbid, params) {
    scope_.TakeAtLeast(CallNs(cost));
  }
  void SetKernel(const Kernel* kernel) { scope_.SetKernel(kernel); }
  cudaError_t Return(CUresult result) { return Return(static_cast<cudaError_t>(result)); }
  cudaError_t Return(cudaError_t result) {
    scope_.Return(result);
    return Remember(result);
  }

 private:
  ApiScope scope_;
};

// function: with its version, as in CUPTI's list; cost: the setting that says how long the call
// takes at least; then the arguments.
#define VGPU_RUNTIME_CALL(function, cost, ...)                                      \
  if (const cudaError_t unready = ::vgpu::PrepareRuntime(); unready != cudaSuccess) \
    return unready;                                                                 \
  function##_params call_params = {__VA_ARGS__};                                    \
  ::vgpu::RuntimeCall call(CUPTI_RUNTIME_TRACE_CBID_##function, &call_params, ::vgpu::Setting::cost)

// The same for a function without arguments.
#define VGPU_RUNTIME_CALL_PLAIN(function, cost)                                     \
  if (const cudaError_t unready = ::vgpu::PrepareRuntime(); unready != cudaSuccess) \
    return unready;                                                                 \
  ::vgpu::RuntimeCall call(CUPTI_RUNTIME_TRACE_CBID_##function, nullptr, ::vgpu::Setting::cost)

}  // namespace vgpu
