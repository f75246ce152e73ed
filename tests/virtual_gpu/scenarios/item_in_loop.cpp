// The example of docs/virtual_gpu.md: a loop that reads one number back in each step.
#include <cuda_runtime_api.h>

#include <cstdio>

#include "tests/virtual_gpu/vgpu.h"

int main() {
  VgpuKernelSpec spec = {};
  spec.name = "_Z7forwardPfi";  // mangled, as in a real binary
  spec.registers = 64;
  spec.least_ns = 80e3;  // each launch takes 80 to 120 microseconds
  spec.greatest_ns = 120e3;
  const void* forward = vgpuDeclareKernel(nullptr, &spec);
  void* loss_on_device = nullptr;
  if (cudaMalloc(&loss_on_device, sizeof(float)) != cudaSuccess) return 1;
  float loss = 0;
  for (int step = 0; step < 50; ++step) {
    vgpuHostWork(200e3);  // 200 microseconds of Python
    for (int i = 0; i < 10; ++i) {
      cudaLaunchKernel(forward, dim3(256), dim3(128), nullptr, 0, nullptr);
    }
    // The habit: a pageable copy to the host waits for all kernels before it.
    cudaMemcpyAsync(&loss, loss_on_device, sizeof loss, cudaMemcpyDeviceToHost, nullptr);
  }
  VgpuCounts truth;
  vgpuGetCounts(&truth);  // what a recording must show
  std::printf("%llu kernels, %llu copies\n", static_cast<unsigned long long>(truth.kernels),
              static_cast<unsigned long long>(truth.copies));
}
