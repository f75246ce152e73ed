#include "tests/virtual_gpu/cupti/client_clock.h"

#include <time.h>

#include "tests/virtual_gpu/model/clock.h"
#include "tests/virtual_gpu/model/machine.h"

namespace vgpu {

void ClientClock::Register(CUpti_TimestampCallbackFunc callback) {
  callback_ = callback;
  const int64_t before = NowNs();
  first_client_ = Now();
  const int64_t after = NowNs();
  first_ns_ = before;
  is_monotonic_ =
      static_cast<int64_t>(first_client_) >= before && static_cast<int64_t>(first_client_) <= after;
  if (!is_monotonic_) WaitUntil(after + 2'000'000);  // for a first estimate of its rate
}

uint64_t ClientClock::Now() const {
  if (callback_ != nullptr) return callback_();
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

ClientClock::Mapping ClientClock::MappingNow() const {
  if (is_monotonic_) return {0, 0, 1};
  const int64_t now = NowNs();
  const uint64_t client = Now();
  double rate = 1;
  if (callback_ != nullptr) {
    rate = static_cast<double>(client - first_client_) / static_cast<double>(now - first_ns_);
  }
  return {now, client, rate};
}

ClientClock::Mapping ClientClock::DeviceMappingNow() const {
  Mapping mapping = MappingNow();
  const Range jitter = Get(Setting::clock_jitter_ns);
  const Range drift = Get(Setting::clock_drift_ppm);
  if (jitter.least == 0 && jitter.greatest == 0 && drift.least == 0 && drift.greatest == 0) {
    return mapping;
  }
  const std::lock_guard guard(TheMachine().lock);
  const int64_t now = NowNs();
  const int64_t off = static_cast<int64_t>(TheMachine().Draw(jitter.least, jitter.greatest));
  const double per_ns = 1 + TheMachine().Draw(drift.least, drift.greatest) * 1e-6;
  return {now, mapping(now) + static_cast<uint64_t>(off), mapping.client_per_ns * per_ns};
}

}  // namespace vgpu
