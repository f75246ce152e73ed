#include "analysis/job/digest.h"

#include <functional>

#include "analysis/job/operation_steps.h"
#include "trace/base/cancel.h"
#include "trace/base/parallel.h"
#include "trace/recording/wire/facts.h"
#include "trace/tables/communication.h"
#include "trace/tables/environment.h"

namespace trainprof {
namespace {

std::vector<HostSplit> HostStepsOf(const RankModel& model) {
  std::vector<HostSplit> steps;
  for (const Step& step : model.steps.steps) steps.push_back(model.host.Within(step.span));
  return steps;
}

std::vector<DeviceSteps> DeviceStepsOf(const RankModel& model) {
  std::vector<DeviceSteps> devices;
  for (const DeviceAccount& account : model.devices_and_strays) {
    if (account.ops_in_window == 0) continue;
    DeviceSteps device{model.trace.devices[Index(account.device)].id, {}, {}, {}};
    for (const Step& step : model.device_steps.steps) {
      CancelPoint();
      device.steps.push_back(account.Within(step.device));
    }
    SumOperations(model.trace, account.device, model.device_steps.steps, device);
    devices.push_back(std::move(device));
  }
  return devices;
}

}  // namespace

RankDigest DigestOf(const RankModel& model, int64_t place) {
  RankDigest digest;
  const std::function<void()> parts[] = {
      [&] { digest.analysis = Examine(model); },
      [&] {
        digest.host = EnvironmentValue(model.trace.environment, fact::kHost);
        digest.host_steps = HostStepsOf(model);
        digest.devices = DeviceStepsOf(model);
        digest.collectives = CollectivesOf(model);
      },
  };
  RunAll(parts);
  digest.analysis.place = place;
  return digest;
}

}  // namespace trainprof
