// The virtual GPU's own functions: what a scenario may say besides CUDA's. Everything else is
// ordinary CUDA runtime or driver calls. docs/virtual_gpu.md shows how to write a scenario.
//
// A scenario links cudart, cuda and cudart_vgpu of build/lib/virtual_gpu. No data moves and kernels
// compute nothing; only times are modelled. All durations are nanoseconds before scaling (setting
// `scale`).
#ifndef TRAINPROF_TESTS_VIRTUAL_GPU_VGPU_H_
#define TRAINPROF_TESTS_VIRTUAL_GPU_VGPU_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// What a kernel is. Zero-initialise what does not matter.
typedef struct VgpuKernelSpec {
  const char* name;  // as in the symbol table, mangled; copied
  int registers;     // per thread; 0 means 32
  int static_shared_bytes;
  int max_threads_per_block;  // 0 means 1024
  int local_bytes_per_thread;
  double least_ns;       // a launch takes a random time in [least_ns, greatest_ns]
  double greatest_ns;    // 0 means least_ns
  double ns_per_thread;  // plus this times the threads of the grid
} VgpuKernelSpec;

// Declares a kernel; the result is what cudaLaunchKernel takes as `func`. With a non-null function,
// that address stands for the kernel (and is returned). Thread-safe.
const void* vgpuDeclareKernel(const void* function, const VgpuKernelSpec* spec);

// The next kernel that this thread launches takes this long instead.
void vgpuNextKernelTakes(double nanoseconds);

// Sets a number of the machine (VGPU_SETTINGS=help lists them) to one value (least == greatest) or
// to a range to draw from. 0 on success, -1 when there is no such setting. Before the first CUDA
// call.
int vgpuSet(const char* setting, double least, double greatest);

// Switches a fault on (VGPU_FAULTS=help lists them); argument may be null for the usual one. 0 on
// success, -1 when there is no such fault. At any time.
int vgpuSetFault(const char* fault, const char* argument);
void vgpuClearFaults(void);

// What the machine has done, all devices and threads together: the truth that a collector's records
// are compared with.
typedef struct VgpuCounts {
  uint64_t api_calls;
  uint64_t kernels;  // graph nodes included
  uint64_t copies;
  uint64_t memsets;
  uint64_t graph_launches;
  uint64_t synchronizations;
  int64_t kernel_ns;  // sum of durations, scaled
  int64_t copy_ns;
} VgpuCounts;
void vgpuGetCounts(VgpuCounts* counts);

// CLOCK_MONOTONIC nanoseconds: the clock of all records.
int64_t vgpuNowNs(void);

// Uses the processor for this long, scaled: the host work of a scenario. Time in which others have it does not count.
void vgpuHostWork(double nanoseconds);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // TRAINPROF_TESTS_VIRTUAL_GPU_VGPU_H_
