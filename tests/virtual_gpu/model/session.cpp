#include "tests/virtual_gpu/model/session.h"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>

#include "tests/virtual_gpu/model/clock.h"
#include "tests/virtual_gpu/model/faults.h"

namespace vgpu {
namespace {

thread_local Context* current_context = nullptr;
thread_local bool initializing = false;
thread_local bool creating = false;  // a primary context

std::atomic<bool> initialized = false;
std::atomic<bool> locked = false;  // by the thread that is in Initialize
std::atomic<bool> forked = false;

struct Contexts {
  std::mutex lock;
  std::map<uint32_t, Context*> by_uid;
  std::map<const Context*, std::unique_ptr<Context>> owned;
  std::map<const Stream*, std::unique_ptr<Stream>> streams;
};

Contexts& TheContexts() {
  static Contexts* const contexts = new Contexts;
  return *contexts;
}

void LoadInjectedLibrary() {
  const char* path = getenv("CUDA_INJECTION64_PATH");
  if (path == nullptr || *path == '\0') return;
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    fprintf(stderr, "virtual GPU: CUDA_INJECTION64_PATH: %s\n", dlerror());
    return;
  }
  auto* initialize = reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection"));
  if (initialize != nullptr) initialize();
}

CUresult BrokenDriver() {
  if (forked) return CUDA_ERROR_NOT_INITIALIZED;
  if (Has(Fault::no_driver)) return CUDA_ERROR_UNKNOWN;
  if (TheMachine().devices.empty()) return CUDA_ERROR_NO_DEVICE;
  return CUDA_SUCCESS;
}

void Register(Context& context) {
  const std::lock_guard guard(TheContexts().lock);
  TheContexts().by_uid[context.uid] = &context;
}

void TellCreated(const Context& context) {
  Tool* tool = AttachedTool();
  if (tool == nullptr) return;
  tool->Created(context);
  tool->Created(*context.null_stream);
}

}  // namespace

CUresult Initialize() {
  const CUresult broken = BrokenDriver();
  if (broken != CUDA_SUCCESS || initializing) return broken;
  static std::once_flag once;
  std::call_once(once, [] {
    initializing = true;
    pthread_atfork(nullptr, nullptr, [] { forked = true; });
    initialized = true;
    LoadInjectedLibrary();
    locked = true;
    WaitUntil(NowNs() + static_cast<int64_t>(Least(Setting::cuinit_ms) * 1e6));
    locked = false;
    locked.notify_all();
    initializing = false;
  });
  return CUDA_SUCCESS;
}

void WaitForInitialization() {
  if (!initializing) locked.wait(true);
}

CUresult Readiness() {
  if (!initialized) return CUDA_ERROR_NOT_INITIALIZED;
  return BrokenDriver();
}

Context* CurrentContext() { return current_context; }
void SetCurrentContext(Context* context) { current_context = context; }

int CurrentDevice() { return current_context == nullptr ? 0 : current_context->device->ordinal; }

Context& UsePrimaryContext(int ordinal) {
  Machine& machine = TheMachine();
  bool created = false;
  int64_t ready_at = 0;
  Context* context;
  {
    const std::lock_guard guard(machine.lock);
    context = machine.PrimaryContext(*machine.devices.at(static_cast<size_t>(ordinal)), &created);
    if (created) ready_at = NowNs() + machine.DrawNs(Setting::context_create_ns);
  }
  if (created) {
    creating = true;
    WaitUntil(ready_at);
    Register(*context);
    TellCreated(*context);
    creating = false;
    context->ready = true;
    context->ready.notify_all();
  }
  if (!creating) context->ready.wait(false);  // for the thread that creates it
  return *context;
}

Context* CreateContext(int ordinal) {
  Machine& machine = TheMachine();
  std::unique_ptr<Context> made;
  {
    const std::lock_guard guard(machine.lock);
    made = machine.NewContext(*machine.devices.at(static_cast<size_t>(ordinal)));
  }
  Context* context = made.get();
  Register(*context);
  {
    const std::lock_guard guard(TheContexts().lock);
    TheContexts().owned[context] = std::move(made);
  }
  TellCreated(*context);
  return context;
}

void DestroyContext(Context* context) {
  if (current_context == context) current_context = nullptr;
  const std::lock_guard guard(TheContexts().lock);
  TheContexts().by_uid.erase(context->uid);
  TheContexts().owned.erase(context);
}

Context* FindContext(uint32_t uid) {
  const std::lock_guard guard(TheContexts().lock);
  const auto found = TheContexts().by_uid.find(uid);
  return found == TheContexts().by_uid.end() ? nullptr : found->second;
}

Stream& StreamOf(Context& context, const void* handle) {
  const auto number = reinterpret_cast<uintptr_t>(handle);
  if (number <= 1) return *context.null_stream;
  if (number == 2) {  // the thread's own default stream, one in each context
    thread_local std::map<uint32_t, Stream*> own;
    Stream*& stream = own[context.uid];
    if (stream == nullptr) stream = CreateStream(context, true, 0);
    return *stream;
  }
  return *static_cast<Stream*>(const_cast<void*>(handle));
}

Stream* CreateStream(Context& context, bool blocking, int priority) {
  std::unique_ptr<Stream> made;
  {
    const std::lock_guard guard(TheMachine().lock);
    made = TheMachine().NewStream(context, blocking, priority);
  }
  Stream* stream = made.get();
  {
    const std::lock_guard guard(TheContexts().lock);
    TheContexts().streams[stream] = std::move(made);
  }
  if (Tool* tool = AttachedTool()) tool->Created(*stream);
  return stream;
}

// Its memory stays: events that were recorded in it and records that are not yet complete name it.
void DestroyStream(Stream* stream) {
  if (Tool* tool = AttachedTool()) tool->Destroyed(*stream);
}

}  // namespace vgpu
