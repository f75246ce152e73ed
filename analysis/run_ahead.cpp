#include "analysis/run_ahead.h"

#include <algorithm>

#include "trace/base/cancel.h"

namespace trainprof {

bool HostRunsAhead(const RankModel& model, const std::vector<Row>& fixed) {
  int64_t left = 0;
  for (uint32_t i = 0; i < model.trace.api.size(); ++i) {
    CancelPoint(i);
    if (!model.blocking_calls[i] || !model.InWindow(model.trace.api.interval(Row{i}))) continue;
    if (!std::binary_search(fixed.begin(), fixed.end(), Row{i})) ++left;
  }
  return left < model.device_steps.divisor();
}

Duration HostPacedIdle(const RankModel& model) {
  Duration most;
  for (const DeviceAccount& device : model.devices) {
    most = std::max(most, device.Of(DeviceClass::kIdleInputWait) +
                              device.Of(DeviceClass::kIdleSyncDrain) +
                              device.Of(DeviceClass::kIdleLaunchBound));
  }
  return most;
}

}  // namespace trainprof
