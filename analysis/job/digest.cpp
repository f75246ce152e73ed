#include "analysis/job/digest.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "trace/base/cancel.h"
#include "trace/recording/wire/facts.h"
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
    DeviceSteps device{model.trace.devices[Index(account.device)].id, {}};
    for (const Step& step : model.device_steps.steps) {
      CancelPoint();
      device.steps.push_back(account.Within(step.device));
    }
    devices.push_back(std::move(device));
  }
  return devices;
}

// The communication kernels of a trace, by begin.
std::vector<uint32_t> CommunicationIn(const Trace& trace) {
  const DeviceOpTable& ops = trace.device_ops;
  std::vector<uint32_t> found;
  for (uint32_t op = 0; op < ops.size(); ++op) {
    CancelPoint(op);
    if (ops.kind[op] != DeviceOpKind::kKernel) continue;
    if (trace.Facts(ops.name[op]).is_communication) found.push_back(op);
  }
  std::stable_sort(found.begin(), found.end(),
                   [&](uint32_t a, uint32_t b) { return ops.begin[a] < ops.begin[b]; });
  return found;
}

std::vector<Collectives> CollectivesOf(const Trace& trace) {
  using Key = std::tuple<StringId, StringId, StringId, DeviceId>;
  std::vector<Collectives> all;
  std::map<Key, size_t> places;
  const std::vector<uint32_t> ops = CommunicationIn(trace);
  for (size_t i = 0; i < ops.size(); ++i) {
    CancelPoint(i);
    const uint32_t op = ops[i];
    const DeviceId device = trace.tracks[Index(trace.device_ops.track[op])].device;
    const Collective* const named = trace.CollectiveOf(Row{op});
    const Collective call = named == nullptr ? Collective{} : *named;
    const StringId operation =
        call.operation == kEmptyString ? trace.device_ops.name[op] : call.operation;
    const Key key{call.communicator, call.members, operation, device};
    const auto [place, is_new] = places.try_emplace(key, all.size());
    if (is_new) {
      all.push_back({std::string(trace.Text(call.communicator)),
                     std::string(trace.Text(call.members)),
                     std::string(trace.Text(operation)),
                     device == kNoDevice ? -1 : trace.devices[Index(device)].id,
                     true,
                     {}});
    }
    Collectives& calls = all[place->second];
    const bool numbered = call.sequence != Collective::kUnknown;
    calls.numbered = calls.numbered && numbered;
    calls.calls.push_back({numbered ? call.sequence : 0, trace.device_ops.interval(Row{op})});
  }
  for (Collectives& calls : all) {
    if (calls.numbered) continue;
    for (size_t i = 0; i < calls.calls.size(); ++i) {
      calls.calls[i].sequence = static_cast<int64_t>(i);
    }
  }
  return all;
}

}  // namespace

RankDigest DigestOf(const RankModel& model, int64_t place) {
  RankDigest digest{Examine(model),
                    std::string(EnvironmentValue(model.trace.environment, fact::kHost)),
                    HostStepsOf(model), DeviceStepsOf(model), CollectivesOf(model.trace)};
  digest.analysis.place = place;
  return digest;
}

}  // namespace trainprof
