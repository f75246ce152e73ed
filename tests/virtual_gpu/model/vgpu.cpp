// The functions of vgpu.h.
#include "tests/virtual_gpu/vgpu.h"

#include "tests/virtual_gpu/model/clock.h"
#include "tests/virtual_gpu/model/faults.h"
#include "tests/virtual_gpu/model/kernels.h"
#include "tests/virtual_gpu/model/operations.h"

extern "C" {

const void* vgpuDeclareKernel(const void* function, const VgpuKernelSpec* spec) {
  return vgpu::DeclareKernel(function, *spec);
}

int vgpuSet(const char* setting, double least, double greatest) {
  vgpu::Least(vgpu::Setting::scale);  // what the environment says comes first
  return vgpu::Set(setting, {least, greatest}) ? 0 : -1;
}

int vgpuSetFault(const char* fault, const char* argument) {
  vgpu::Has(vgpu::Fault::no_driver);  // what the environment says comes first
  return vgpu::SetFault(fault, argument == nullptr ? "" : argument) ? 0 : -1;
}

void vgpuClearFaults(void) { vgpu::ClearFaults(); }

void vgpuGetCounts(VgpuCounts* counts) { *counts = vgpu::Counts(); }

int64_t vgpuNowNs(void) { return vgpu::NowNs(); }

void vgpuHostWork(double nanoseconds) { vgpu::UseProcessor(vgpu::Scaled(nanoseconds)); }

}  // extern "C"
