#include "tests/virtual_gpu/cupti/buffers.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "tests/virtual_gpu/cupti/records.h"
#include "tests/virtual_gpu/model/clock.h"
#include "tests/virtual_gpu/model/faults.h"
#include "tests/virtual_gpu/model/tool.h"

namespace vgpu {
namespace {

constexpr size_t kReverseGroup = 4;      // fault out_of_order
constexpr int64_t kRetryNs = 1'000'000;  // where records are held, and with fault complete_at_once
constexpr int64_t kNever = INT64_MAX;

// Where there is no room for a buffer the library before 12.9 writes through the null pointer.
constexpr uint32_t kNullBufferIsSafe = 12090;

// Beside the kind of a record that has no times yet, as in buffers that the real library (13.0, H200) held.
constexpr uint32_t kIncompleteMark = 1u << 31;

void Mark(uint8_t* record, bool incomplete) {
  uint32_t kind = 0;
  memcpy(&kind, record, sizeof kind);
  kind = incomplete ? kind | kIncompleteMark : kind & ~kIncompleteMark;
  memcpy(record, &kind, sizeof kind);
}

}  // namespace

void Buffers::Register(CUpti_BuffersCallbackRequestFunc request,
                       CUpti_BuffersCallbackCompleteFunc complete) {
  complete_ = complete;
  request_ = request;
  std::call_once(started_, [this] { Start(); });
}

void Buffers::Register(ScopedRequest request, ScopedComplete complete) {
  scoped_complete_ = complete;
  scoped_request_ = request;
  std::call_once(started_, [this] { Start(); });
}

void Buffers::Start() {
  {
    const std::lock_guard guard(sinks_lock_);
    sinks_.push_back(shared_sink_);
  }
  std::thread worker([this] { Work(); });
  worker_id_ = worker.get_id();
  worker.detach();  // lives as long as the process, as the real library's
}

void Buffers::Request(uint8_t** data, size_t* size, size_t* max_records) {
  if (scoped_request_ == nullptr) return request_(data, size, max_records);
  size_t info = sizeof info;
  scoped_request_(data, size, max_records, &info);
}

void Buffers::Complete(const Buffer& buffer) {
  if (scoped_complete_ == nullptr) {
    return complete_(nullptr, 0, buffer.data, buffer.size, buffer.used);
  }
  struct Info {
    size_t bytes = sizeof(Info);
    uint64_t thread = 0;
    void** layouts = nullptr;
    size_t layout_count = 0;
  } info;
  scoped_complete_(buffer.data, buffer.size, buffer.used, &info);
}

void Buffers::Abandon() {
  for (const auto& sink : Sinks()) {
    const std::lock_guard guard(sink->lock);
    Forget(*sink);
    sink->waiting.clear();
    sink->current.reset();
  }
  std::unique_lock guard(queue_lock_);
  queue_.clear();
  queue_changed_.wait(guard, [this] { return delivering_ == 0; });
}

Buffers::Sink& Buffers::SinkOfThread() {
  if (!per_thread) return *shared_sink_;
  thread_local std::shared_ptr<Sink> of_clients[kMostClients];
  std::shared_ptr<Sink>& own = of_clients[client_];
  if (own == nullptr) {
    own = std::make_shared<Sink>();
    const std::lock_guard guard(sinks_lock_);
    sinks_.push_back(own);
  }
  return *own;
}

std::vector<std::shared_ptr<Buffers::Sink>> Buffers::Sinks() {
  const std::lock_guard guard(sinks_lock_);
  // Sinks of threads that have ended and left nothing.
  std::erase_if(sinks_, [](const std::shared_ptr<Sink>& sink) {
    return sink.use_count() == 1 && sink->current == nullptr && sink->waiting.empty();
  });
  return sinks_;
}

bool Buffers::RequestBuffer(Sink& sink) {
  uint8_t* data = nullptr;
  size_t size = 0;
  size_t max_records = 0;
  const uint64_t start = tell_requests ? clock_.Now() : 0;
  Request(&data, &size, &max_records);
  if (data == nullptr || size == 0) {
    if (EmulatedToolkit() < kNullBufferIsSafe) {
      fprintf(stderr, "virtual GPU: CUPTI before 12.9 crashes when it gets no buffer\n");
      abort();
    }
    return false;
  }
  if (!zeroed_by_client) memset(data, 0, size);
  sink.current.reset(new Buffer{data, size, max_records});
  if (start != 0) TellRequest(sink, start, clock_.Now());
  return true;
}

void Buffers::TellRequest(Sink& sink, uint64_t start, uint64_t end) {
  CUpti_ActivityOverhead3 body = {};
  body.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
  body.overheadKind = CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST;
  body.objectKind = CUPTI_ACTIVITY_OBJECT_PROCESS;
  body.objectId.pt.processId = static_cast<uint32_t>(getpid());
  body.start = start;
  body.end = end;
  const size_t bytes = RecordBytes(body.kind);
  if (bytes > sink.current->size) return;
  memcpy(sink.current->data, &body, bytes);
  sink.current->used = bytes;
  sink.current->records = 1;
}

uint8_t* Buffers::Place(Sink& sink, size_t bytes) {
  Buffer* buffer = sink.current.get();
  const bool fits = buffer != nullptr && buffer->used + bytes <= buffer->size &&
                    (buffer->max_records == 0 || buffer->records < buffer->max_records);
  if (!fits) {
    if (buffer != nullptr) Retire(sink);
    if (!RequestBuffer(sink) || sink.current->used + bytes > sink.current->size) {
      CountDropped();
      return nullptr;
    }
    buffer = sink.current.get();
  }
  uint8_t* place = buffer->data + buffer->used;
  buffer->used += bytes;
  ++buffer->records;
  return place;
}

void Buffers::Retire(Sink& sink) {
  sink.current->full = true;
  if (sink.current->incomplete == 0) {
    Deliver(std::move(sink.current));
  } else {
    sink.waiting.push_back(std::move(sink.current));
    const std::lock_guard guard(queue_lock_);
    is_worker_called_ = true;
    queue_changed_.notify_all();
  }
}

void Buffers::Put(const void* record, size_t bytes) {
  Sink& sink = SinkOfThread();
  const std::lock_guard guard(sink.lock);
  if (uint8_t* place = Place(sink, bytes)) memcpy(place, record, bytes);
}

void Buffers::PutIncomplete(const void* record, size_t bytes, const PendingTimes& times) {
  Sink& sink = SinkOfThread();
  const std::lock_guard guard(sink.lock);
  uint8_t* place = Place(sink, bytes);
  if (place == nullptr) {
    if (times.pool != nullptr) DeviceBuffers::Leave(times.pool);
    return;
  }
  Buffer* buffer = sink.current.get();
  Pending pending = {buffer, static_cast<size_t>(place - buffer->data), times, {}};
  if (Has(Fault::blank_incomplete)) {
    const auto* body = static_cast<const uint8_t*>(record);
    pending.body.assign(body, body + bytes);
  } else {
    memcpy(place, record, bytes);
    Mark(place, true);
  }
  ++buffer->incomplete;
  buffer->ends_ns = std::max(buffer->ends_ns, times.end_ns);
  sink.pending.push(std::move(pending));
  if (!Has(Fault::complete_at_flush)) Complete(sink, NowNs());
}

void Buffers::Complete(Sink& sink, int64_t now_ns) {
  if (sink.pending.empty() || sink.pending.top().times.end_ns > now_ns) return;
  const ClientClock::Mapping to_client = clock_.DeviceMappingNow();
  bool emptied = false;
  while (!sink.pending.empty() && sink.pending.top().times.end_ns <= now_ns) {
    const Pending& done = sink.pending.top();
    uint8_t* record = done.buffer->data + done.offset;
    const auto write = [record](size_t offset, uint64_t value) {
      if (offset != 0) memcpy(record + offset, &value, sizeof value);
    };
    if (!done.body.empty()) memcpy(record, done.body.data(), done.body.size());
    Mark(record, false);
    if (!TakeOne(Fault::zero_start_records)) {
      write(done.times.start_offset, to_client(done.times.start_ns));
      const bool reversed = TakeOne(Fault::reversed_records);
      write(done.times.end_offset,
            to_client(reversed ? done.times.start_ns - 1 : done.times.end_ns));
      write(done.times.completed_offset, to_client(done.times.end_ns));
    }
    if (done.times.pool != nullptr) DeviceBuffers::Leave(done.times.pool);
    if (--done.buffer->incomplete == 0 && done.buffer->full) emptied = true;
    sink.pending.pop();
  }
  if (!emptied) return;
  for (auto& buffer : sink.waiting) {
    if (buffer->incomplete == 0) Deliver(std::move(buffer));
  }
  std::erase(sink.waiting, nullptr);
}

std::vector<Buffers::Pending> Buffers::Forget(Sink& sink) {
  for (; !sink.pending.empty(); sink.pending.pop()) sink.held.push_back(sink.pending.top());
  for (const Pending& pending : sink.held) {
    if (pending.times.pool != nullptr) DeviceBuffers::Leave(pending.times.pool);
  }
  return std::exchange(sink.held, {});
}

void Buffers::Collect(Sink& sink, bool forced) {
  const std::lock_guard guard(sink.lock);
  Complete(sink, NowNs());
  if (!forced && Has(Fault::withheld_until_exit)) return;
  if (forced) {
    // The client gets those records without their times.
    for (const Pending& pending : Forget(sink)) Mark(pending.buffer->data + pending.offset, false);
    for (auto& buffer : sink.waiting) Deliver(std::move(buffer));
    sink.waiting.clear();
  }
  if (sink.current == nullptr) return;
  if (forced || sink.current->incomplete == 0) Deliver(std::move(sink.current));
}

bool Buffers::AnyIncomplete() {
  for (const auto& sink : Sinks()) {
    const std::lock_guard guard(sink->lock);
    Complete(*sink, NowNs());
    if (!sink->pending.empty()) return true;
  }
  return false;
}

void Buffers::HoldIncomplete() {
  for (const auto& sink : Sinks()) {
    const std::lock_guard guard(sink->lock);
    Complete(*sink, NowNs());
    for (; !sink->pending.empty(); sink->pending.pop()) sink->held.push_back(sink->pending.top());
  }
}

void Buffers::Release() {
  for (const auto& sink : Sinks()) {
    const std::lock_guard guard(sink->lock);
    for (Pending& held : sink->held) {
      held.times.end_ns = NowNs();
      sink->pending.push(std::move(held));
    }
    sink->held.clear();
  }
}

void Buffers::Flush(bool forced) {
  if (!registered()) return;
  for (const auto& sink : Sinks()) Collect(*sink, forced);
  std::unique_lock guard(queue_lock_);
  while (forced || !Has(Fault::withheld_until_exit)) {
    if (!DeliverNext(guard, true)) break;
  }
  if (std::this_thread::get_id() == worker_id_) return;  // the client flushes in its own callback
  queue_changed_.wait(guard, [this] { return delivering_ == 0; });
}

void Buffers::Deliver(std::unique_ptr<Buffer> buffer) {
  const std::lock_guard guard(queue_lock_);
  queue_.push_back(std::move(buffer));
  is_worker_called_ = true;
  queue_changed_.notify_all();
}

// Delivers one buffer, the guard open meanwhile; false when there is none. all: do not wait for a
// group.
bool Buffers::DeliverNext(std::unique_lock<std::mutex>& guard, bool all) {
  const bool reverse = Has(Fault::out_of_order);
  if (queue_.empty() || (reverse && !all && queue_.size() < kReverseGroup)) return false;
  const std::unique_ptr<Buffer> buffer = std::move(reverse ? queue_.back() : queue_.front());
  if (reverse) {
    queue_.pop_back();
  } else {
    queue_.pop_front();
  }
  ++delivering_;
  guard.unlock();
  Complete(*buffer);
  guard.lock();
  --delivering_;
  queue_changed_.notify_all();
  return true;
}

int64_t Buffers::CompleteAll() {
  int64_t next = kNever;
  if (Has(Fault::complete_at_flush)) return next;
  for (const auto& sink : Sinks()) {
    const std::lock_guard guard(sink->lock);
    const int64_t now = NowNs();
    Complete(*sink, now);
    if (Has(Fault::complete_at_once)) next = now + kRetryNs;
    for (const auto& buffer : sink->waiting) {
      next = std::min(next, std::max(buffer->ends_ns, now + kRetryNs));
    }
  }
  return next;
}

// Sleeps while there is nothing to do: a thread that wakes over and over changes how the kernel treats the whole process
// where processors are short.
void Buffers::Work() {
  using Clock = std::chrono::steady_clock;
  for (;;) {
    const int64_t next_ns = CompleteAll();
    std::unique_lock guard(queue_lock_);
    if (!Has(Fault::withheld_until_exit)) {
      while (DeliverNext(guard, false)) {
      }
    }
    const auto is_called = [this] { return is_worker_called_; };
    if (next_ns == kNever) {
      queue_changed_.wait(guard, is_called);
    } else {
      queue_changed_.wait_until(guard, Clock::time_point(std::chrono::nanoseconds(next_ns)),
                                is_called);
    }
    is_worker_called_ = false;
  }
}

}  // namespace vgpu
