#include "collectors/cupti/api.h"

#include <dlfcn.h>
#include <stddef.h>

#include "collectors/core/old_glibc.h"
#include "collectors/cupti/records.h"
#include "collectors/cupti/result_names.h"

namespace trainprof::collectors {
namespace {

template <class Function>
bool Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

}  // namespace

const char* FindFunctions(void* library, CuptiApi* api) {
#define TRAINPROF_NEED(name, member) \
  if (!Find(library, name, &api->member)) return name
  TRAINPROF_NEED("cuptiGetVersion", get_version);
  TRAINPROF_NEED("cuptiGetTimestamp", get_timestamp);
  TRAINPROF_NEED("cuptiGetResultString", get_result_string);
  TRAINPROF_NEED("cuptiSubscribe", subscribe);
  TRAINPROF_NEED("cuptiUnsubscribe", unsubscribe);
  TRAINPROF_NEED("cuptiEnableCallback", enable_callback);
  TRAINPROF_NEED("cuptiGetCallbackName", get_callback_name);
  TRAINPROF_NEED("cuptiActivityRegisterCallbacks", register_callbacks);
  TRAINPROF_NEED("cuptiActivityEnable", enable);
  TRAINPROF_NEED("cuptiActivityDisable", disable);
  TRAINPROF_NEED("cuptiActivityFlushAll", flush_all);
  TRAINPROF_NEED("cuptiActivityGetNumDroppedRecords", get_dropped);
  TRAINPROF_NEED("cuptiActivityGetNextRecord", get_next_record);
  TRAINPROF_NEED("cuptiActivitySetAttribute", set_attribute);
#undef TRAINPROF_NEED
  Find(library, "cuptiSetThreadIdType", &api->set_thread_id_type);
  Find(library, "cuptiActivityRegisterTimestampCallback", &api->register_timestamp);
  Find(library, "cuptiSubscribe_v2", &api->subscribe_v2);
  Find(library, "cuptiActivityEnableRuntimeApi", &api->enable_runtime_api);
  Find(library, "cuptiActivityEnableDriverApi", &api->enable_driver_api);
  Find(library, "cuptiActivityEnableAllSyncRecords", &api->enable_all_sync_records);
  Find(library, "cuptiActivityGetAttribute", &api->get_attribute);
  Find(library, "cuptiActivityGetEnabledKinds", &api->get_enabled_kinds);
  Find(library, "cuptiActivityGetStructSize", &api->get_struct_size);
  ScopedApi& scoped = api->scoped;
  api->has_scoped =
      Find(library, "cuptiActivityEnable_v2", &scoped.enable) &&
      Find(library, "cuptiActivityDisable_v2", &scoped.disable) &&
      Find(library, "cuptiActivityRegisterCallbacks_v2", &scoped.register_callbacks) &&
      Find(library, "cuptiActivityEnableRuntimeApi_v2", &scoped.enable_runtime_api) &&
      Find(library, "cuptiActivityEnableDriverApi_v2", &scoped.enable_driver_api) &&
      Find(library, "cuptiActivitySetAttribute_v2", &scoped.set_attribute) &&
      Find(library, "cuptiActivityGetAttribute_v2", &scoped.get_attribute) &&
      Find(library, "cuptiActivityGetNumDroppedRecords_v2", &scoped.get_dropped) &&
      Find(library, "cuptiGetTimestamp_v2", &scoped.get_timestamp);
  return nullptr;
}

bool MeasureRecords(const CuptiApi& api, uint32_t* record_bytes) {
  constexpr size_t kBytes = 2048;  // several times the largest record
  record_bytes[0] = 0;
  for (uint32_t kind = 1; kind < kActivityKinds; ++kind) {
    size_t size = 0;
    const auto activity = static_cast<CUpti_ActivityKind>(kind);
    const bool told = api.get_struct_size != nullptr &&
                      api.get_struct_size(activity, 0, &size) == CUPTI_SUCCESS && size <= kBytes;
    record_bytes[kind] = told ? static_cast<uint32_t>(size) : 0;
  }
  if (record_bytes[kKernelActivity] != 0) return true;
  alignas(8) uint32_t buffer[kBytes / 4];
  auto* bytes = reinterpret_cast<uint8_t*>(buffer);
  for (uint32_t kind = 1; kind < kActivityKinds; ++kind) {
    for (uint32_t& word : buffer) word = kind;
    CUpti_Activity* record = nullptr;
    if (api.get_next_record(bytes, kBytes, &record) != CUPTI_SUCCESS) continue;
    const auto* first = reinterpret_cast<const uint8_t*>(record);
    if (first != bytes || api.get_next_record(bytes, kBytes, &record) != CUPTI_SUCCESS) continue;
    const auto* second = reinterpret_cast<const uint8_t*>(record);
    if (second > first) record_bytes[kind] = static_cast<uint32_t>(second - first);
  }
  return record_bytes[kKernelActivity] != 0;
}

CUptiResult SubscribeTo(const CuptiApi& api, CUpti_SubscriberHandle* subscriber,
                        CUpti_CallbackFunc callback, void* context, bool shares,
                        char (&holder)[kHolderBytes], bool* unnamed) {
  holder[0] = 0;
  if (api.subscribe_v2 != nullptr) {
    // The size that a version knows; those in between know either.
    constexpr size_t kSizes[] = {sizeof(SubscriberParams),
                                 offsetof(SubscriberParams, allow_others)};
    for (const size_t bytes : kSizes) {
      SubscriberParams params = {bytes, "trainprof", holder, sizeof holder, shares ? 1U : 0U};
      const CUptiResult result = api.subscribe_v2(subscriber, callback, context, &params);
      *unnamed =
          result == CUPTI_ERROR_API_NOT_IMPLEMENTED || result == CUPTI_ERROR_INVALID_PARAMETER;
      if (!*unnamed || shares) return result;
    }
  }
  return api.subscribe(subscriber, callback, context);
}

const char* ResultName(const CuptiApi& api, CUptiResult result) {
  const char* name = nullptr;
  const bool told = api.get_result_string(result, &name) == CUPTI_SUCCESS && name != nullptr;
  return told ? name : KnownResultName(static_cast<int>(result));
}

}  // namespace trainprof::collectors
