#include "tests/virtual_gpu/model/operations.h"

#include <algorithm>
#include <atomic>

#include "tests/virtual_gpu/model/clock.h"
#include "tests/virtual_gpu/model/graph.h"
#include "tests/virtual_gpu/model/host_functions.h"
#include "tests/virtual_gpu/model/shared_state.h"

namespace vgpu {
namespace {

struct AtomicCounts {
  std::atomic<uint64_t> kernels = 0, copies = 0, memsets = 0, graphs = 0, synchronizations = 0;
  std::atomic<int64_t> kernel_ns = 0, copy_ns = 0;
};
AtomicCounts counts;

int DeviceOf(const Work& work) { return work.stream->context->device->ordinal; }

int64_t TailOf(const Stream& stream) {
  const std::lock_guard guard(TheMachine().lock);
  int64_t tail = std::max(stream.tail_ns, stream.not_before_ns);
  if (stream.is_null) tail = std::max(tail, stream.context->blocking_tail_ns);
  return tail;
}

void TellTool(const Sync& sync) {
  counts.synchronizations.fetch_add(1, std::memory_order_relaxed);
  if (Tool* tool = AttachedTool()) tool->Synchronized(sync);
}

}  // namespace

int64_t WaitForRoom(const Stream& stream, std::unique_lock<std::mutex>& guard) {
  for (;;) {
    const int64_t now = NowNs();
    const int64_t room_at = stream.pending.RoomAtNs();
    if (room_at <= now) return now;
    guard.unlock();
    WaitUntil(room_at);
    if (Tool* tool = AttachedTool()) tool->QueueWasFull(stream, now, NowNs());
    guard.lock();
  }
}

void Count(const Work& work) {
  constexpr auto kOrder = std::memory_order_relaxed;
  switch (work.kind) {
    case WorkKind::kKernel:
      counts.kernels.fetch_add(1, kOrder);
      counts.kernel_ns.fetch_add(work.end_ns - work.start_ns, kOrder);
      NoteKernel(DeviceOf(work), work.start_ns, work.end_ns);
      break;
    case WorkKind::kCopy:
    case WorkKind::kPeerCopy:
      counts.copies.fetch_add(1, kOrder);
      counts.copy_ns.fetch_add(work.end_ns - work.start_ns, kOrder);
      NoteCopy(DeviceOf(work), work.target == MemoryKind::kDevice, work.bytes);
      break;
    case WorkKind::kMemset:
      counts.memsets.fetch_add(1, kOrder);
      break;
    case WorkKind::kGraph:
      counts.graphs.fetch_add(1, kOrder);
      break;
    case WorkKind::kEvent:
      break;
  }
}

void TellTool(const Work& work) {
  if (Tool* tool = AttachedTool()) tool->Issued(work);
}

Work IssueOrCapture(Stream& stream, const Operation& operation) {
  Machine& machine = TheMachine();
  std::unique_lock guard(machine.lock);
  if (stream.capture != nullptr) {
    AddCaptured(stream, operation);
    return {};
  }
  const int64_t now = WaitForRoom(stream, guard);
  const Work work = machine.Issue(stream, operation, now);
  guard.unlock();
  Count(work);
  TellTool(work);
  return work;
}

int64_t WaitForDevice(int64_t end_ns) {
  const int64_t now = NowNs();
  if (end_ns <= now) return now;
  WaitUntil(end_ns + CallNs(Setting::wakeup_ns));
  return NowNs();
}

void SynchronizeStream(Stream& stream) {
  const int64_t start = NowNs();
  WaitForDevice(TailOf(stream));
  WaitForHostFunctions();
  const int64_t end = NowNs();
  TellTool({SyncKind::kStream, CurrentCorrelation(), stream.context, &stream, 0, 0, start, end});
}

void SynchronizeContext(Context& context) {
  const int64_t start = NowNs();
  int64_t tail;
  {
    const std::lock_guard guard(TheMachine().lock);
    tail = context.latest_tail_ns;
  }
  WaitForDevice(tail);
  WaitForHostFunctions();
  const int64_t end = NowNs();
  TellTool({SyncKind::kContext, CurrentCorrelation(), &context, nullptr, 0, 0, start, end});
}

void SynchronizeEvent(Event& event) {
  const int64_t start = NowNs();
  int64_t time;
  const Stream* stream;
  {
    const std::lock_guard guard(TheMachine().lock);
    time = event.time_ns;
    stream = event.stream;
  }
  const int64_t end = WaitForDevice(time);
  if (stream == nullptr) return;  // never recorded: nothing to wait for
  TellTool({SyncKind::kEvent, CurrentCorrelation(), stream->context, stream, event.id,
            event.sync_id, start, end});
}

void RecordEvent(Event& event, Stream& stream) {
  Machine& machine = TheMachine();
  std::unique_lock guard(machine.lock);
  if (stream.capture != nullptr) {
    event.capture = stream.capture;
    event.capture_frontier = stream.capture_frontier;
    return;
  }
  const int64_t now = WaitForRoom(stream, guard);
  Operation operation = {};
  operation.work.kind = WorkKind::kEvent;
  operation.work.event_id = event.id;
  operation.work.event_sync_id = event.sync_id = machine.NextEventSyncId();
  const Work work = machine.Issue(stream, operation, now);
  event.capture = nullptr;
  event.time_ns = work.end_ns;
  event.stream = &stream;
  guard.unlock();
  TellTool(work);
}

void StreamWaitsEvent(Stream& stream, Event& event) {
  const int64_t start = NowNs();
  {
    const std::lock_guard guard(TheMachine().lock);
    if (event.capture != nullptr) {
      JoinCapture(stream, event);
      return;
    }
    stream.not_before_ns = std::max(stream.not_before_ns, event.time_ns);
    if (event.stream == nullptr) return;
  }
  TellTool({SyncKind::kStreamWaitsEvent, CurrentCorrelation(), stream.context, &stream, event.id,
            event.sync_id, start, NowNs()});
}

int64_t CallNs(Setting cost) {
  if (Least(Setting::scale) <= 0) return 0;
  const std::lock_guard guard(TheMachine().lock);
  return TheMachine().DrawNs(cost);
}

bool IsIdle(const Stream& stream) { return TailOf(stream) <= NowNs(); }

VgpuCounts Counts() {
  VgpuCounts result = {};
  result.api_calls = ApiCallCount();
  result.kernels = counts.kernels;
  result.copies = counts.copies;
  result.memsets = counts.memsets;
  result.graph_launches = counts.graphs;
  result.synchronizations = counts.synchronizations;
  result.kernel_ns = counts.kernel_ns;
  result.copy_ns = counts.copy_ns;
  return result;
}

}  // namespace vgpu
