// What the virtual libcupti keeps for one of its clients, and records for it.
#pragma once

#include <cupti.h>

#include <atomic>
#include <string>

#include "tests/virtual_gpu/cupti/buffers.h"
#include "tests/virtual_gpu/cupti/client_clock.h"
#include "tests/virtual_gpu/cupti/records.h"
#include "tests/virtual_gpu/model/machine.h"

namespace vgpu {

constexpr size_t kMaxCallbackId = 1024;
constexpr size_t kMaxKind = 64;
constexpr size_t kDomains = CUPTI_CB_DOMAIN_SIZE;

// A set of callback ids that calls test and the client changes at the same time.
class CallbackIds {
 public:
  bool Has(uint32_t id) const {
    return id < kMaxCallbackId && on_[id].load(std::memory_order_relaxed);
  }
  bool Any() const { return count_.load(std::memory_order_relaxed) > 0; }
  void Set(uint32_t id, bool on) {
    if (id < kMaxCallbackId && on_[id].exchange(on) != on) count_ += on ? 1 : -1;
  }
  void SetAll(bool on) {
    for (uint32_t id = 1; id < kMaxCallbackId; ++id) Set(id, on);
  }

 private:
  std::atomic<bool> on_[kMaxCallbackId] = {};
  std::atomic<int> count_ = 0;
};

// Which API functions are recorded. As measured by others on a real GPU: with the kind on, all but
// those that were switched off; with the kind off, those that were switched on, unless the kind was
// ever turned off; turning the kind on forgets the choices. And choices count only if one was made,
// or a kind was on, when the first context came into being, or if the kind was turned on since
// (SetActive).
class ApiSelection {
 public:
  bool Wants(uint32_t id) const {
    if (!active_.load(std::memory_order_relaxed)) return false;
    if (kind_.load(std::memory_order_relaxed)) return !off_.Has(id);
    return !dead_.load(std::memory_order_relaxed) && on_.Has(id);
  }
  bool Any() const { return kind_ || on_.Any(); }
  void Set(uint32_t id, bool on) {
    on_.Set(id, on);
    off_.Set(id, !on);
  }
  void SetKind(bool on) {
    Forget();
    kind_ = on;
    dead_ = !on && active_;
  }
  void SetActive() { active_ = true; }
  void Reset() {
    Forget();
    kind_ = dead_ = active_ = false;
  }

 private:
  void Forget() {
    on_.SetAll(false);
    off_.SetAll(false);
  }
  CallbackIds on_;
  CallbackIds off_;
  std::atomic<bool> kind_ = false;
  std::atomic<bool> dead_ = false;
  std::atomic<bool> active_ = false;
};

class Cupti {
 public:
  explicit Cupti(size_t index) : index(index) {}

  void Enter(ApiCall& call);
  void Exit(ApiCall& call);
  void Issued(const vgpu::Work& work);
  bool RecordsKernels() const {
    return KindOn(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) || KindOn(CUPTI_ACTIVITY_KIND_KERNEL);
  }
  void Synchronized(const Sync& sync);
  void QueueWasFull(const Stream& stream, int64_t start_ns, int64_t end_ns);
  void Memory(const MemoryOperation& operation);
  void Ran(const HostFunctionRun& run);
  void Created(const Context& context);
  void Created(const Stream& stream);
  void Destroyed(const Stream& stream);

  void ActivateApiRecords();
  // From now on calls are told to it; never undone, as a subscriber may come back.
  static void Attach();
  bool KindOn(CUpti_ActivityKind kind) const {
    return static_cast<size_t>(kind) < kMaxKind && kinds[kind].load(std::memory_order_relaxed);
  }
  template <class Struct>
  void Put(const Struct& body) {
    buffers.Put(&body, RecordBytes(body.kind));
  }
  void PutDevice(const Device& device);
  void PutContext(const Context& context);
  void PutStream(const Stream& stream, uint32_t correlation);

  const size_t index;  // below kMostClients
  ClientClock clock;
  Buffers buffers{clock, index};
  DeviceBuffers device_buffers;
  // Whether work of the device is recorded, of which the times need a place there.
  bool RecordsDevice() const;

  std::atomic<bool> kinds[kMaxKind] = {};
  std::atomic<int> kernel_sessions = 0;  // how often they were switched on
  std::atomic<bool> deadlocked = false;  // with fault disable_hangs
  void WaitIfDeadlocked() const;
  std::mutex flush_lock;
  std::atomic<bool> flushing = false;  // the client flushes, which takes flush_ms: launches wait
  ApiSelection recorded[2];            // by ApiDomain
  std::atomic<bool> latency_timestamps = false;
  std::atomic<bool> event_timestamps = false;
  std::atomic<bool> system_thread_ids = false;

  // While it is subscribed; its callback may be null.
  std::atomic<bool> subscribed = false;
  std::atomic<CUpti_CallbackFunc> callback = nullptr;
  std::atomic<void*> userdata = nullptr;
  std::string subscriber_name;
  CallbackIds called[kDomains];

 private:
  void Call(CUpti_CallbackDomain domain, uint32_t cbid, const void* data);
  void CallForApi(ApiCall& call, CUpti_ApiCallbackSite site);
  void PutApi(const ApiCall& call);
  void PutExternal(uint32_t correlation);
  template <class Struct>
  void PutRun(CUpti_ActivityKind kind, const HostFunctionRun& run);
};

// That of functions that name no subscriber. C entry points have no other way to reach it.
Cupti& TheCupti();

// The error that calls get which need a driver: no driver, a driver that does not fit, a forked
// child (which ends the process, since the real library hangs there).
CUptiResult Usable(const char* function);

// The external ids of the calling thread, innermost last.
bool PopExternal(CUpti_ExternalCorrelationKind kind, uint64_t* id);
void PushExternal(CUpti_ExternalCorrelationKind kind, uint64_t id);

}  // namespace vgpu
