// libcupti, from 13.3 on: the functions of activity records that name the subscriber. The headers of
// CUDA 13.0 lack them.
#include <cstring>

#include "tests/virtual_gpu/cupti/api.h"
#include "tests/virtual_gpu/cupti/requests.h"

using namespace vgpu;

namespace {

// CUpti_ActivityAttribute
constexpr int kSharingState = 12;
constexpr int kAllSyncRecords = 16;
constexpr int kThreadIdType = 21;
constexpr int kTimestampCallback = 22;

constexpr uint32_t kClockOfEach = 13040;

CUptiResult SetClock(Cupti& client, const void* value) {
  // 13.3 has one clock for all.
  if (EmulatedToolkit() < kClockOfEach && !TheClients().Alone()) return CUPTI_ERROR_NOT_COMPATIBLE;
  for (const auto& kind : client.kinds) {
    if (kind) return CUPTI_ERROR_INVALID_OPERATION;
  }
  CUpti_TimestampCallbackFunc callback = nullptr;
  memcpy(&callback, value, sizeof callback);
  client.clock.Register(callback);
  return CUPTI_SUCCESS;
}

}  // namespace

#define VGPU_NEED_CLIENT(function, name)           \
  VGPU_NEED_DRIVER(function);                      \
  VGPU_CLAIM(Scope::kSubscriber);                  \
  Cupti* const name = TheClients().Of(subscriber); \
  if (name == nullptr) return CUPTI_ERROR_INVALID_PARAMETER

extern "C" {

CUptiResult cuptiActivityEnable_v2(CUpti_SubscriberHandle subscriber, CUpti_ActivityKind kind,
                                   void*) {
  VGPU_NEED_CLIENT(cuptiActivityEnable_v2, client);
  // Others may want their nodes.
  if (kind == CUPTI_ACTIVITY_KIND_GRAPH_TRACE) return CUPTI_ERROR_NOT_COMPATIBLE;
  return EnableKind(*client, kind);
}

CUptiResult cuptiActivityDisable_v2(CUpti_SubscriberHandle subscriber, CUpti_ActivityKind kind,
                                    void*) {
  VGPU_NEED_CLIENT(cuptiActivityDisable_v2, client);
  return DisableKind(*client, kind);
}

CUptiResult cuptiActivityRegisterCallbacks_v2(CUpti_SubscriberHandle subscriber,
                                              ScopedRequest request, ScopedComplete complete) {
  VGPU_NEED_POINTER(request);
  VGPU_NEED_POINTER(complete);
  VGPU_NEED_CLIENT(cuptiActivityRegisterCallbacks_v2, client);
  client->buffers.Register(request, complete);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnableRuntimeApi_v2(CUpti_SubscriberHandle subscriber,
                                             CUpti_CallbackId cbid, uint8_t enable) {
  VGPU_NEED_CLIENT(cuptiActivityEnableRuntimeApi_v2, client);
  return EnableSingle(*client, ApiDomain::kRuntime, cbid, enable);
}

CUptiResult cuptiActivityEnableDriverApi_v2(CUpti_SubscriberHandle subscriber,
                                            CUpti_CallbackId cbid, uint8_t enable) {
  VGPU_NEED_CLIENT(cuptiActivityEnableDriverApi_v2, client);
  return EnableSingle(*client, ApiDomain::kDriver, cbid, enable);
}

CUptiResult cuptiActivitySetAttribute_v2(CUpti_SubscriberHandle subscriber,
                                         CUpti_ActivityAttribute id, size_t* bytes, void* value) {
  VGPU_NEED_POINTER(bytes);
  VGPU_NEED_POINTER(value);
  VGPU_NEED_CLIENT(cuptiActivitySetAttribute_v2, client);
  switch (static_cast<int>(id)) {
    case kTimestampCallback:
      return SetClock(*client, value);
    case kThreadIdType:
      client->system_thread_ids =
          *static_cast<const int*>(value) == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM;
      return CUPTI_SUCCESS;
    case kAllSyncRecords:
      return CUPTI_SUCCESS;
    default:
      return SetAttribute(*client, id, bytes, value);
  }
}

// Who shares may be asked before anybody subscribes.
CUptiResult cuptiActivityGetAttribute_v2(CUpti_SubscriberHandle subscriber,
                                         CUpti_ActivityAttribute id, size_t* bytes, void* value) {
  VGPU_NEED_POINTER(bytes);
  VGPU_NEED_POINTER(value);
  if (static_cast<int>(id) == kSharingState) {
    const Sharing sharing = TheClients().sharing();
    memcpy(value, &sharing, sizeof sharing);
    return CUPTI_SUCCESS;
  }
  VGPU_NEED_CLIENT(cuptiActivityGetAttribute_v2, client);
  return GetAttribute(*client, id, bytes, value);
}

CUptiResult cuptiActivityGetNumDroppedRecords_v2(CUpti_SubscriberHandle subscriber, CUcontext,
                                                 uint32_t, size_t* dropped) {
  VGPU_NEED_POINTER(dropped);
  VGPU_NEED_CLIENT(cuptiActivityGetNumDroppedRecords_v2, client);
  *dropped = client->buffers.TakeDropped();
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord_v2(CUpti_SubscriberHandle subscriber, uint8_t* buffer,
                                          size_t valid_bytes, CUpti_Activity** record) {
  VGPU_NEED_CLIENT(cuptiActivityGetNextRecord_v2, client);
  return client == nullptr ? CUPTI_ERROR_INVALID_PARAMETER
                           : NextRecord(buffer, valid_bytes, record);
}

CUptiResult cuptiGetTimestamp_v2(CUpti_SubscriberHandle subscriber, uint64_t* timestamp) {
  VGPU_NEED_POINTER(timestamp);
  VGPU_NEED_CLIENT(cuptiGetTimestamp_v2, client);
  *timestamp = client->clock.Now();
  return CUPTI_SUCCESS;
}

// Without a subscriber: what is on for any of them.
CUptiResult cuptiActivityGetEnabledKinds(CUpti_SubscriberHandle subscriber,
                                         CUpti_ActivityKind* kinds, uint32_t* bytes,
                                         uint32_t* count) {
  VGPU_NEED_DRIVER(cuptiActivityGetEnabledKinds);
  VGPU_NEED_POINTER(count);
  if (EmulatedToolkit() < 13020) return CUPTI_ERROR_API_NOT_IMPLEMENTED;
  const Cupti* client = subscriber == nullptr ? nullptr : TheClients().Of(subscriber);
  if (subscriber != nullptr && client == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *count = 0;
  for (uint32_t i = 0; i < kMaxKind; ++i) {
    const auto kind = static_cast<CUpti_ActivityKind>(i);
    if (client == nullptr ? !TheClients().AnyHasOn(kind) : !client->KindOn(kind)) continue;
    if (kinds != nullptr && (*count + 1) * sizeof *kinds <= *bytes) kinds[*count] = kind;
    ++*count;
  }
  return CUPTI_SUCCESS;
}

}  // extern "C"
