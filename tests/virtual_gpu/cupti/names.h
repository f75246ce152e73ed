// Names of CUDA's functions by CUPTI's callback ids, generated from its headers when this is built.
#pragma once

#include <cupti.h>

namespace vgpu {

// As cuptiGetCallbackName says them, with the version: cudaLaunchKernel_v7000. Null for an unknown
// id.
const char* CallbackName(CUpti_CallbackDomain domain, uint32_t cbid);
// As callbacks and programs call them: cudaLaunchKernel. Valid as long as the process.
const char* FunctionName(CUpti_CallbackDomain domain, uint32_t cbid);

}  // namespace vgpu
