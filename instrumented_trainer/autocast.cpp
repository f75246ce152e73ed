// Both interfaces of autocast, chosen by the version of LibTorch.
#include "instrumented_trainer/autocast.h"

#include <ATen/autocast_mode.h>
#include <torch/version.h>

namespace trainer {
namespace {

void Set(c10::DeviceType device, bool enabled) {
// 2.4 made the functions take the device type, and later releases drop the old ones.
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
  at::autocast::set_autocast_dtype(device, at::kBFloat16);
  at::autocast::set_autocast_enabled(device, enabled);
#else
  if (device == c10::DeviceType::CUDA) {
    at::autocast::set_autocast_gpu_dtype(at::kBFloat16);
    at::autocast::set_enabled(enabled);
  } else {
    at::autocast::set_autocast_cpu_dtype(at::kBFloat16);
    at::autocast::set_cpu_enabled(enabled);
  }
#endif
}

}  // namespace

Autocast::Autocast(bool enabled, c10::DeviceType device) : enabled_(enabled), device_(device) {
  if (enabled_) Set(device_, true);
}

Autocast::~Autocast() {
  if (!enabled_) return;
  Set(device_, false);
  at::autocast::clear_cache();
}

}  // namespace trainer
