#include "analysis/run_ahead.h"

#include <algorithm>

#include "trace/cancel.h"

namespace trainprof {

bool HostRunsAhead(const RuleContext& context, const std::vector<Row>& fixed) {
  int64_t left = 0;
  for (uint32_t i = 0; i < context.trace.api.size(); ++i) {
    CancelPoint(i);
    if (!context.blocking_calls[i] || !context.InWindow(context.trace.api.interval(Row{i})))
      continue;
    if (!std::binary_search(fixed.begin(), fixed.end(), Row{i})) ++left;
  }
  return left < context.steps.divisor();
}

Duration HostPacedIdle(const RuleContext& context) {
  Duration most;
  for (const DeviceAccount& device : context.devices) {
    most = std::max(most, device.Of(DeviceClass::kIdleInputWait) +
                              device.Of(DeviceClass::kIdleSyncDrain) +
                              device.Of(DeviceClass::kIdleLaunchBound));
  }
  return most;
}

}  // namespace trainprof
