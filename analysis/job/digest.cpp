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
      device.steps.push_back(account.Within(step.span));
    }
    devices.push_back(std::move(device));
  }
  return devices;
}

// What a trace's arguments say of collectives; torch.profiler's names.
class CollectiveFacts {
 public:
  explicit CollectiveFacts(const Trace& trace)
      : trace_(trace),
        operation_(trace.strings.Find("Collective name")),
        communicator_(trace.strings.Find("Process Group Name")),
        members_(trace.strings.Find("Process Group Ranks")),
        sequence_(trace.strings.Find("Seq")) {}

  std::string_view Operation(uint32_t op) const {
    const std::string_view named = Text(op, operation_);
    return named.empty() ? trace_.Text(trace_.device_ops.name[op]) : named;
  }
  std::string_view Communicator(uint32_t op) const { return Text(op, communicator_); }
  std::string_view Members(uint32_t op) const { return Text(op, members_); }
  std::optional<int64_t> Sequence(uint32_t op) const {
    const auto value = Find(op, sequence_);
    if (!value || value->type != ArgValue::Type::kInt) return std::nullopt;
    return value->integer;
  }

 private:
  std::optional<ArgValue> Find(uint32_t op, StringId key) const {
    if (key == kEmptyString) return std::nullopt;
    return trace_.args.Find(trace_.device_ops.args[op], key);
  }
  std::string_view Text(uint32_t op, StringId key) const {
    const auto value = Find(op, key);
    const bool is_text =
        value && (value->type == ArgValue::Type::kString || value->type == ArgValue::Type::kJson);
    return is_text ? trace_.Text(value->text) : std::string_view();
  }

  const Trace& trace_;
  StringId operation_;
  StringId communicator_;
  StringId members_;
  StringId sequence_;
};

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
  using Key = std::tuple<std::string_view, std::string_view, std::string_view, DeviceId>;
  const CollectiveFacts facts(trace);
  std::vector<Collectives> all;
  std::map<Key, size_t> places;
  const std::vector<uint32_t> ops = CommunicationIn(trace);
  for (size_t i = 0; i < ops.size(); ++i) {
    CancelPoint(i);
    const uint32_t op = ops[i];
    const DeviceId device = trace.tracks[Index(trace.device_ops.track[op])].device;
    const Key key{facts.Communicator(op), facts.Members(op), facts.Operation(op), device};
    const auto [place, is_new] = places.try_emplace(key, all.size());
    if (is_new) {
      const auto& [communicator, members, operation, on] = key;
      all.push_back({std::string(communicator),
                     std::string(members),
                     std::string(operation),
                     on == kNoDevice ? -1 : trace.devices[Index(on)].id,
                     true,
                     {}});
    }
    Collectives& calls = all[place->second];
    const auto sequence = facts.Sequence(op);
    calls.numbered = calls.numbered && sequence.has_value();
    calls.calls.push_back({sequence.value_or(0), trace.device_ops.interval(Row{op})});
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
