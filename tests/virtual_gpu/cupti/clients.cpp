#include "tests/virtual_gpu/cupti/clients.h"

#include <pthread.h>

namespace vgpu {
namespace {

std::atomic<bool> forked = false;

constexpr uint32_t kSeveralClients = 13030;

}  // namespace

Clients& TheClients() {
  static Clients* const clients = [] {
    pthread_atfork(nullptr, nullptr, [] { forked = true; });
    return new Clients;  // calls come in until the process ends
  }();
  return *clients;
}

bool InForkedChild() { return forked; }

Clients::Clients() {
  for (size_t i = 0; i < kMostClients; ++i) {
    clients_[i] = std::make_unique<Cupti>(i);
    clients_[i]->buffers.per_thread = EmulatedToolkit() >= 13000;
  }
}

// Those that are nobody's have nothing on, and nothing is called of them.
template <class Function>
void Clients::Each(Function function) const {
  for (const auto& client : clients_) function(*client);
}

void Clients::Enter(ApiCall& call) {
  Each([&](Cupti& it) { it.Enter(call); });
}
void Clients::Exit(ApiCall& call) {
  Each([&](Cupti& it) { it.Exit(call); });
}
void Clients::Issued(const Work& work) {
  Each([&](Cupti& it) { it.Issued(work); });
}
bool Clients::RecordsKernels() const {
  bool any = false;
  Each([&](const Cupti& it) { any = any || it.RecordsKernels(); });
  return any;
}
void Clients::Synchronized(const Sync& sync) {
  Each([&](Cupti& it) { it.Synchronized(sync); });
}
void Clients::QueueWasFull(const Stream& stream, int64_t start_ns, int64_t end_ns) {
  Each([&](Cupti& it) { it.QueueWasFull(stream, start_ns, end_ns); });
}
void Clients::Memory(const MemoryOperation& operation) {
  Each([&](Cupti& it) { it.Memory(operation); });
}
void Clients::Ran(const HostFunctionRun& run) {
  Each([&](Cupti& it) { it.Ran(run); });
}
void Clients::Created(const Context& context) {
  Each([&](Cupti& it) { it.Created(context); });
}
void Clients::Created(const Stream& stream) {
  Each([&](Cupti& it) { it.Created(stream); });
}
void Clients::Destroyed(const Stream& stream) {
  Each([&](Cupti& it) { it.Destroyed(stream); });
}

Cupti* Clients::Of(CUpti_SubscriberHandle subscriber) {
  for (const auto& client : clients_) {
    if (HandleOf(*client) == subscriber && client->subscribed) return client.get();
  }
  return nullptr;
}

Cupti* Clients::Subscribe(const std::string& name, bool shares, std::string* holder) {
  const std::lock_guard guard(lock_);
  Cupti* found = nullptr;
  for (size_t i = kMostClients; i-- > 0;) {
    if (clients_[i]->subscribed) *holder = clients_[i]->subscriber_name;
    if (i > 0 && !clients_[i]->subscribed) found = clients_[i].get();
  }
  if (!shares) found = &Default();
  const bool allowed = shares ? sharing_ != Sharing::kForbidden : sharing_ != Sharing::kAllowed;
  if (!allowed || found == nullptr || found->subscribed) return nullptr;
  sharing_ = shares ? Sharing::kAllowed : Sharing::kForbidden;
  found->subscriber_name = name;
  found->subscribed = true;
  return found;
}

void Clients::Unsubscribe(Cupti& client) {
  const std::lock_guard guard(lock_);
  for (CallbackIds& ids : client.called) ids.SetAll(false);
  client.callback = nullptr;
  client.subscribed = false;
  if (client.index != 0) {
    for (auto& kind : client.kinds) kind = false;
    for (ApiSelection& selection : client.recorded) selection.Reset();
    client.buffers.Abandon();
  }
  bool any = false;
  Each([&](const Cupti& it) { any = any || it.subscribed; });
  if (any) return;
  sharing_ = Sharing::kOpen;
  scope_ = Scope::kNone;
}

CUptiResult Clients::Claim(Scope scope) {
  if (EmulatedToolkit() < kSeveralClients) {
    return scope == Scope::kProcess ? CUPTI_SUCCESS : CUPTI_ERROR_API_NOT_IMPLEMENTED;
  }
  const std::lock_guard guard(lock_);
  if (scope_ != Scope::kNone && scope_ != scope) return CUPTI_ERROR_NOT_COMPATIBLE;
  scope_ = scope;
  return CUPTI_SUCCESS;
}

Sharing Clients::sharing() {
  const std::lock_guard guard(lock_);
  return sharing_;
}

bool Clients::AnyRegistered() const {
  bool any = false;
  Each([&](const Cupti& it) { any = any || it.buffers.registered(); });
  return any;
}

bool Clients::AnyHasOn(CUpti_ActivityKind kind) const {
  bool any = false;
  Each([&](const Cupti& it) { any = any || it.KindOn(kind); });
  return any;
}

bool Clients::Alone() const {
  int subscribed = 0;
  Each([&](const Cupti& it) { subscribed += it.subscribed ? 1 : 0; });
  return subscribed <= 1;
}

void Clients::FlushAll(bool forced) {
  Each([&](Cupti& it) { it.buffers.Flush(forced); });
}

}  // namespace vgpu
