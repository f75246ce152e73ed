#include "collectors/cupti/client.h"

#include <stdlib.h>
#include <string.h>

#include <atomic>

#include "collectors/core/system.h"
#include "collectors/cupti/library.h"

namespace trainprof::collectors {
namespace {

constexpr int kSharingVersion = 13030;  // of CUPTI, and of the driver

// CUpti_ActivityAttribute from 13.3 on
constexpr int kThreadIdTypeAttribute = 21;
constexpr int kClockAttribute = 22;

constinit std::atomic<CUpti_BuffersCallbackRequestFunc> g_request{nullptr};
constinit std::atomic<CUpti_BuffersCallbackCompleteFunc> g_complete{nullptr};

void Request(uint8_t** buffer, size_t* bytes, size_t* most_records, void*) {
  g_request.load()(buffer, bytes, most_records);
}

void Complete(uint8_t* buffer, size_t bytes, size_t valid_bytes, void*) {
  g_complete.load()(nullptr, 0, buffer, bytes, valid_bytes);
}

}  // namespace

CUptiResult CuptiClient::Enable(CUpti_ActivityKind kind) const {
  return shares ? api->scoped.enable(subscriber, kind, nullptr) : api->enable(kind);
}

CUptiResult CuptiClient::Disable(CUpti_ActivityKind kind) const {
  return shares ? api->scoped.disable(subscriber, kind, nullptr) : api->disable(kind);
}

CUptiResult CuptiClient::EnableRuntimeApi(CUpti_CallbackId cbid, bool on) const {
  const uint8_t enable = on ? 1 : 0;
  return shares ? api->scoped.enable_runtime_api(subscriber, cbid, enable)
                : api->enable_runtime_api(cbid, enable);
}

CUptiResult CuptiClient::EnableDriverApi(CUpti_CallbackId cbid, bool on) const {
  const uint8_t enable = on ? 1 : 0;
  return shares ? api->scoped.enable_driver_api(subscriber, cbid, enable)
                : api->enable_driver_api(cbid, enable);
}

CUptiResult CuptiClient::SetAttribute(int attribute, size_t* bytes, void* value) const {
  const auto id = static_cast<CUpti_ActivityAttribute>(attribute);
  return shares ? api->scoped.set_attribute(subscriber, id, bytes, value)
                : api->set_attribute(id, bytes, value);
}

CUptiResult CuptiClient::GetAttribute(int attribute, size_t* bytes, void* value) const {
  const auto id = static_cast<CUpti_ActivityAttribute>(attribute);
  if (shares) return api->scoped.get_attribute(subscriber, id, bytes, value);
  if (api->get_attribute == nullptr) return CUPTI_ERROR_API_NOT_IMPLEMENTED;
  return api->get_attribute(id, bytes, value);
}

CUptiResult CuptiClient::GetDropped(size_t* dropped) const {
  return shares ? api->scoped.get_dropped(subscriber, nullptr, 0, dropped)
                : api->get_dropped(nullptr, 0, dropped);
}

CUptiResult CuptiClient::GetTimestamp(uint64_t* now) const {
  return shares ? api->scoped.get_timestamp(subscriber, now) : api->get_timestamp(now);
}

CUptiResult CuptiClient::SetClock(uint64_t (*now)()) const {
  if (shares) {
    size_t bytes = sizeof now;
    return SetAttribute(kClockAttribute, &bytes, &now);
  }
  if (api->register_timestamp == nullptr) return CUPTI_ERROR_API_NOT_IMPLEMENTED;
  return api->register_timestamp(now);
}

CUptiResult CuptiClient::SetThreadIdType(int type) const {
  if (shares) {
    size_t bytes = sizeof type;
    return SetAttribute(kThreadIdTypeAttribute, &bytes, &type);
  }
  return api->set_thread_id_type == nullptr ? CUPTI_SUCCESS : api->set_thread_id_type(type);
}

CUptiResult CuptiClient::SetBuffers(const BufferCallbacks& callbacks) const {
  if (!shares) return api->register_callbacks(callbacks.request, callbacks.complete);
  g_request.store(callbacks.request);
  g_complete.store(callbacks.complete);
  return api->scoped.register_callbacks(subscriber, Request, Complete);
}

bool CuptiClient::HasSingleCalls() const {
  return shares || (api->enable_runtime_api != nullptr && api->enable_driver_api != nullptr);
}

bool CuptiClient::OthersRecord(const CUpti_ActivityKind* ours, size_t count) const {
  constexpr uint32_t kMost = 128;
  CUpti_ActivityKind kinds[kMost];
  uint32_t bytes = sizeof kinds;
  uint32_t found = 0;
  if (api->get_enabled_kinds == nullptr ||
      api->get_enabled_kinds(nullptr, kinds, &bytes, &found) != CUPTI_SUCCESS) {
    return true;
  }
  for (uint32_t i = 0; i < found && i < kMost; ++i) {
    bool is_ours = false;
    for (size_t k = 0; k < count; ++k) is_ours = is_ours || kinds[i] == ours[k];
    if (!is_ours) return true;
  }
  return false;
}

bool CanShare(const CuptiLibrary& library) {
  return library.api.has_scoped && library.cuda_version >= kSharingVersion &&
         library.driver_version >= kSharingVersion;
}

bool PrefersToShare() {
  const char* scope = secure_getenv("TRAINPROF_CUPTI_SCOPE");
  if (scope != nullptr && *scope != 0) return strcmp(scope, "subscriber") == 0;
  return !IsMapped("/libtorch_cpu.so");  // which Kineto is linked into
}

}  // namespace trainprof::collectors
