// libcupti: subscribing and callbacks.
#include <time.h>

#include <cstdio>
#include <mutex>

#include "tests/virtual_gpu/cupti/api.h"
#include "tests/virtual_gpu/cupti/names.h"
#include "tests/virtual_gpu/model/clock.h"
#include "tests/virtual_gpu/model/faults.h"

using namespace vgpu;

namespace {

std::mutex subscribing;

CUpti_SubscriberHandle Handle() { return reinterpret_cast<CUpti_SubscriberHandle>(&TheCupti()); }

void TellHolder(const CUpti_SubscriberParams* params, const std::string& name) {
  if (params == nullptr || params->oldSubscriberName == nullptr) return;
  snprintf(params->oldSubscriberName, params->oldSubscriberSize, "%s", name.c_str());
}

CUptiResult Subscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback,
                      void* userdata, const CUpti_SubscriberParams* params) {
  VGPU_NEED_POINTER(subscriber);
  const int64_t setup_ms = FaultNumber(Fault::slow_setup, 0);
  if (setup_ms > 0) WaitUntil(NowNs() + setup_ms * 1'000'000);
  if (Has(Fault::subscribe_unknown_error)) return CUPTI_ERROR_UNKNOWN;
  const std::lock_guard guard(subscribing);
  Cupti& cupti = TheCupti();
  if (const std::string* holder = FaultText(Fault::another_subscriber)) {
    TellHolder(params, *holder);
    return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  }
  if (cupti.subscribed) {
    TellHolder(params, cupti.subscriber_name);
    return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  }
  const bool named = params != nullptr && params->subscriberName != nullptr;
  cupti.subscriber_name =
      std::string("CUPTI for ") + (named ? params->subscriberName : "<unknown>");
  cupti.userdata = userdata;
  cupti.callback = callback;
  cupti.subscribed = true;
  cupti.Attach();
  *subscriber = Handle();
  return CUPTI_SUCCESS;
}

// Whether the call may change callbacks: the subscriber is the one that holds the library.
CUptiResult Check(CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain) {
  if (subscriber != Handle() || !TheCupti().subscribed) return CUPTI_ERROR_INVALID_PARAMETER;
  if (domain <= CUPTI_CB_DOMAIN_INVALID || static_cast<size_t>(domain) >= kDomains) {
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  return CUPTI_SUCCESS;
}

}  // namespace

extern "C" {

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback,
                           void* userdata) {
  VGPU_NEED_DRIVER(cuptiSubscribe);
  return Subscribe(subscriber, callback, userdata, nullptr);
}

CUptiResult cuptiSubscribe_v2(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback,
                              void* userdata, CUpti_SubscriberParams* params) {
  VGPU_NEED_DRIVER(cuptiSubscribe_v2);
  // The last member came with 13.2: others than the size that the library knows are refused.
  const size_t size = EmulatedToolkit() >= 13020 ? 40 : 32;
  if (params == nullptr || params->structSize != size) return CUPTI_ERROR_INVALID_PARAMETER;
  return Subscribe(subscriber, callback, userdata, params);
}

CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle subscriber) {
  VGPU_NEED_POINTER(subscriber);
  VGPU_NEED_DRIVER(cuptiUnsubscribe);
  const std::lock_guard guard(subscribing);
  if (subscriber != Handle() || !TheCupti().subscribed) return CUPTI_ERROR_INVALID_PARAMETER;
  for (CallbackIds& ids : TheCupti().called) ids.SetAll(false);
  TheCupti().callback = nullptr;
  TheCupti().subscribed = false;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle subscriber,
                                CUpti_CallbackDomain domain, CUpti_CallbackId cbid) {
  VGPU_NEED_DRIVER(cuptiEnableCallback);
  if (const CUptiResult error = Check(subscriber, domain); error != CUPTI_SUCCESS) return error;
  if (cbid == 0 || cbid >= kMaxCallbackId) return CUPTI_ERROR_INVALID_PARAMETER;
  TheCupti().called[domain].Set(cbid, enable != 0);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle subscriber,
                              CUpti_CallbackDomain domain) {
  VGPU_NEED_DRIVER(cuptiEnableDomain);
  if (const CUptiResult error = Check(subscriber, domain); error != CUPTI_SUCCESS) return error;
  TheCupti().called[domain].SetAll(enable != 0);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableAllDomains(uint32_t enable, CUpti_SubscriberHandle subscriber) {
  VGPU_NEED_DRIVER(cuptiEnableAllDomains);
  if (const CUptiResult error = Check(subscriber, CUPTI_CB_DOMAIN_RUNTIME_API);
      error != CUPTI_SUCCESS) {
    return error;
  }
  for (CallbackIds& ids : TheCupti().called) ids.SetAll(enable != 0);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetCallbackState(uint32_t* enable, CUpti_SubscriberHandle subscriber,
                                  CUpti_CallbackDomain domain, CUpti_CallbackId cbid) {
  VGPU_NEED_DRIVER(cuptiGetCallbackState);
  VGPU_NEED_POINTER(enable);
  if (const CUptiResult error = Check(subscriber, domain); error != CUPTI_SUCCESS) return error;
  *enable = TheCupti().called[domain].Has(cbid);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiSupportedDomains(size_t* count, CUpti_DomainTable* table) {
  VGPU_NEED_DRIVER(cuptiSupportedDomains);
  VGPU_NEED_POINTER(count);
  VGPU_NEED_POINTER(table);
  static CUpti_CallbackDomain domains[] = {CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_CB_DOMAIN_RUNTIME_API,
                                           CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CB_DOMAIN_SYNCHRONIZE};
  *count = sizeof domains / sizeof *domains;
  *table = domains;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t cbid, const char** name) {
  VGPU_NEED_POINTER(name);
  *name = CallbackName(domain, cbid);
  return *name == nullptr ? CUPTI_ERROR_INVALID_PARAMETER : CUPTI_SUCCESS;
}

}  // extern "C"
