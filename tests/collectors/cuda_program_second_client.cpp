// Another client of CUPTI in the program, as torch.profiler has one: it takes buffers, clock and kinds,
// and switches them off when it is done. We are asked before (SecondClient), or not (RudeClient).
#include <cupti.h>
#include <dlfcn.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "tests/collectors/cuda_program.h"

namespace cuda_program {
namespace {

constexpr size_t kBufferBytes = 1 << 16;

struct Cupti {
  decltype(&cuptiSubscribe) subscribe;
  decltype(&cuptiUnsubscribe) unsubscribe;
  decltype(&cuptiActivityRegisterTimestampCallback) set_clock;
  decltype(&cuptiActivityRegisterCallbacks) set_callbacks;
  decltype(&cuptiActivityEnable) enable;
  decltype(&cuptiActivityDisable) disable;
  decltype(&cuptiActivityFlushAll) flush;
  decltype(&cuptiActivitySetAttribute) set_attribute;
  decltype(&cuptiActivityGetNextRecord) next;
};
Cupti cupti;

long kernels = 0;

template <class Function>
void Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  if (*function == nullptr) std::exit(9);
}

void* Open(const char* path) {
  void* library = path == nullptr ? nullptr : dlopen(path, RTLD_NOW);
  if (library == nullptr) std::exit(8);
  return library;
}

uint64_t AnotherClock() { return 42; }

void Request(uint8_t** data, size_t* size, size_t* most_records) {
  *size = kBufferBytes;
  *most_records = 0;
  *data = static_cast<uint8_t*>(std::aligned_alloc(8, kBufferBytes));
}

void Complete(CUcontext, uint32_t, uint8_t* data, size_t, size_t valid) {
  CUpti_Activity* record = nullptr;
  while (cupti.next(data, valid, &record) == CUPTI_SUCCESS) {
    kernels += record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL ? 1 : 0;
  }
  std::free(data);
}

void NoCall(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}

constexpr CUpti_ActivityKind kKinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                         CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER};

void FindCupti() {
  void* library = Open("libcupti.so.13");
  Find(library, "cuptiSubscribe", &cupti.subscribe);
  Find(library, "cuptiUnsubscribe", &cupti.unsubscribe);
  Find(library, "cuptiActivityRegisterTimestampCallback", &cupti.set_clock);
  Find(library, "cuptiActivityRegisterCallbacks", &cupti.set_callbacks);
  Find(library, "cuptiActivityEnable", &cupti.enable);
  Find(library, "cuptiActivityDisable", &cupti.disable);
  Find(library, "cuptiActivityFlushAll", &cupti.flush);
  Find(library, "cuptiActivitySetAttribute", &cupti.set_attribute);
  Find(library, "cuptiActivityGetNextRecord", &cupti.next);
}

// As Kineto has it: what it did not give out is passed over.
std::mutex pages_lock;
auto& pages = *new std::set<uint8_t*>;  // CUPTI may write into them to the very end

void RequestPages(uint8_t** data, size_t* size, size_t* most_records) {
  constexpr size_t kPage = 4096;
  *size = kBufferBytes;
  *most_records = 0;
  *data = static_cast<uint8_t*>(std::aligned_alloc(kPage, kBufferBytes));
  const std::lock_guard guard(pages_lock);
  pages.insert(*data);
}

void CompletePages(CUcontext, uint32_t, uint8_t* data, size_t, size_t valid) {
  const std::lock_guard guard(pages_lock);
  if (!pages.contains(data)) return;
  CUpti_Activity* record = nullptr;
  while (cupti.next(data, valid, &record) == CUPTI_SUCCESS) {
    kernels += record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL ? 1 : 0;
  }
}

uint64_t WallClock() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::nanoseconds(now).count());
}

void SetBuffersPerThread(uint8_t on) {
  constexpr auto kBuffersPerThread = static_cast<CUpti_ActivityAttribute>(9);  // since 12.3
  size_t bytes = sizeof on;
  cupti.set_attribute(kBuffersPerThread, &bytes, &on);
}

}  // namespace

int SecondClient(const std::function<void()>& launch, const std::string& how) {
  int (*start)() = nullptr;
  void (*hand_over)(int) = nullptr;
  void* collector = Open(std::getenv("CUDA_INJECTION64_PATH"));
  Find(collector, "TrainprofStart", &start);
  Find(collector, "TrainprofHandOver", &hand_over);
  if (start() != 1) return 11;
  FindCupti();
  if (how == "early") hand_over(1);
  launch();
  CUpti_SubscriberHandle subscriber = nullptr;
  for (int round = 0; round < 2; ++round) {
    hand_over(1);
    const bool subscribes = subscriber == nullptr && how != "without";
    if (subscribes && cupti.subscribe(&subscriber, NoCall, nullptr) != CUPTI_SUCCESS) return 10;
    cupti.set_clock(AnotherClock);
    cupti.set_callbacks(Request, Complete);
    for (const CUpti_ActivityKind kind : kKinds) cupti.enable(kind);
    launch();
    for (const CUpti_ActivityKind kind : kKinds) cupti.disable(kind);
    cupti.flush(1);
    if (how == "leaves") {
      cupti.unsubscribe(subscriber);
      subscriber = nullptr;
    }
    hand_over(0);
    hand_over(0);  // as where a profile without CUPTI ends
    launch();
  }
  std::printf("second client: %ld kernels\n", kernels);
  return 0;
}

int RudeClient(const std::function<void()>& launch, const std::string& how) {
  // Within it the collector flushes CUPTI: what lies in its buffers when the other comes is lost to both.
  const auto wait = [] { std::this_thread::sleep_for(std::chrono::milliseconds(1300)); };
  FindCupti();
  launch();
  for (int round = 0; round < 2; ++round) {
    wait();
    SetBuffersPerThread(1);
    cupti.set_callbacks(RequestPages, CompletePages);
    cupti.set_clock(WallClock);
    for (const CUpti_ActivityKind kind : kKinds) cupti.enable(kind);
    launch();
    wait();
    launch();
    if (how == "keeps") break;
    for (const CUpti_ActivityKind kind : kKinds) cupti.disable(kind);
    cupti.flush(1);
    SetBuffersPerThread(0);
    wait();
    launch();
  }
  cupti.flush(1);
  const std::lock_guard guard(pages_lock);
  long bytes = 0;
  for (const uint8_t* page : pages) bytes += *page != 0 ? 1 : 0;
  std::printf("rude client: %ld kernels, %s\n", kernels, bytes > 0 ? "intact" : "empty");
  return 0;
}

}  // namespace cuda_program
