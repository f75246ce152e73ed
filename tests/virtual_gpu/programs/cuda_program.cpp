// A program that uses CUDA and knows nothing of tools, for tests that need a process of their own.
//   cuda_program KERNELS [fork]
// Launches the kernels, copies a byte back, and says what the calls returned; with fork, says in a
// child what CUDA answers there.
#include <cuda_runtime_api.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/virtual_gpu/vgpu.h"

int main(int argc, char** argv) {
  const int kernels = argc > 1 ? atoi(argv[1]) : 1;
  VgpuKernelSpec spec = {};
  spec.name = "_Z4stepPf";
  spec.least_ns = 3000;
  const void* kernel = vgpuDeclareKernel(nullptr, &spec);
  void* device = nullptr;
  cudaError_t error = cudaMalloc(&device, 1 << 20);
  for (int i = 0; error == cudaSuccess && i < kernels; ++i) {
    error = cudaLaunchKernel(kernel, dim3(1), dim3(32), nullptr, 0, nullptr);
  }
  cudaMemsetAsync(device, 0, 64, nullptr);
  char byte = 0;
  if (error == cudaSuccess) error = cudaMemcpy(&byte, device, 1, cudaMemcpyDeviceToHost);
  if (argc > 2 && std::string(argv[2]) == "fork") {
    const pid_t child = fork();
    if (child == 0) {
      printf("child error %d\n", cudaMalloc(&device, 1));
      fflush(stdout);
      _exit(0);
    }
    waitpid(child, nullptr, 0);
  }
  VgpuCounts counts;
  vgpuGetCounts(&counts);
  printf("error %d kernels %llu copies %llu\n", error,
         static_cast<unsigned long long>(counts.kernels),
         static_cast<unsigned long long>(counts.copies));
}
