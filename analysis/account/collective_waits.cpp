#include "analysis/account/collective_waits.h"

#include <algorithm>

#include "trace/base/cancel.h"
#include "trace/tables/communication.h"

namespace trainprof {
namespace {

struct Part {
  Row op = kNoRow;
  Interval when;
  TraceTime latest_end{};  // of this one and those that began before it
};

// By begin.
std::vector<Part> PartsOf(const Trace& trace, const std::vector<uint32_t>& ops) {
  std::vector<Part> parts;
  for (size_t i = 0; i < ops.size(); ++i) {
    CancelPoint(i);
    if (!Communicates(trace, Row{ops[i]})) continue;
    const Interval when = trace.device_ops.interval(Row{ops[i]});
    const TraceTime before = parts.empty() ? when.end : parts.back().latest_end;
    parts.push_back({Row{ops[i]}, when, std::max(before, when.end)});
  }
  return parts;
}

bool IsOfOneCollective(const Trace& trace, Row a, Row b) {
  const Collective* const first = trace.CollectiveOf(a);
  const Collective* const second = trace.CollectiveOf(b);
  if (first != nullptr && second != nullptr && first->sequence != Collective::kUnknown &&
      second->sequence != Collective::kUnknown) {
    return first->sequence == second->sequence && first->communicator == second->communicator;
  }
  return trace.device_ops.name[Index(a)] == trace.device_ops.name[Index(b)];
}

// The other device's part of the same collective; nullptr where it has none.
const Part* PartnerOf(const Trace& trace, const Part& part, const std::vector<Part>& others) {
  const Part* partner = nullptr;
  Duration closest = kSameEnd;
  auto at = std::partition_point(others.begin(), others.end(), [&](const Part& other) {
    return other.when.begin < part.when.end;
  });
  while (at != others.begin() && (--at)->latest_end > part.when.begin) {
    if (at->when.end <= part.when.begin) continue;
    const Duration apart =
        std::max(at->when.end, part.when.end) - std::min(at->when.end, part.when.end);
    if (apart > closest || !IsOfOneCollective(trace, part.op, at->op)) continue;
    closest = apart;
    partner = &*at;
  }
  return partner;
}

}  // namespace

CollectiveWaits FindCollectiveWaits(const Trace& trace,
                                    std::span<const std::vector<uint32_t>> ops_of) {
  std::vector<std::vector<Part>> parts;
  if (ops_of.size() < 2) return {};
  for (const std::vector<uint32_t>& ops : ops_of) {
    parts.push_back(PartsOf(trace, ops));
    if (parts.back().empty()) parts.pop_back();
  }
  CollectiveWaits waits;
  for (size_t device = 0; device < parts.size(); ++device) {
    for (size_t i = 0; i < parts[device].size(); ++i) {
      CancelPoint(i);
      const Part& part = parts[device][i];
      TraceTime last = part.when.begin;
      for (size_t other = 0; other < parts.size(); ++other) {
        if (other == device) continue;
        const Part* const partner = PartnerOf(trace, part, parts[other]);
        if (partner != nullptr) last = std::max(last, partner->when.begin);
      }
      if (last > part.when.begin) waits.emplace_back(part.op, last);
    }
  }
  std::sort(waits.begin(), waits.end());
  return waits;
}

}  // namespace trainprof
