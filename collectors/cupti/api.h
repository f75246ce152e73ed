// CUPTI's functions, found in the library at run time: one binary serves CUPTI 11 to 13.
#pragma once

#include <cuda.h>
#include <cupti.h>

#include <cstdint>

#include "collectors/cupti/versions.h"

namespace trainprof::collectors {

// CUpti_SubscriberParams, which older headers lack; until 13.2 without its last member.
struct SubscriberParams {
  size_t struct_bytes;
  const char* name;
  char* holder;  // receives the name of who is subscribed already
  size_t holder_bytes;
  uint64_t allow_others;  // a byte, and padding
};

// CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN is 64.
inline constexpr size_t kHolderBytes = 128;

// From 13.3 on: the functions that name a subscriber, which older headers lack.
struct ScopedApi {
  using Request = void (*)(uint8_t**, size_t*, size_t*, void*);
  using Complete = void (*)(uint8_t*, size_t, size_t, void*);
  CUptiResult (*enable)(CUpti_SubscriberHandle, CUpti_ActivityKind, void* config);
  CUptiResult (*disable)(CUpti_SubscriberHandle, CUpti_ActivityKind, void* config);
  CUptiResult (*register_callbacks)(CUpti_SubscriberHandle, Request, Complete);
  CUptiResult (*enable_runtime_api)(CUpti_SubscriberHandle, CUpti_CallbackId, uint8_t);
  CUptiResult (*enable_driver_api)(CUpti_SubscriberHandle, CUpti_CallbackId, uint8_t);
  CUptiResult (*set_attribute)(CUpti_SubscriberHandle, CUpti_ActivityAttribute, size_t*, void*);
  CUptiResult (*get_attribute)(CUpti_SubscriberHandle, CUpti_ActivityAttribute, size_t*, void*);
  CUptiResult (*get_dropped)(CUpti_SubscriberHandle, CUcontext, uint32_t stream, size_t*);
  CUptiResult (*get_timestamp)(CUpti_SubscriberHandle, uint64_t*);
};

struct CuptiApi {
  decltype(&cuptiGetVersion) get_version;
  decltype(&cuptiGetTimestamp) get_timestamp;
  decltype(&cuptiGetResultString) get_result_string;
  decltype(&cuptiSubscribe) subscribe;
  decltype(&cuptiUnsubscribe) unsubscribe;
  decltype(&cuptiEnableCallback) enable_callback;
  decltype(&cuptiGetCallbackName) get_callback_name;
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks;
  decltype(&cuptiActivityEnable) enable;
  decltype(&cuptiActivityDisable) disable;
  decltype(&cuptiActivityFlushAll) flush_all;
  decltype(&cuptiActivityGetNumDroppedRecords) get_dropped;
  decltype(&cuptiActivityGetNextRecord) get_next_record;
  decltype(&cuptiActivitySetAttribute) set_attribute;
  // nullptr in versions that lack them:
  decltype(&cuptiActivityGetAttribute) get_attribute;
  CUptiResult (*set_thread_id_type)(int type);
  CUptiResult (*register_timestamp)(uint64_t (*now)());
  CUptiResult (*subscribe_v2)(CUpti_SubscriberHandle*, CUpti_CallbackFunc, void*,
                              SubscriberParams*);
  CUptiResult (*enable_runtime_api)(CUpti_CallbackId, uint8_t);  // from 12.5 on
  CUptiResult (*enable_driver_api)(CUpti_CallbackId, uint8_t);
  CUptiResult (*enable_all_sync_records)(uint8_t);  // from 12.8 on
  // From 13.2 on: of all clients' activity kinds those that are on, where no subscriber is named.
  CUptiResult (*get_enabled_kinds)(CUpti_SubscriberHandle, CUpti_ActivityKind* kinds,
                                   uint32_t* room, uint32_t* count);
  // From 13.3 on; version 0: this library's own.
  CUptiResult (*get_struct_size)(CUpti_ActivityKind, uint32_t version, size_t*);
  ScopedApi scoped;
  bool has_scoped;  // all of them

  uint32_t version;  // as cuptiGetVersion gives it
};

// Finds the functions in a library that dlopen gave, and calls none. The name of the first one that
// must be there and is not, else nullptr.
const char* FindFunctions(void* library, CuptiApi* api);

// The size of each kind's records, 0 for kinds that CUPTI does not know: from 13.3 on it can be asked,
// and is not to be asked otherwise (client.h). Before, from cuptiActivityGetNextRecord, by records made
// up so that every size leads to the same kind again. False when it does not know kernels: then no
// buffer can be read.
bool MeasureRecords(const CuptiApi& api, uint32_t* record_bytes);

// Subscribes, with our name where CUPTI takes one, and beside others if so told; then `holder` gets the name of who is subscribed
// already. *unnamed: it exports the function that takes a name, and refuses it.
CUptiResult SubscribeTo(const CuptiApi& api, CUpti_SubscriberHandle* subscriber,
                        CUpti_CallbackFunc callback, void* context, bool shares,
                        char (&holder)[kHolderBytes], bool* unnamed);

// "CUPTI_ERROR_NOT_INITIALIZED", also where CUPTI itself does not answer any more.
const char* ResultName(const CuptiApi& api, CUptiResult result);

}  // namespace trainprof::collectors
