#include "analysis/graph/call_waits.h"

#include <algorithm>

#include "analysis/graph/latencies.h"
#include "analysis/graph/thinned.h"
#include "analysis/host/timeline.h"
#include "trace/base/cancel.h"
#include "trace/base/near.h"

namespace trainprof {
namespace {

// A call whose length is this many times what others of its name take was held.
constexpr int kHeldTimes = 3;

}  // namespace

CallWaits::CallWaits(const Trace& trace, const std::vector<bool>& blocking_calls,
                     const Streams& streams)
    : trace_(trace), blocking_(blocking_calls), streams_(streams) {
  LearnIssues();
  CollectSyncs();
  CollectOps();
}

void CallWaits::LearnIssues() {
  const ApiTable& api = trace_.api;
  struct OfName {
    StringId name;
    Thinned lengths;
  };
  std::vector<OfName> names;
  std::vector<uint32_t> of_name(trace_.strings.size());  // its place, from 1; 0: not met
  host_waits_.assign(trace_.strings.size(), HostWait::kNone);
  issue_ns_.assign(trace_.strings.size(), -1);
  for (uint32_t row = 0; row < api.size(); ++row) {
    CancelPoint(row);
    const StringId name = api.name[row];
    uint32_t& place = of_name[Index(name)];
    if (place == 0) {
      names.push_back({name, {}});
      place = static_cast<uint32_t>(names.size());
      host_waits_[Index(name)] = HostWaitOf(trace_.Text(name));
    }
    // How long a call takes that always waits, nothing tells.
    if (!blocking_[row]) names[place - 1].lengths.Add(api.interval(Row{row}).Length().ns);
  }
  for (auto& [name, lengths] : names) {
    issue_ns_[Index(name)] =
        static_cast<int32_t>(std::min<int64_t>(lengths.Quantile(0.25, -1), INT32_MAX));
  }
}

void CallWaits::CollectSyncs() {
  for (uint32_t row = 0; row < trace_.syncs.size(); ++row) {
    CancelPoint(row);
    const SyncKind kind = trace_.syncs.kind[row];
    const bool host_waits =
        kind == SyncKind::kEvent || kind == SyncKind::kStream || kind == SyncKind::kContext;
    const Row call = trace_.syncs.call[row];
    if (host_waits && call != kNoRow) syncs_.push_back({static_cast<uint32_t>(call), row});
  }
  std::sort(syncs_.begin(), syncs_.end(),
            [](const OfCall& a, const OfCall& b) { return a.call < b.call; });
}

void CallWaits::CollectOps() {
  for (uint32_t item = 0; item < streams_.size(); ++item) {
    CancelPoint(item);
    const Row call = streams_.call(item);
    if (call == kNoRow || streams_.kind(item) != NodeKind::kDeviceOp) continue;
    if (!blocking_[Index(call)] && !IsHeld(call)) continue;
    ops_.push_back({static_cast<uint32_t>(call), item});
  }
  std::stable_sort(ops_.begin(), ops_.end(),
                   [](const OfCall& a, const OfCall& b) { return a.call < b.call; });
}

Duration CallWaits::TypicalIssue(Row call) const {
  const int32_t typical = issue_ns_[Index(trace_.api.name[Index(call)])];
  return typical < 0 ? kIssue : Nanoseconds(typical);
}

// Some launches take long for themselves: they load a module. Only one that ends as room is made in
// its queue waited for it (AddRoom).
bool CallWaits::IsHeld(Row call) const {
  if (!StartsWork(trace_.api.kind[Index(call)])) return false;
  if (trace_.api.queue_full_ns[Index(call)] > 0) return true;
  const Duration length = trace_.api.interval(call).Length();
  return length > kHandOver && length.ns > kHeldTimes * TypicalIssue(call).ns;
}

std::span<const CallWaits::OfCall> CallWaits::RowsOf(const std::vector<OfCall>& rows, Row call,
                                                     size_t& near) {
  const auto number = static_cast<uint32_t>(call);
  near = PlaceNear(0, rows.size(), near, [&](size_t row) { return rows[row].call < number; });
  const auto first = rows.begin() + static_cast<ptrdiff_t>(near);
  auto last = first;
  while (last != rows.end() && last->call == number) ++last;
  return {first, last};
}

std::optional<CallWait> CallWaits::Of(Row call, Near& near) const {
  const size_t row = Index(call);
  const Interval times = trace_.api.interval(call);
  const HostWait waits = host_waits_[Index(trace_.api.name[row])];
  CallWait wait;
  const auto syncs = RowsOf(syncs_, call, near.sync);
  if (!syncs.empty()) wait.sync = Row{syncs.front().index};
  for (const OfCall& sync : syncs) AddSyncTargets(call, Row{sync.index}, near, wait.targets);
  if (blocking_[row] && StartsWork(trace_.api.kind[row])) {
    AddOwnTargets(call, near, wait.targets);
  } else if (syncs.empty() && (blocking_[row] || waits == HostWait::kContext)) {
    AddContextTargets(call, kNoDevice, near, wait.targets);
  } else if (syncs.empty() && IsHeld(call)) {
    wait.kind = EdgeKind::kQueueRoom;
    AddRoom(call, near, wait.targets);
    if (wait.targets.empty()) return std::nullopt;
  }
  if (!blocking_[row] && wait.targets.empty()) return std::nullopt;

  std::sort(wait.targets.begin(), wait.targets.end());
  wait.targets.erase(std::unique(wait.targets.begin(), wait.targets.end()), wait.targets.end());
  std::stable_sort(wait.targets.begin(), wait.targets.end(),
                   [&](uint32_t a, uint32_t b) { return streams_.end(b) < streams_.end(a); });
  const TraceTime ended = wait.targets.empty() ? times.begin : streams_.end(wait.targets.front());
  if (ended > times.begin) {
    wait.from = std::min({times.begin + TypicalIssue(call), ended, times.end});
    return wait;
  }
  // What it might have waited for was done. Memory that is given back need not wait at all.
  if (!blocking_[row]) return std::nullopt;
  wait.is_explained = times.Length() <= kHandOver;
  wait.from = times.end;
  return wait;
}

void CallWaits::AddLastIssued(const Streams::Stream* stream, TraceTime before,
                              std::vector<uint32_t>& targets) const {
  if (stream == nullptr) return;
  if (const auto item = streams_.LastIssuedBefore(*stream, before)) targets.push_back(*item);
}

void CallWaits::AddSyncTargets(Row call, Row sync, Near& near,
                               std::vector<uint32_t>& targets) const {
  const size_t row = Index(sync);
  const SyncTable& syncs = trace_.syncs;
  if (syncs.kind[row] == SyncKind::kContext) {
    return AddContextTargets(call, trace_.tracks[Index(syncs.track[row])].device, near, targets);
  }
  const Row record = syncs.kind[row] == SyncKind::kEvent ? syncs.record[row] : call;
  const Streams::Stream* const stream = streams_.Of(syncs.awaited[row]);
  if (syncs.awaited[row] == kNoTrack) return AddContextTargets(call, kNoDevice, near, targets);
  AddLastIssued(stream, trace_.api.begin[Index(record == kNoRow ? call : record)], targets);
}

void CallWaits::AddOwnTargets(Row call, Near& near, std::vector<uint32_t>& targets) const {
  for (const OfCall& op : RowsOf(ops_, call, near.op)) targets.push_back(op.index);
}

void CallWaits::AddContextTargets(Row call, DeviceId device, Near& near,
                                  std::vector<uint32_t>& targets) const {
  const Interval times = trace_.api.interval(call);
  const ProcessId process = trace_.ProcessOf(trace_.api.track[Index(call)]);
  near.of_stream.resize(streams_.streams().size());
  for (size_t i = 0; i < near.of_stream.size(); ++i) {
    const Streams::Stream& stream = streams_.streams()[i];
    const bool is_its = device != kNoDevice
                            ? stream.device == device
                            : stream.driver == process || stream.driver == kNoProcess;
    if (!is_its) continue;
    const auto item = streams_.LastIssuedBefore(stream, times.begin, near.of_stream[i]);
    // A stream that works on behind the call was not waited for.
    if (item && streams_.end(*item) <= times.end + kRounding) targets.push_back(*item);
  }
}

// In its own stream, or, of a graph, in any that it launched into.
void CallWaits::AddRoom(Row call, Near& near, std::vector<uint32_t>& targets) const {
  const Interval times = trace_.api.interval(call);
  for (const OfCall& op : RowsOf(ops_, call, near.op)) {
    const TrackId track = streams_.kind(op.index) == NodeKind::kDeviceOp
                              ? trace_.device_ops.track[streams_.row(op.index)]
                              : kNoTrack;
    const Streams::Stream* const stream = streams_.Of(track);
    if (stream == nullptr) continue;
    const auto item = streams_.LastEndedBy(*stream, times.end + kRounding);
    if (!item || streams_.issued(*item) >= times.begin) continue;
    if (times.end - streams_.end(*item) > kHandOver) continue;
    targets.push_back(*item);
  }
}

}  // namespace trainprof
