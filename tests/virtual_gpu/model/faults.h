// Faults that a test may switch on by name: vgpuSetFault("flush_hangs", "5") or
// VGPU_FAULTS="flush_hangs=5,null_name". One table with names, arguments and meanings.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace vgpu {

// name, argument when none is given, meaning
#define VGPU_FAULTS_TABLE(X)                                                                        \
  X(no_driver, "", "CUDA and CUPTI calls fail as on a machine without a driver (CUPTI: 999)")       \
  X(no_device, "", "the driver is there, but no GPU")                                               \
  X(old_driver, "12000",                                                                            \
    "the driver is of this version: the runtime and CUPTI refuse to work with it")                  \
  X(wrong_libcupti, "12040", "this libcupti is of that version and too old for the driver")         \
  X(another_subscriber, "Nsight Systems", "a tool of this name holds CUPTI already (error 39)")     \
  X(insufficient_privileges, "", "CUPTI refuses to record the GPU (error 35)")                      \
  X(subscribe_unknown_error, "", "cuptiSubscribe fails with 999")                                   \
  X(enable_fails, "10", "cuptiActivityEnable of this kind fails with 27 NOT_SUPPORTED")             \
  X(drop_records, "1000", "this many device records are dropped, and counted as dropped")           \
  X(flush_hangs, "3600", "cuptiActivityFlushAll does not return for this many seconds")             \
  X(disable_holds, "",                                                                              \
    "work under way when its kind is disabled ends, by its record, when the kind is enabled again") \
  X(disable_hangs, "",                                                                              \
    "disabling kernels while one is under way never returns, nor does any launch from then on")     \
  X(own_timestamps, "", "cuptiGetTimestamp does not call the clock that is registered")             \
  X(complete_at_flush, "",                                                                          \
    "records get their times when the client flushes, and at no other time")                        \
  X(complete_at_once, "",                                                                           \
    "records get their times as their work ends, for which CUPTI's thread wakes each millisecond")  \
  X(out_of_order, "", "buffers are delivered in reverse, in groups of four")                        \
  X(zero_start_records, "100", "this many device records have start = end = 0")                     \
  X(reversed_records, "100", "this many device records end before they begin")                      \
  X(device_buffers, "1",                                                                            \
    "CUPTI has this many buffers of a GPU's memory at most; work beyond them has start = end = 0")  \
  X(no_sync_records, "", "no synchronization record, as in CUPTI 13.0")                             \
  X(withheld_until_exit, "", "only a forced flush returns buffers")                                 \
  X(zero_kernel_records, "", "kernels leave no record; their launches do")                          \
  X(blank_incomplete, "",                                                                           \
    "a record is all zero until it is complete, instead of marked and without its times")           \
  X(slow_setup, "500", "cuptiSubscribe takes this many milliseconds")                               \
  X(crash_at, "1000", "SIGKILL at this API call of the process")                                    \
  X(null_name, "", "kernel records have no name")                                                   \
  X(huge_names, "70000", "kernel names are this many bytes long")                                   \
  X(garbage_kind, "777", "every hundredth device record is followed by one of this unknown kind")   \
  X(callback_twice, "", "every callback comes twice")                                               \
  X(mig, "",                                                                                        \
    "the GPU is a MIG slice; NVML says MIG mode, CUPTI before 13.3.1 the GPU's UUID and no name")   \
  X(graph_needs_kind, "",                                                                           \
    "a graph that was instantiated while kernels were not recorded leaves no records of kernels")   \
  X(late_session_correlation, "",                                                                   \
    "before 13.1.1: when kernels were enabled again, a graph's have the correlation before theirs") \
  X(no_unwind_info, "",                                                                             \
    "a frame of the driver's cannot be unwound: callbacks come through code without .eh_frame")     \
  X(oom_at, "1", "this allocation of device memory and all later ones fail")                        \
  X(missing_function, "cuptiSubscribe_v2", "this CUPTI function answers NOT_IMPLEMENTED (11)")      \
  X(nvml_missing_function, "nvmlDeviceGetCurrentClocksEventReasons",                                \
    "this NVML function answers FUNCTION_NOT_FOUND (13)")                                           \
  X(nvml_lost, "10", "after this many NVML calls the GPU is lost (15)")

// With VGPU_HARD=1 on from the start, without being named: habits, and no errors.
inline constexpr char kHardFaults[] = "complete_at_flush,disable_holds";

enum class Fault {
#define VGPU_ONE(name, argument, meaning) name,
  VGPU_FAULTS_TABLE(VGPU_ONE)
#undef VGPU_ONE
      kCount
};

// The argument while the fault is on, null while it is off. Cheap: faults are asked about on every
// call.
const std::string* FaultText(Fault fault);
inline bool Has(Fault fault) { return FaultText(fault) != nullptr; }
// The argument as a number; `otherwise` while the fault is off.
int64_t FaultNumber(Fault fault, int64_t otherwise);
// A fault with a number of times left: true that many times.
bool TakeOne(Fault fault);

// argument: empty for the table's own. False when there is no such fault.
bool SetFault(const std::string& name, const std::string& argument);
void ClearFaults();

// One line a fault, for VGPU_FAULTS=help.
std::string DescribeFaults();

}  // namespace vgpu
