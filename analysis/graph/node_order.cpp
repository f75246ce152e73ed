#include "analysis/graph/node_order.h"

#include <algorithm>

#include "trace/base/large_columns.h"
#include "trace/base/sort_runs.h"

namespace trainprof {
namespace {

TraceTime CallBegin(const Trace& trace, const Streams& streams, uint32_t item) {
  const Row call = streams.call(item);
  return call == kNoRow ? TraceTime{INT64_MIN} : trace.api.begin[Index(call)];
}

}  // namespace

std::vector<Pending> OrderOfNodes(const Trace& trace, const Streams& streams,
                                  const HostItems& items) {
  std::vector<Pending> order;
  size_t count = streams.size();
  for (const HostThread& thread : items.threads) count += thread.items.size();
  ReserveLarge(order, count + items.waits.size());
  for (uint32_t t = 0; t < items.threads.size(); ++t) {
    const auto add = [&](NodeKind kind, uint32_t index, TraceTime at) {
      order.push_back({at.ns, index, t, static_cast<uint32_t>(kind)});
    };
    const std::vector<HostItem>& of_thread = items.threads[t].items;
    for (uint32_t i = 0; i < of_thread.size(); ++i) {
      const Interval times = items.Times(trace, of_thread[i]);
      // A wait stands where it ended: all that it waited for began before.
      add(of_thread[i].kind, i, of_thread[i].kind == NodeKind::kInput ? times.end : times.begin);
      if (of_thread[i].wait != 0) add(NodeKind::kWait, i, times.end);
    }
  }
  for (const Streams::Stream& stream : streams.streams()) {
    int64_t at = INT64_MIN;
    for (uint32_t item = stream.first; item < stream.last; ++item) {
      // The device's clock may say that an operation began before its call.
      at = std::max({at, streams.begin(item).ns, CallBegin(trace, streams, item).ns});
      order.push_back({at, item, 0, static_cast<uint32_t>(streams.kind(item))});
    }
  }
  SortRuns(order, [](const Pending& pending) { return pending.at; });
  return order;
}

}  // namespace trainprof
