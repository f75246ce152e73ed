// The numbers of the virtual machine: costs, sizes and counts, in one table with names and units. A
// test sets them through vgpuSet() or VGPU_SETTINGS="name=value" or "name=min:max",
// comma-separated.
#pragma once

#include <cstdint>
#include <string>

namespace vgpu {

// name, least, greatest, meaning. A value is drawn between the two each time that it is used; those
// that are not costs use the least.
#define VGPU_SETTINGS_TABLE(X)                                                                    \
  X(scale, 1, 1,                                                                                  \
    "every modelled duration times this: 1 real time, 0.1 ten times faster, 0 no waiting")        \
  X(seed, 1, 1, "of all random costs")                                                            \
  X(devices, 1, 1, "number of GPUs")                                                              \
  X(memory_mib, 81920, 81920, "memory of each GPU")                                               \
  X(queue_depth, 1024, 1024, "operations of a stream that may be pending; the next one waits")    \
  X(kernel_slots, 16, 16, "kernels of different streams that may run at once")                    \
  X(copy_engines, 1, 1, "copies that may run at once, in each direction")                         \
  X(sm_count, 132, 132, "multiprocessors")                                                        \
  X(driver_version, 13000, 13000, "what cuDriverGetVersion says")                                 \
  X(cuinit_ms, 0, 0,                                                                              \
    "of cuInit, after the injected library: CUPTI calls of other threads wait; not scaled")       \
  X(flush_ms, 0, 0, "of a flush of CUPTI's, while launches wait; not scaled")                     \
  X(clock_jitter_ns, 0, 0, "how far times of the device are off, each time that CUPTI looks")     \
  X(clock_drift_ppm, 0, 0, "how much faster the device's clock runs, until CUPTI looks again")    \
  X(operation_bytes, 32, 32, "of CUPTI's buffers on the device, for the times of one operation")  \
  X(context_create_ns, 0, 0, "first use of a device")                                             \
  X(api_call_ns, 200, 800, "host time of a call not named below")                                 \
  X(launch_call_ns, 1800, 4500, "host time of a kernel launch")                                   \
  X(copy_call_ns, 1500, 4000, "host time of a copy or memset call, besides waiting")              \
  X(sync_call_ns, 800, 2500, "host time of a synchronizing call, besides waiting")                \
  X(malloc_call_ns, 20000, 120000, "host time of cudaMalloc, cudaFree, cudaMallocHost")           \
  X(graph_launch_call_ns, 5000, 12000, "host time of a graph launch")                             \
  X(wakeup_ns, 1000, 6000, "from the end of the device's work to the return of a blocking call")  \
  X(launch_latency_ns, 2500, 6000, "from the launch to the start on an idle stream")              \
  X(kernel_gap_ns, 700, 1500, "between two queued operations of a stream")                        \
  X(graph_node_gap_ns, 400, 1000, "between two nodes of a graph")                                 \
  X(host_function_ns, 5000, 20000, "of the stream, for a host function")                          \
  X(nvcc_kernel_ns, 5000, 50000, "of a kernel that nvcc compiled")                                \
  X(event_ns, 300, 700, "of the device, for an event")                                            \
  X(copy_latency_ns, 1000, 2500, "fixed part of a copy")                                          \
  X(memset_latency_ns, 1000, 1800, "fixed part of a memset")                                      \
  X(h2d_pinned_gbps, 22, 26, "GB/s, host to device, pinned memory")                               \
  X(h2d_pageable_gbps, 4, 9, "GB/s, host to device, pageable memory")                             \
  X(d2h_pinned_gbps, 22, 26, "GB/s, device to host, pinned memory")                               \
  X(d2h_pageable_gbps, 3, 7, "GB/s, device to host, pageable memory")                             \
  X(d2d_gbps, 1100, 1300, "GB/s, within a device")                                                \
  X(p2p_gbps, 40, 50, "GB/s, between devices")                                                    \
  X(memset_gbps, 1500, 1800, "GB/s, memset")                                                      \
  X(staging_gbps, 6, 10, "GB/s, host copy of a small pageable block into the driver's buffer")    \
  X(staging_bytes, 65536, 65536, "a pageable copy to the device up to this size returns at once") \
  X(utilisation, -1, -1, "per cent that NVML says; -1: follows the device")                       \
  X(temperature_c, 54, 58, "what NVML says")                                                      \
  X(power_w, 90, 640, "what NVML says: least when idle, greatest when busy")                      \
  X(clock_mhz, 345, 1980, "what NVML says: least when idle, greatest when busy")                  \
  X(pcie_generation, 5, 5, "what NVML says of the link")                                          \
  X(pcie_width, 16, 16, "what NVML says of the link")                                             \
  X(clocks_event_reasons, 0, 0, "what NVML says: bit mask of nvmlClocksEventReason*")

// With VGPU_HARD=1, where VGPU_SETTINGS and vgpuSet say nothing else.
inline constexpr char kHardSettings[] =
    "wakeup_ns=5000:60000,cuinit_ms=200,flush_ms=1:20,clock_jitter_ns=-5000:5000,"
    "clock_drift_ppm=-20:20";
// Whether VGPU_HARD is set, and not to 0.
bool Hard();

enum class Setting {
#define VGPU_ONE(name, least, greatest, meaning) name,
  VGPU_SETTINGS_TABLE(VGPU_ONE)
#undef VGPU_ONE
      kCount
};

struct Range {
  double least;
  double greatest;
};

// Reads VGPU_SETTINGS on first use; an unknown name or a malformed value ends the process with a
// message, since a test that is run with other settings than it asked for shows nothing.
const Range& Get(Setting setting);
inline double Least(Setting setting) { return Get(setting).least; }

// False when there is no such setting or least > greatest. Not to be called while the GPU is in
// use.
bool Set(const std::string& name, Range range);

// One line a setting, for VGPU_SETTINGS=help.
std::string DescribeSettings();

}  // namespace vgpu
