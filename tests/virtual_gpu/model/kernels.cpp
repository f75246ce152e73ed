#include "tests/virtual_gpu/model/kernels.h"

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <utility>

#include "tests/virtual_gpu/model/machine.h"

namespace vgpu {
namespace {

struct Registry {
  std::shared_mutex lock;
  std::unordered_map<const void*, std::unique_ptr<Kernel>> kernels;
  std::vector<std::unique_ptr<Kernel>> replaced;  // launches may still refer to them
};

Registry& TheRegistry() {
  static Registry* const registry = new Registry;
  return *registry;
}

thread_local double next_kernel_ns = -1;

}  // namespace

const void* DeclareKernel(const void* function, const VgpuKernelSpec& spec) {
  auto kernel = std::make_unique<Kernel>();
  kernel->name = spec.name == nullptr ? "" : spec.name;
  kernel->spec = spec;
  kernel->spec.name = nullptr;
  if (kernel->spec.registers == 0) kernel->spec.registers = 32;
  if (kernel->spec.max_threads_per_block == 0) kernel->spec.max_threads_per_block = 1024;
  if (kernel->spec.greatest_ns < spec.least_ns) kernel->spec.greatest_ns = spec.least_ns;
  if (function == nullptr) function = kernel.get();
  Registry& registry = TheRegistry();
  const std::unique_lock guard(registry.lock);
  std::unique_ptr<Kernel>& entry = registry.kernels[function];
  if (entry != nullptr) registry.replaced.push_back(std::move(entry));
  entry = std::move(kernel);
  return function;
}

const Kernel* FindKernel(const void* function) {
  Registry& registry = TheRegistry();
  const std::shared_lock guard(registry.lock);
  const auto found = registry.kernels.find(function);
  return found == registry.kernels.end() ? nullptr : found->second.get();
}

const Kernel* FindKernelByName(const std::string& name) {
  Registry& registry = TheRegistry();
  const std::shared_lock guard(registry.lock);
  for (const auto& [function, kernel] : registry.kernels) {
    if (kernel->name == name) return kernel.get();
  }
  return nullptr;
}

double TakeNextKernelNs() { return std::exchange(next_kernel_ns, -1); }

double DrawKernelNs(const Kernel& kernel, uint64_t threads) {
  const VgpuKernelSpec& spec = kernel.spec;
  return TheMachine().Draw(spec.least_ns, spec.greatest_ns) +
         spec.ns_per_thread * static_cast<double>(threads);
}

}  // namespace vgpu

extern "C" void vgpuNextKernelTakes(double nanoseconds) { vgpu::next_kernel_ns = nanoseconds; }
