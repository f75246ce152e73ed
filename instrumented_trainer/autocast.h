// Automatic mixed precision, whose C++ interface changed between LibTorch 1 and 2.
#pragma once

#include <c10/core/DeviceType.h>

namespace trainer {

// While it lives, and if `enabled`, eligible operators of this thread on that device type run in
// bfloat16. Destroy it before the backward pass.
class Autocast {
 public:
  Autocast(bool enabled, c10::DeviceType device);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  bool enabled_;
  c10::DeviceType device_;
};

}  // namespace trainer
