#include "analysis/job/collectives.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "trace/base/cancel.h"
#include "trace/tables/communication.h"

namespace trainprof {
namespace {

struct Found {
  Interval when;
  Collective call;
  StringId name;
  DeviceId device = kNoDevice;  // kNoDevice: on the host
  Duration exposed;
};

void FindKernels(const RankModel& model, std::vector<Found>& found) {
  const Trace& trace = model.trace;
  const DeviceOpTable& ops = trace.device_ops;
  for (uint32_t op = 0; op < ops.size(); ++op) {
    CancelPoint(op);
    if (ops.kind[op] != DeviceOpKind::kKernel) continue;
    if (!Communicates(trace, Row{op})) continue;
    const DeviceId device = trace.tracks[Index(ops.track[op])].device;
    const Interval when = ops.interval(Row{op});
    const auto account =
        std::find_if(model.accounts.begin(), model.accounts.end(),
                     [&](const DeviceAccount& each) { return each.device == device; });
    const Duration exposed = account == model.accounts.end()
                                 ? Duration{}
                                 : account->exposed_communication.TotalWithin(when);
    const Collective* const named = trace.CollectiveOf(Row{op});
    found.push_back(
        {when, named == nullptr ? Collective{} : *named, ops.name[op], device, exposed});
  }
}

// Whether a thread that is in this range takes part in a collective as long as it is.
bool IsCollective(RangeKind kind, std::string_view name) {
  if (name == "c10d::wait") return false;
  if (IsRankWait(name)) return true;
  return kind == RangeKind::kUserAnnotation && name.starts_with("gloo:");
}

// Of one that stands within another (all_gather_object calls all_gather) the outer one counts.
void FindRanges(const RankModel& model, std::vector<Found>& found) {
  const Trace& trace = model.trace;
  const RangeTable& ranges = trace.ranges;
  std::map<StringId, bool> known;
  std::vector<bool> is_inside(ranges.size());
  for (uint32_t row = 0; row < ranges.size(); ++row) {
    CancelPoint(row);
    const auto [name, is_new] = known.try_emplace(ranges.name[row]);
    if (is_new) {
      const std::string_view text = trace.Text(ranges.name[row]);
      name->second = IsRankWait(text) || text.starts_with("gloo:");
    }
    const Row parent = ranges.parent[row];
    const bool in_parent = parent != kNoRow && is_inside[Index(parent)];
    is_inside[row] = in_parent;
    if (!name->second || in_parent) continue;
    if (!IsCollective(ranges.kind[row], trace.Text(ranges.name[row]))) continue;
    is_inside[row] = true;
    const Interval when = ranges.interval(Row{row});
    const bool steps = ranges.track[row] == model.steps.thread;
    found.push_back({when, {}, ranges.name[row], kNoDevice, steps ? when.Length() : Duration{}});
  }
}

}  // namespace

std::vector<Collectives> CollectivesOf(const RankModel& model) {
  const Trace& trace = model.trace;
  std::vector<Found> found;
  FindKernels(model, found);
  // Beside kernels the host's functions only start them.
  if (found.empty()) FindRanges(model, found);
  std::stable_sort(found.begin(), found.end(),
                   [](const Found& a, const Found& b) { return a.when.begin < b.when.begin; });
  using Key = std::tuple<StringId, StringId, StringId, DeviceId>;
  std::vector<Collectives> all;
  std::map<Key, size_t> places;
  for (size_t i = 0; i < found.size(); ++i) {
    CancelPoint(i);
    const auto& [when, call, name, device, exposed] = found[i];
    const StringId operation = call.operation == kEmptyString ? name : call.operation;
    const Key key{call.communicator, call.members, operation, device};
    const auto [place, is_new] = places.try_emplace(key, all.size());
    if (is_new) {
      all.push_back({std::string(trace.Text(call.communicator)),
                     std::string(trace.Text(call.members)),
                     std::string(trace.Text(operation)),
                     device == kNoDevice ? kHostCollectives : trace.devices[Index(device)].id,
                     true,
                     {}});
    }
    Collectives& calls = all[place->second];
    const bool numbered = call.sequence != Collective::kUnknown;
    calls.numbered = calls.numbered && numbered;
    calls.calls.push_back({numbered ? call.sequence : 0, when, exposed});
  }
  for (Collectives& calls : all) {
    if (calls.numbered) continue;
    for (size_t i = 0; i < calls.calls.size(); ++i) {
      calls.calls[i].sequence = static_cast<int64_t>(i);
    }
  }
  return all;
}

}  // namespace trainprof
