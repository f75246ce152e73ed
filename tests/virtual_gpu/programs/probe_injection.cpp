// A library for CUDA_INJECTION64_PATH: records kernels through whatever libcupti.so.13 the loader
// finds and says at exit how many there were.
#include <cuda.h>
#include <cupti.h>
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace {

void* library;
std::atomic<long> kernels;
std::atomic<size_t> kernel_bytes;  // from a kernel's record to the next
decltype(&cuptiActivityGetNextRecord) get_next_record;
decltype(&cuptiActivityFlushAll) flush_all;

template <class Function>
Function* Find(const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

void CUPTIAPI Request(uint8_t** data, size_t* size, size_t* max_records) {
  *size = 1 << 16;
  *data = static_cast<uint8_t*>(aligned_alloc(8, *size));
  *max_records = 0;
}

void CUPTIAPI Complete(CUcontext, uint32_t, uint8_t* data, size_t, size_t valid) {
  CUpti_Activity* record = nullptr;
  const CUpti_Activity* kernel = nullptr;
  while (get_next_record(data, valid, &record) == CUPTI_SUCCESS) {
    if (kernel != nullptr) {
      kernel_bytes = static_cast<size_t>(reinterpret_cast<char*>(record) -
                                         reinterpret_cast<const char*>(kernel));
    }
    kernel = record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL ? record : nullptr;
    if (kernel != nullptr) ++kernels;
  }
  free(data);
}

void CUPTIAPI Ignore(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}

void Finish() {
  flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  printf("recorded %ld of %zu bytes\n", kernels.load(), kernel_bytes.load());
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  library = dlopen("libcupti.so.13", RTLD_NOW);
  if (library == nullptr) return 0;
  uint32_t version = 0;
  Find<decltype(cuptiGetVersion)>("cuptiGetVersion")(&version);
  printf("CUPTI %u\n", version);
  get_next_record = Find<decltype(cuptiActivityGetNextRecord)>("cuptiActivityGetNextRecord");
  flush_all = Find<decltype(cuptiActivityFlushAll)>("cuptiActivityFlushAll");
  char holder[CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN] = "";
  CUpti_SubscriberParams params = {};
  params.structSize = CUpti_SubscriberParams_STRUCT_SIZE;
  params.subscriberName = "probe";
  params.oldSubscriberName = holder;
  params.oldSubscriberSize = sizeof holder;
  CUpti_SubscriberHandle subscriber;
  const CUptiResult subscribed =
      Find<decltype(cuptiSubscribe_v2)>("cuptiSubscribe_v2")(&subscriber, Ignore, nullptr, &params);
  printf("subscribe %d %s\n", subscribed, holder);
  Find<decltype(cuptiActivityRegisterCallbacks)>("cuptiActivityRegisterCallbacks")(Request,
                                                                                   Complete);
  printf("enable %d\n", Find<decltype(cuptiActivityEnable)>("cuptiActivityEnable")(
                            CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  Find<decltype(cuptiActivityEnableRuntimeApi)>("cuptiActivityEnableRuntimeApi")(
      CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, 1);
  atexit(Finish);
  return 1;
}
