// The clock of CUPTI's time stamps: the client's callback where it registered one, else
// CLOCK_REALTIME. Device times, which the model has in CLOCK_MONOTONIC, are converted as the real
// library does: by where both clocks stand now and how fast the client's one runs; settings
// clock_jitter_ns and clock_drift_ppm say how well.
#pragma once

#include <cupti.h>

#include <cstdint>

namespace vgpu {

class ClientClock {
 public:
  void Register(CUpti_TimestampCallbackFunc callback);
  uint64_t Now() const;

  // A conversion that holds for times of about now.
  struct Mapping {
    int64_t monotonic_ns;
    uint64_t client;
    double client_per_ns;
    uint64_t operator()(int64_t ns) const {
      return client + static_cast<uint64_t>(static_cast<int64_t>(
                          client_per_ns * static_cast<double>(ns - monotonic_ns)));
    }
  };
  Mapping MappingNow() const;
  // The same for times of the device, as well as the library knows how its clock runs.
  Mapping DeviceMappingNow() const;

 private:
  CUpti_TimestampCallbackFunc callback_ = nullptr;
  bool is_monotonic_ = false;  // the client's clock is the model's
  int64_t first_ns_ = 0;
  uint64_t first_client_ = 0;
};

}  // namespace vgpu
