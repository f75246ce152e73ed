// Activity buffers as the real library handles them. A record gets its place when the work is
// issued, and its times when the work has ended; a buffer goes back to the client when it is full
// and all its records are complete (on the library's own thread), or on a flush (on the flushing
// thread). Each thread fills buffers of its own, before 13.0 only where the client chose that.
#pragma once

#include <cupti.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <queue>
#include <thread>
#include <vector>

#include "tests/virtual_gpu/cupti/client_clock.h"
#include "tests/virtual_gpu/cupti/device_buffers.h"

namespace vgpu {

// A record whose times are not known yet: where they go, and when.
struct PendingTimes {
  size_t start_offset = 0;  // 0: the record has none
  size_t end_offset = 0;
  size_t completed_offset = 0;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  DeviceBuffers::Pool* pool = nullptr;  // where they stand until then
};

// Those of functions that name a subscriber; the last argument is a structure that begins with its size.
using ScopedRequest = void (*)(uint8_t**, size_t*, size_t*, void*);
using ScopedComplete = void (*)(uint8_t*, size_t, size_t, void*);

class Buffers {
 public:
  // client: below kMostClients, another one for each object.
  Buffers(const ClientClock& clock, size_t client) : clock_(clock), client_(client) {}

  void Register(CUpti_BuffersCallbackRequestFunc request,
                CUpti_BuffersCallbackCompleteFunc complete);
  void Register(ScopedRequest request, ScopedComplete complete);
  bool registered() const { return request_ != nullptr || scoped_request_ != nullptr; }
  // The client is gone, and with it what it has not flushed.
  void Abandon();

  void Put(const void* record, size_t bytes);
  // The times in the record must be 0; they are filled in once the work has ended.
  void PutIncomplete(const void* record, size_t bytes, const PendingTimes& times);

  // Returns buffers that hold complete records only; forced: all. Blocks until the client has them.
  void Flush(bool forced);

  // Whether some record has no times yet.
  bool AnyIncomplete();
  // What is under way gets its times no more; Release: it ends now.
  void HoldIncomplete();
  void Release();

  // Records that found no buffer, since the last call.
  size_t TakeDropped() { return dropped_.exchange(0); }
  void CountDropped() { dropped_.fetch_add(1, std::memory_order_relaxed); }

  // Attributes.
  std::atomic<bool> zeroed_by_client = false;
  std::atomic<bool> per_thread = true;
  std::atomic<bool> tell_requests = false;  // as overhead records

 private:
  struct Buffer {
    uint8_t* data;
    size_t size;
    size_t max_records;
    size_t used = 0;
    size_t records = 0;
    size_t incomplete = 0;
    int64_t ends_ns = 0;  // what was issued last of its records
    bool full = false;
  };
  struct Pending {
    Buffer* buffer;
    size_t offset;
    PendingTimes times;
    std::vector<uint8_t> body;  // with fault blank_incomplete
    bool operator>(const Pending& other) const { return times.end_ns > other.times.end_ns; }
  };
  // What one thread fills.
  struct Sink {
    std::mutex lock;
    std::unique_ptr<Buffer> current;
    std::vector<std::unique_ptr<Buffer>> waiting;  // full, not complete
    std::priority_queue<Pending, std::vector<Pending>, std::greater<>> pending;
    std::vector<Pending> held;
  };

  Sink& SinkOfThread();
  std::vector<std::shared_ptr<Sink>> Sinks();
  // With the sink's lock held.
  uint8_t* Place(Sink& sink, size_t bytes);
  bool RequestBuffer(Sink& sink);
  void TellRequest(Sink& sink, uint64_t start, uint64_t end);
  void Complete(Sink& sink, int64_t now_ns);
  void Collect(Sink& sink, bool forced);
  void Retire(Sink& sink);
  static std::vector<Pending> Forget(Sink& sink);  // what will have no times

  void Start();
  void Request(uint8_t** data, size_t* size, size_t* max_records);
  void Complete(const Buffer& buffer);
  void Deliver(std::unique_ptr<Buffer> buffer);
  bool DeliverNext(std::unique_lock<std::mutex>& guard, bool all);
  void Work();
  // Gives records their times, and says when the next full buffer will be complete; INT64_MAX: there is none.
  int64_t CompleteAll();

  const ClientClock& clock_;
  const size_t client_;
  CUpti_BuffersCallbackRequestFunc request_ = nullptr;
  CUpti_BuffersCallbackCompleteFunc complete_ = nullptr;
  ScopedRequest scoped_request_ = nullptr;
  ScopedComplete scoped_complete_ = nullptr;
  std::once_flag started_;
  std::atomic<size_t> dropped_ = 0;

  std::mutex sinks_lock_;
  std::vector<std::shared_ptr<Sink>> sinks_;
  std::shared_ptr<Sink> shared_sink_ = std::make_shared<Sink>();

  std::mutex queue_lock_;
  std::condition_variable queue_changed_;
  std::deque<std::unique_ptr<Buffer>> queue_;  // complete, to be delivered
  int delivering_ = 0;
  bool is_worker_called_ = false;  // there is a full buffer that it has not seen
  std::thread::id worker_id_;
};

}  // namespace vgpu
