#include "viewer/navigation/follow.h"

#include "trace/base/cancel.h"

namespace trainprof {

LaunchLinks::LaunchLinks(const Trace& trace) : trace_(trace), begin_(trace.api.size() + 1) {
  const std::vector<Row>& launch = trace.device_ops.launch;
  for (uint32_t op = 0; op < launch.size(); ++op) {
    CancelPoint(op);
    if (launch[op] != kNoRow) ++begin_[Index(launch[op]) + 1];
  }
  for (size_t c = 1; c < begin_.size(); ++c) begin_[c] += begin_[c - 1];
  ops_.resize(begin_.back());
  std::vector<uint32_t> next(begin_.begin(), begin_.end() - 1);
  for (uint32_t op = 0; op < launch.size(); ++op) {
    CancelPoint(op);
    if (launch[op] != kNoRow) ops_[next[Index(launch[op])]++] = Row{op};
  }
}

std::span<const Row> LaunchLinks::OpsOf(Row call) const {
  if (!whole()) return {};
  const uint32_t first = begin_[Index(call)];
  return std::span(ops_).subspan(first, begin_[Index(call) + 1] - first);
}

std::optional<EventRef> Follow(const LaunchLinks& links, const EventRef& event) {
  if (event.table == Table::kDeviceOps) {
    const Row call = links.CallOf(event.row);
    if (call != kNoRow) return EventRef{event.rank, Table::kApi, call};
  }
  if (event.table == Table::kApi) {
    const std::span<const Row> ops = links.OpsOf(event.row);
    if (!ops.empty()) return EventRef{event.rank, Table::kDeviceOps, ops.front()};
  }
  return std::nullopt;
}

std::optional<size_t> NextEvent(const Lane& lane, size_t i) {
  if (i + 1 >= lane.size()) return std::nullopt;
  return i + 1;
}

std::optional<size_t> PreviousEvent(const Lane& lane, size_t i) {
  if (i == 0 || i > lane.size()) return std::nullopt;
  return i - 1;
}

}  // namespace trainprof
