// All clients of the virtual libcupti: the one of the functions that name no subscriber, and from
// CUPTI 13.3 on those that subscribed with leave for others, each with its own buffers, kinds and clock.
//
// As NVIDIA's documentation has it ("Multiple Subscribers"), and the machine code of 13.5 where that is
// silent: whoever subscribes first decides whether others may; functions with and without a subscriber
// do not go together (CUPTI_ERROR_NOT_COMPATIBLE); when the last subscriber goes, both are open again.
#pragma once

#include <memory>
#include <mutex>

#include "tests/virtual_gpu/cupti/cupti.h"

namespace vgpu {

// By which functions clients use the library.
enum class Scope { kNone, kProcess, kSubscriber };

// CUPTI_ACTIVITY_ATTR_MULTIPLE_SUBSCRIBER_STATE
enum class Sharing : uint8_t { kForbidden, kAllowed, kOpen };

class Clients : public Tool {
 public:
  Clients();

  void Enter(ApiCall& call) override;
  void Exit(ApiCall& call) override;
  void Issued(const Work& work) override;
  bool RecordsKernels() const override;
  void Synchronized(const Sync& sync) override;
  void QueueWasFull(const Stream& stream, int64_t start_ns, int64_t end_ns) override;
  void Memory(const MemoryOperation& operation) override;
  void Ran(const HostFunctionRun& run) override;
  void Created(const Context& context) override;
  void Created(const Stream& stream) override;
  void Destroyed(const Stream& stream) override;

  Cupti& Default() { return *clients_[0]; }
  // nullptr: nobody has this handle now.
  Cupti* Of(CUpti_SubscriberHandle subscriber);
  static CUpti_SubscriberHandle HandleOf(Cupti& client) {
    return reinterpret_cast<CUpti_SubscriberHandle>(&client);
  }

  // The client that `shares` from now on, or the default one. nullptr: it is refused; *holder is who
  // is subscribed.
  Cupti* Subscribe(const std::string& name, bool shares, std::string* holder);
  void Unsubscribe(Cupti& client);
  // Whether functions of this scope may be called, which they are then.
  CUptiResult Claim(Scope scope);
  Sharing sharing();
  bool Alone() const;          // at most one is subscribed
  bool AnyRegistered() const;  // buffers
  bool AnyHasOn(CUpti_ActivityKind kind) const;

  void FlushAll(bool forced);

 private:
  template <class Function>
  void Each(Function function) const;

  std::unique_ptr<Cupti> clients_[kMostClients];
  std::mutex lock_;  // of what follows, and of who is subscribed
  Scope scope_ = Scope::kNone;
  Sharing sharing_ = Sharing::kOpen;
};

Clients& TheClients();

// Whether CUPTI is used in a child that was forked after TheClients() came into being.
bool InForkedChild();

}  // namespace vgpu
