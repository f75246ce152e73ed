#include "analysis/host/copy_calls.h"

#include "analysis/host/timeline.h"
#include "trace/base/cancel.h"

namespace trainprof {
namespace {

// torch issues the sync that completes a copy within this time on the same thread.
constexpr Duration kPairedSyncWithin = Microseconds(50);

// Something else may take the processor in between, of a read that has its value already: for 140 to 210 us where it did
// on the virtual GPU. A thread that stays away for longer does something else.
constexpr Duration kHeldUpWithin = Milliseconds(1);

// The stream's sync that is the thread's next call, of a read whose own call waited: it waits for nothing more, but
// would if that had not. Else kNoRow.
Row HeldUpSyncBehind(const Trace& trace, Row call) {
  const ApiTable& api = trace.api;
  const auto next = static_cast<uint32_t>(Index(call)) + 1;
  if (next >= api.rows_of(api.track[Index(call)]).second) return kNoRow;
  const bool is_sync = HostWaitOf(trace.Text(api.name[next])) == HostWait::kStream;
  return is_sync && api.begin[next] <= api.end(Index(call)) + kHeldUpWithin ? Row{next} : kNoRow;
}

// The sync that follows `call` on its thread at once, or kNoRow.
Row SyncBehind(const ApiTable& api, Row call) {
  const uint32_t last = api.rows_of(api.track[Index(call)]).second;
  for (uint32_t next = static_cast<uint32_t>(Index(call)) + 1; next < last; ++next) {
    if (api.begin[next] > api.end(Index(call)) + kPairedSyncWithin) break;
    if (api.kind[next] == ApiKind::kSync) return Row{next};
    if (StartsWork(api.kind[next])) break;
  }
  return kNoRow;
}

CopyCall CallOf(const Trace& trace, uint32_t op, const std::vector<bool>& blocking) {
  const Row call = trace.device_ops.launch[op];
  const Interval when = trace.api.interval(call);
  CopyCall copy{Row{op}, call, kNoRow, call, when, {}};
  // What waits behind any other copy waits for all that came before.
  const CopyDirection direction = trace.device_ops.direction[op];
  const bool is_hosts =
      direction == CopyDirection::kHostToDevice || direction == CopyDirection::kDeviceToHost;
  Row sync = is_hosts ? SyncBehind(trace.api, call) : kNoRow;
  if (sync == kNoRow && direction == CopyDirection::kDeviceToHost && blocking[Index(call)]) {
    sync = HeldUpSyncBehind(trace, call);
  }
  const bool completes =
      sync != kNoRow && trace.api.end(Index(sync)) + kRounding >= trace.device_ops.end(op);
  if (!completes && !blocking[Index(call)]) return copy;
  copy.blocked = when.Length();
  if (!completes) return copy;
  const Duration behind = trace.api.interval(sync).Length();
  copy.sync = sync;
  copy.wait.end = trace.api.end(Index(sync));
  if (behind > copy.blocked) copy.waiting = sync;
  copy.blocked += behind;
  return copy;
}

}  // namespace

std::vector<CopyCall> FindCopyCalls(const Trace& trace, const IntervalSet& window,
                                    const std::vector<bool>& blocking) {
  std::vector<CopyCall> copies;
  const DeviceOpTable& ops = trace.device_ops;
  for (uint32_t op = 0; op < ops.size(); ++op) {
    CancelPoint(op);
    if (ops.kind[op] == DeviceOpKind::kKernel || ops.launch[op] == kNoRow) continue;
    if (window.TotalWithin(trace.api.interval(ops.launch[op])).ns == 0) continue;
    copies.push_back(CallOf(trace, op, blocking));
  }
  return copies;
}

bool TellsHostMemory(const Trace& trace) {
  const DeviceOpTable& ops = trace.device_ops;
  bool any = false;
  for (uint32_t op = 0; op < ops.size(); ++op) {
    CancelPoint(op);
    if (ops.direction[op] != CopyDirection::kHostToDevice) continue;
    if (ops.Uses(op, MemoryKind::kPageable) || ops.Uses(op, MemoryKind::kPinned)) return true;
    any = true;
  }
  return !any;
}

std::vector<bool> FindFeeders(const Trace& trace, const Steps& steps) {
  std::vector<bool> feeds(trace.tracks.size());
  if (steps.thread != kNoTrack) feeds[Index(steps.thread)] = true;
  for (uint32_t call = 0; call < trace.api.size(); ++call) {
    CancelPoint(call);
    const size_t thread = Index(trace.api.track[call]);
    if (feeds[thread] || !StartsKernels(trace.api.kind[call])) continue;
    feeds[thread] = steps.window.TotalWithin(trace.api.interval(Row{call})).ns > 0;
  }
  return feeds;
}

}  // namespace trainprof
