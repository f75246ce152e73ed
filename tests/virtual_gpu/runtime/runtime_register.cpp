// libcudart: what nvcc's code calls, so that a program compiled by it runs unchanged. Its kernels
// have their own names and take the time that the setting nvcc_kernel_ns says.
#include <vector>

#include "tests/virtual_gpu/model/kernels.h"
#include "tests/virtual_gpu/model/settings.h"
#include "tests/virtual_gpu/runtime/runtime_call.h"

using namespace vgpu;

namespace {

struct Configuration {
  dim3 grid;
  dim3 block;
  size_t shared_bytes;
  cudaStream_t stream;
};
thread_local std::vector<Configuration> configurations;  // of kernel<<<...>>>, pushed by the caller

}  // namespace

extern "C" {

void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int) {}
char __cudaInitModule(void**) { return 1; }

void __cudaRegisterFunction(void**, const char* function, char*, const char* name, int thread_limit,
                            uint3*, uint3*, dim3*, dim3*, int*) {
  VgpuKernelSpec spec = {};
  spec.name = name;
  spec.max_threads_per_block = thread_limit > 0 ? thread_limit : 0;
  spec.least_ns = Get(Setting::nvcc_kernel_ns).least;
  spec.greatest_ns = Get(Setting::nvcc_kernel_ns).greatest;
  DeclareKernel(function, spec);
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
                                     CUstream_st* stream) {
  configurations.push_back({grid, block, shared_bytes, stream});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes,
                                       void* stream) {
  if (configurations.empty()) return cudaErrorMissingConfiguration;
  const Configuration top = configurations.back();
  configurations.pop_back();
  *grid = top.grid;
  *block = top.block;
  *shared_bytes = top.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = top.stream;
  return cudaSuccess;
}

// Launches by handle; a handle is the function itself here.
cudaError_t __cudaGetKernel(cudaKernel_t* handle, const void* function) {
  *handle = reinterpret_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t handle, dim3 grid, dim3 block, void** args,
                               size_t shared_bytes, cudaStream_t stream) {
  return cudaLaunchKernel(handle, grid, block, args, shared_bytes, stream);
}

}  // extern "C"
