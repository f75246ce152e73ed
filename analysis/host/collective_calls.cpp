#include "analysis/host/collective_calls.h"

#include <initializer_list>

#include "analysis/host/call_sites.h"
#include "trace/base/kernel_names.h"
#include "trace/base/names.h"

namespace trainprof {
namespace {

// By record or by range; empty where there is neither.
std::string_view ToldOperationOf(const Trace& trace, Row op) {
  const Collective* const collective = trace.CollectiveOf(op);
  if (collective != nullptr && collective->operation != kEmptyString) {
    return trace.Text(collective->operation);
  }
  const Row call = trace.device_ops.launch[Index(op)];
  if (call == kNoRow) return {};
  const RangeTable& ranges = trace.ranges;
  Row range = InnermostRange(ranges, trace.api.track[Index(call)], trace.api.begin[Index(call)]);
  for (; range != kNoRow; range = ranges.parent[Index(range)]) {
    constexpr std::string_view kTorchs = "nccl:";
    const std::string_view name = trace.Text(ranges.name[Index(range)]);
    // "nccl:send 0->1".
    if (name.starts_with(kTorchs))
      return name.substr(kTorchs.size(), name.find(' ') - kTorchs.size());
  }
  return {};
}

}  // namespace

std::string_view OperationOf(const Trace& trace, Row op) {
  const std::string_view told = ToldOperationOf(trace, op);
  return told.empty() ? FunctionOf(trace.Text(trace.device_ops.name[Index(op)])) : told;
}

CollectiveUse UseOf(const Trace& trace, Row op) {
  const std::string_view told = ToldOperationOf(trace, op);
  const std::string_view name =
      told.empty() ? QualifiedNameOf(trace.Text(trace.device_ops.name[Index(op)])) : told;
  const auto has = [&](std::initializer_list<std::string_view> words) {
    for (const std::string_view word : words) {
      if (names_internal::ContainsNoCase(name, word)) return true;
    }
    return false;
  };
  if (has({"deep_ep::", "internode", "intranode", "inter_node", "intra_node", "moea2a",
           "a2a_dispatch", "a2a_combine"})) {
    return CollectiveUse::kExperts;
  }
  if (has({"alltoall", "all_to_all", "all2all"})) return CollectiveUse::kExchange;
  if (has({"allreduce", "all_reduce", "cross_device_reduce"})) return CollectiveUse::kSum;
  if (has({"allgather", "all_gather", "reducescatter", "reduce_scatter"})) {
    return CollectiveUse::kShards;
  }
  // Both an exchange and a pair, where the kernel alone tells.
  if (has({"sendrecv"})) return CollectiveUse::kOther;
  return has({"send", "recv"}) ? CollectiveUse::kPair : CollectiveUse::kOther;
}

}  // namespace trainprof
