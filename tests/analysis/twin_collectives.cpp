#include "tests/analysis/twin_collectives.h"

#include <cmath>

#include "analysis/account/collective_waits.h"
#include "tests/analysis/twin_host.h"
#include "trace/base/kernel_names.h"

namespace trainprof {
namespace {

bool IsNumbered(const Collective* collective) {
  return collective != nullptr && collective->sequence != Collective::kUnknown;
}

bool AreOneCollective(const Trace& trace, size_t a, size_t b) {
  const DeviceOpTable& ops = trace.device_ops;
  const bool overlap = ops.begin[a] < ops.end(b) && ops.begin[b] < ops.end(a);
  if (!overlap || std::abs(ops.end(a).ns - ops.end(b).ns) > kSameEnd.ns) return false;
  const Collective* const first = trace.CollectiveOf(Row{static_cast<uint32_t>(a)});
  const Collective* const second = trace.CollectiveOf(Row{static_cast<uint32_t>(b)});
  if (!IsNumbered(first) || !IsNumbered(second)) return ops.name[a] == ops.name[b];
  return first->sequence == second->sequence && first->communicator == second->communicator;
}

bool IsCollective(const Trace& trace, size_t op) {
  return trace.device_ops.kind[op] == DeviceOpKind::kKernel &&
         (trace.device_ops.collective[op] != kNoCollective ||
          IsCommunicationKernel(trace.Text(trace.device_ops.name[op])));
}

// Of several on a device the one that ends closest is of it.
bool WaitsForAnother(const Trace& trace, size_t op, int64_t moment) {
  const DeviceOpTable& ops = trace.device_ops;
  const auto device_of = [&](size_t o) { return trace.tracks[Index(ops.track[o])].device; };
  const auto apart = [&](size_t o) { return std::abs(ops.end(o).ns - ops.end(op).ns); };
  for (uint32_t d = 0; d < trace.devices.size(); ++d) {
    if (device_of(op) == DeviceId{d}) continue;
    const size_t none = ops.size();
    size_t partner = none;
    for (size_t other = 0; other < ops.size(); ++other) {
      if (device_of(other) != DeviceId{d} || !IsCollective(trace, other)) continue;
      if (!AreOneCollective(trace, op, other)) continue;
      const bool is_closer =
          partner == none || apart(other) < apart(partner) ||
          (apart(other) == apart(partner) && ops.begin[other] < ops.begin[partner]);
      if (is_closer) partner = other;
    }
    if (partner != none && moment < ops.begin[partner].ns) return true;
  }
  return false;
}

}  // namespace

DeviceClass BusyClassAt(const Trace& trace, DeviceId device, int64_t moment) {
  bool communicates = false;
  bool copies = false;
  bool waits = false;
  for (size_t op = 0; op < trace.device_ops.size(); ++op) {
    if (trace.tracks[Index(trace.device_ops.track[op])].device != device ||
        !Covers(trace.device_ops, op, moment))
      continue;
    if (trace.device_ops.kind[op] != DeviceOpKind::kKernel) {
      copies = true;
    } else if (!IsCollective(trace, op)) {
      return DeviceClass::kCompute;
    } else if (WaitsForAnother(trace, op, moment)) {
      waits = true;
    } else {
      communicates = true;
    }
  }
  if (waits && !communicates && !copies) return DeviceClass::kIdleCollective;
  return waits || communicates ? DeviceClass::kExposedCommunication : DeviceClass::kExposedCopy;
}

}  // namespace trainprof
