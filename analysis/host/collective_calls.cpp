#include "analysis/host/collective_calls.h"

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
  using names_internal::ContainsOneOf;
  const std::string_view told = ToldOperationOf(trace, op);
  const std::string_view kernel = trace.Text(trace.device_ops.name[Index(op)]);
  if (told.empty() && ExchangesTokens(kernel)) return CollectiveUse::kExperts;
  const std::string_view name = told.empty() ? QualifiedNameOf(kernel) : told;
  if (ContainsOneOf(name, {"alltoall", "all_to_all", "all2all"})) return CollectiveUse::kExchange;
  if (ContainsOneOf(name, {"allreduce", "all_reduce", "cross_device_reduce"})) {
    return CollectiveUse::kSum;
  }
  if (ContainsOneOf(name, {"allgather", "all_gather", "reducescatter", "reduce_scatter"})) {
    return CollectiveUse::kShards;
  }
  // Both an exchange and a pair, where the kernel alone tells.
  if (ContainsOneOf(name, {"sendrecv"})) return CollectiveUse::kOther;
  return ContainsOneOf(name, {"send", "recv"}) ? CollectiveUse::kPair : CollectiveUse::kOther;
}

}  // namespace trainprof
