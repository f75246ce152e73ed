// The kernels that a program has declared: what cudaLaunchKernel's function pointer stands for.
#pragma once

#include <cstdint>
#include <string>

#include "tests/virtual_gpu/vgpu.h"

namespace vgpu {

struct Kernel {
  std::string name;  // as the symbol is, mangled
  VgpuKernelSpec spec;
};

// function: the host address that launches name it by; null: the kernel's own address. Returns it.
// A second declaration of the same function replaces the first.
const void* DeclareKernel(const void* function, const VgpuKernelSpec& spec);

// Null when nobody declared it. The kernel stays as long as the process.
const Kernel* FindKernel(const void* function);
const Kernel* FindKernelByName(const std::string& name);

// What vgpuNextKernelTakes said in this thread, once; negative when it said nothing.
double TakeNextKernelNs();

// How long a launch takes, modelled and not yet scaled. With the machine's lock held.
double DrawKernelNs(const Kernel& kernel, uint64_t threads);

}  // namespace vgpu
