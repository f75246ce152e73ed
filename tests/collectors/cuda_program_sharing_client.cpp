// Another client of CUPTI that records beside others, as torch's CUPTI monitor and JAX do from 13.3 on:
// by the functions that name a subscriber, which the headers of CUDA 13.0 lack.
#include <cupti.h>
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include "tests/collectors/cuda_program.h"

namespace cuda_program {
namespace {

constexpr size_t kBufferBytes = 1 << 16;

struct Params {
  size_t bytes = sizeof(Params);
  const char* name = "sharing client";
  char* holder = nullptr;
  size_t holder_bytes = 0;
  uint64_t allow_others = 1;
};

template <class... Arguments>
using Function = CUptiResult (*)(Arguments...);

struct Cupti {
  Function<CUpti_SubscriberHandle*, CUpti_CallbackFunc, void*, Params*> subscribe;
  Function<CUpti_SubscriberHandle> unsubscribe;
  Function<CUpti_SubscriberHandle, void*, void*> set_callbacks;
  Function<CUpti_SubscriberHandle, int, void*> enable;
  Function<CUpti_SubscriberHandle, int, void*> disable;
  Function<CUpti_SubscriberHandle, uint8_t*, size_t, CUpti_Activity**> next;
  Function<uint32_t> flush;
};
Cupti cupti;
CUpti_SubscriberHandle subscriber = nullptr;
std::atomic<long> kernels = 0;
std::atomic<long> without_times = 0;

constexpr int kKinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_RUNTIME};

template <class Pointer>
void Find(void* library, const char* name, Pointer* function) {
  *function = reinterpret_cast<Pointer>(dlsym(library, name));
  if (*function == nullptr) std::exit(9);
}

void FindCupti() {
  void* library = dlopen("libcupti.so.13", RTLD_NOW);
  if (library == nullptr) std::exit(8);
  Find(library, "cuptiSubscribe_v2", &cupti.subscribe);
  Find(library, "cuptiUnsubscribe", &cupti.unsubscribe);
  Find(library, "cuptiActivityRegisterCallbacks_v2", &cupti.set_callbacks);
  Find(library, "cuptiActivityEnable_v2", &cupti.enable);
  Find(library, "cuptiActivityDisable_v2", &cupti.disable);
  Find(library, "cuptiActivityGetNextRecord_v2", &cupti.next);
  Find(library, "cuptiActivityFlushAll", &cupti.flush);
}

void Request(uint8_t** data, size_t* size, size_t* most_records, void*) {
  *size = kBufferBytes;
  *most_records = 0;
  *data = static_cast<uint8_t*>(std::aligned_alloc(8, kBufferBytes));
}

void Complete(uint8_t* data, size_t, size_t valid, void*) {
  CUpti_Activity* record = nullptr;
  while (cupti.next(subscriber, data, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) continue;
    ++kernels;
    if (reinterpret_cast<CUpti_ActivityKernel10*>(record)->end == 0) ++without_times;
  }
  std::free(data);
}

void NoCall(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}

// The first code that was refused.
int Begin() {
  Params params;
  int result = cupti.subscribe(&subscriber, NoCall, nullptr, &params);
  if (result != CUPTI_SUCCESS) return result;
  result = cupti.set_callbacks(subscriber, reinterpret_cast<void*>(Request),
                               reinterpret_cast<void*>(Complete));
  for (const int kind : kKinds) {
    if (result == CUPTI_SUCCESS) result = cupti.enable(subscriber, kind, nullptr);
  }
  return result;
}

void End() {
  for (const int kind : kKinds) cupti.disable(subscriber, kind, nullptr);
  cupti.flush(0);
  cupti.unsubscribe(subscriber);
}

}  // namespace

int SharingClient(const std::function<void()>& launch, const std::string& how) {
  FindCupti();
  if (how == "stays") {  // this runs when the collector has ended
    std::atexit([] { std::printf("%ld without times\n", without_times.load()); });
  }
  int refused = 0;
  for (int round = 0; round < 2 && refused == 0; ++round) {
    if (how != "first") launch();
    refused = Begin();
    launch();
    if (how == "stays") return 0;
    if (refused == 0) End();
    if (how == "first") launch();
  }
  std::printf("sharing client: %ld kernels, refused: %d\n", kernels.load(), refused);
  return 0;
}

}  // namespace cuda_program
