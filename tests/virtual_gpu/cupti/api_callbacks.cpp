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

void TellHolder(const CUpti_SubscriberParams* params, const std::string& name) {
  if (params == nullptr || params->oldSubscriberName == nullptr) return;
  snprintf(params->oldSubscriberName, params->oldSubscriberSize, "%s", name.c_str());
}

constexpr size_t kAllowsOthers =
    32;  // where CUpti_SubscriberParams has it, which older headers lack

CUptiResult Subscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback,
                      void* userdata, const CUpti_SubscriberParams* params, bool shares) {
  VGPU_NEED_POINTER(subscriber);
  const int64_t setup_ms = FaultNumber(Fault::slow_setup, 0);
  if (setup_ms > 0) WaitUntil(NowNs() + setup_ms * 1'000'000);
  if (Has(Fault::subscribe_unknown_error)) return CUPTI_ERROR_UNKNOWN;
  if (const std::string* holder = FaultText(Fault::another_subscriber)) {
    TellHolder(params, *holder);
    return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  }
  const bool named = params != nullptr && params->subscriberName != nullptr;
  std::string holder;
  Cupti* client = TheClients().Subscribe(
      std::string("CUPTI for ") + (named ? params->subscriberName : "<unknown>"), shares, &holder);
  if (client == nullptr || (shares && !holder.empty())) TellHolder(params, holder);
  if (client == nullptr) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  client->userdata = userdata;
  client->callback = callback;
  Cupti::Attach();
  *subscriber = Clients::HandleOf(*client);
  return CUPTI_SUCCESS;
}

// Whether the call may change callbacks.
CUptiResult Check(CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain) {
  if (TheClients().Of(subscriber) == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
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
  return Subscribe(subscriber, callback, userdata, nullptr, false);
}

CUptiResult cuptiSubscribe_v2(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback,
                              void* userdata, CUpti_SubscriberParams* params) {
  VGPU_NEED_DRIVER(cuptiSubscribe_v2);
  // The last member came with 13.2: others than the size that the library knows are refused.
  const size_t size = EmulatedToolkit() >= 13020 ? 40 : 32;
  if (params == nullptr || params->structSize != size) return CUPTI_ERROR_INVALID_PARAMETER;
  uint8_t shares = 0;
  if (EmulatedToolkit() >= 13030) {
    memcpy(&shares, reinterpret_cast<const char*>(params) + kAllowsOthers, sizeof shares);
  }
  return Subscribe(subscriber, callback, userdata, params, shares != 0);
}

CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle subscriber) {
  VGPU_NEED_POINTER(subscriber);
  VGPU_NEED_DRIVER(cuptiUnsubscribe);
  Cupti* client = TheClients().Of(subscriber);
  if (client == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  TheClients().Unsubscribe(*client);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle subscriber,
                                CUpti_CallbackDomain domain, CUpti_CallbackId cbid) {
  VGPU_NEED_DRIVER(cuptiEnableCallback);
  if (const CUptiResult error = Check(subscriber, domain); error != CUPTI_SUCCESS) return error;
  if (cbid == 0 || cbid >= kMaxCallbackId) return CUPTI_ERROR_INVALID_PARAMETER;
  TheClients().Of(subscriber)->called[domain].Set(cbid, enable != 0);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle subscriber,
                              CUpti_CallbackDomain domain) {
  VGPU_NEED_DRIVER(cuptiEnableDomain);
  if (const CUptiResult error = Check(subscriber, domain); error != CUPTI_SUCCESS) return error;
  TheClients().Of(subscriber)->called[domain].SetAll(enable != 0);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableAllDomains(uint32_t enable, CUpti_SubscriberHandle subscriber) {
  VGPU_NEED_DRIVER(cuptiEnableAllDomains);
  if (const CUptiResult error = Check(subscriber, CUPTI_CB_DOMAIN_RUNTIME_API);
      error != CUPTI_SUCCESS) {
    return error;
  }
  for (CallbackIds& ids : TheClients().Of(subscriber)->called) ids.SetAll(enable != 0);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetCallbackState(uint32_t* enable, CUpti_SubscriberHandle subscriber,
                                  CUpti_CallbackDomain domain, CUpti_CallbackId cbid) {
  VGPU_NEED_DRIVER(cuptiGetCallbackState);
  VGPU_NEED_POINTER(enable);
  if (const CUptiResult error = Check(subscriber, domain); error != CUPTI_SUCCESS) return error;
  *enable = TheClients().Of(subscriber)->called[domain].Has(cbid);
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
