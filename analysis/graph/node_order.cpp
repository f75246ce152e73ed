#include "analysis/graph/node_order.h"

#include <algorithm>

#include "analysis/steps/device_rows.h"
#include "trace/base/cancel.h"

namespace trainprof {
namespace {

TraceTime CallBegin(const Trace& trace, const Streams& streams, uint32_t item) {
  const Row call = streams.call(item);
  return call == kNoRow ? TraceTime{INT64_MIN} : trace.api.begin[Index(call)];
}

}  // namespace

NodeOrder::NodeOrder(const Trace& trace, const Streams& streams, const HostItems& items)
    : trace_(trace),
      streams_(streams),
      items_(items),
      size_(streams.size() + items.waits.size() - 1),  // the first wait is nobody's
      threads_(items.threads.size()),
      merge_(items.threads.size() + streams.streams().size(),
             [this](uint32_t a, uint32_t b) { return ComesBefore(next_[a], next_[b]); }) {
  for (const HostThread& thread : items.threads) size_ += thread.items.size();
  for (const Streams::Stream& stream : streams.streams()) of_streams_.push_back({stream.first});
  next_.resize(threads_.size() + of_streams_.size());
  for (uint32_t track = 0; track < next_.size(); ++track) merge_.Set(track, Pull(track));
  merge_.Start();
}

// Of what stands at one place, of operations that which was asked for first.
bool NodeOrder::ComesBefore(const Pending& a, const Pending& b) const {
  if (a.kind != NodeKind::kDeviceOp || b.kind != NodeKind::kDeviceOp) return false;
  return AskedForBefore(trace_, streams_.row(a.index), streams_.row(b.index));
}

void NodeOrder::FindNext(std::vector<Pending>& nodes) {
  CancelPoint();
  nodes.clear();
  while (nodes.size() < kAtOnce && !merge_.Done()) {
    const uint32_t track = merge_.First();
    nodes.push_back(next_[track]);
    merge_.Advance(Pull(track));
  }
}

int64_t NodeOrder::Pull(uint32_t track) {
  const bool any = track < threads_.size()
                       ? PullThread(track, next_[track])
                       : PullStream(track - static_cast<uint32_t>(threads_.size()), next_[track]);
  return any ? next_[track].at : Tournament::kDone;
}

// Nothing comes before the next item's begin but what waits already.
bool NodeOrder::PullThread(uint32_t t, Pending& pending) {
  OfThread& thread = threads_[t];
  const std::vector<HostItem>& items = items_.threads[t].items;
  const auto add = [&](NodeKind kind, uint32_t index, TraceTime at) {
    const auto place = std::find_if(thread.waiting.begin(), thread.waiting.end(),
                                    [&](const Pending& other) { return other.at <= at.ns; });
    thread.waiting.insert(place, {at.ns, index, t, kind});
  };
  for (; thread.next < items.size(); ++thread.next) {
    const HostItem& item = items[thread.next];
    const Interval times = items_.Times(trace_, item);
    if (!thread.waiting.empty() && thread.waiting.back().at <= times.begin.ns) break;
    // A wait stands where it ended: all that it waited for began before.
    add(item.kind, thread.next, item.kind == NodeKind::kInput ? times.end : times.begin);
    if (item.wait != 0) add(NodeKind::kWait, thread.next, times.end);
  }
  if (thread.waiting.empty()) return false;
  pending = thread.waiting.back();
  thread.waiting.pop_back();
  return true;
}

bool NodeOrder::PullStream(uint32_t s, Pending& pending) {
  OfStream& stream = of_streams_[s];
  const uint32_t item = stream.next;
  if (item == streams_.streams()[s].last) return false;
  ++stream.next;
  // The device's clock may say that an operation began before its call.
  stream.at = std::max({stream.at, streams_.begin(item).ns, CallBegin(trace_, streams_, item).ns});
  pending = {stream.at, item, 0, streams_.kind(item)};
  return true;
}

}  // namespace trainprof
