// libcupti: activity records.
#include <time.h>

#include <cstring>

#include "tests/virtual_gpu/cupti/api.h"
#include "tests/virtual_gpu/cupti/names.h"
#include "tests/virtual_gpu/cupti/requests.h"
#include "tests/virtual_gpu/model/clock.h"
#include "tests/virtual_gpu/model/faults.h"
#include "tests/virtual_gpu/model/session.h"

using namespace vgpu;

namespace {

// Selecting single API functions came with 12.5.
constexpr uint32_t kSingleApis = 12050;

// What exists already is told when its kind is enabled.
void PutExisting(Cupti& cupti, CUpti_ActivityKind kind) {
  if (kind == CUPTI_ACTIVITY_KIND_DEVICE) {
    for (const auto& device : TheMachine().devices) cupti.PutDevice(*device);
  }
  for (uint32_t uid = 1;; ++uid) {
    const Context* context = FindContext(uid);
    if (context == nullptr) return;
    if (cupti.RecordsDevice()) cupti.device_buffers.PreAllocate(*context);
    if (kind == CUPTI_ACTIVITY_KIND_CONTEXT) cupti.PutContext(*context);
    if (kind == CUPTI_ACTIVITY_KIND_STREAM) cupti.PutStream(*context->null_stream, 0);
  }
}

constexpr int kRuntime = static_cast<int>(ApiDomain::kRuntime);
constexpr int kDriver = static_cast<int>(ApiDomain::kDriver);

// What a real GPU of today answers: the counters of the old profiler and what needs more than a
// kind.
CUptiResult RefusalOfKind(CUpti_ActivityKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_EVENT:
    case CUPTI_ACTIVITY_KIND_METRIC:
    case CUPTI_ACTIVITY_KIND_SOURCE_LOCATOR:
    case CUPTI_ACTIVITY_KIND_GLOBAL_ACCESS:
    case CUPTI_ACTIVITY_KIND_BRANCH:
    case CUPTI_ACTIVITY_KIND_EVENT_INSTANCE:
    case CUPTI_ACTIVITY_KIND_METRIC_INSTANCE:
    case CUPTI_ACTIVITY_KIND_INSTRUCTION_EXECUTION:
    case CUPTI_ACTIVITY_KIND_SHARED_ACCESS:
    case CUPTI_ACTIVITY_KIND_PC_SAMPLING:
    case CUPTI_ACTIVITY_KIND_PC_SAMPLING_RECORD_INFO:
    case CUPTI_ACTIVITY_KIND_INSTRUCTION_CORRELATION:
    case CUPTI_ACTIVITY_KIND_INSTANTANEOUS_EVENT:
    case CUPTI_ACTIVITY_KIND_INSTANTANEOUS_EVENT_INSTANCE:
    case CUPTI_ACTIVITY_KIND_INSTANTANEOUS_METRIC:
    case CUPTI_ACTIVITY_KIND_INSTANTANEOUS_METRIC_INSTANCE:
      return CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED;
    case CUPTI_ACTIVITY_KIND_CDP_KERNEL:
    case CUPTI_ACTIVITY_KIND_ENVIRONMENT:
    case CUPTI_ACTIVITY_KIND_DEVICE_ATTRIBUTE:
      return CUPTI_ERROR_NOT_COMPATIBLE;
    case CUPTI_ACTIVITY_KIND_MODULE:
    case CUPTI_ACTIVITY_KIND_DEVICE_GRAPH_TRACE:
      return CUPTI_ERROR_INVALID_KIND;
    default:
      if (RecordBytes(kind) != 0) return CUPTI_SUCCESS;
      return kind < kFirstNewerKind ? CUPTI_ERROR_NOT_COMPATIBLE : CUPTI_ERROR_INVALID_KIND;
  }
}

bool IsGpuKind(CUpti_ActivityKind kind) {
  return kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL || kind == CUPTI_ACTIVITY_KIND_KERNEL ||
         kind == CUPTI_ACTIVITY_KIND_MEMCPY || kind == CUPTI_ACTIVITY_KIND_MEMCPY2 ||
         kind == CUPTI_ACTIVITY_KIND_MEMSET || kind == CUPTI_ACTIVITY_KIND_GRAPH_TRACE;
}

CUptiResult SwitchOn(Cupti& cupti, CUpti_ActivityKind kind) {
  if (const CUptiResult refusal = RefusalOfKind(kind); refusal != CUPTI_SUCCESS) return refusal;
  if (FaultNumber(Fault::enable_fails, -1) == static_cast<int64_t>(kind))
    return CUPTI_ERROR_NOT_SUPPORTED;
  if (IsGpuKind(kind) && Has(Fault::insufficient_privileges)) {
    return CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
  }
  if ((kind == CUPTI_ACTIVITY_KIND_KERNEL && cupti.KindOn(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)) ||
      (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL && cupti.KindOn(CUPTI_ACTIVITY_KIND_KERNEL))) {
    return CUPTI_ERROR_NOT_COMPATIBLE;
  }
  if (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) cupti.buffers.Release();
  const bool was_on = cupti.kinds[kind].exchange(true);
  if (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL && !was_on) ++cupti.kernel_sessions;
  if (kind == CUPTI_ACTIVITY_KIND_OVERHEAD) cupti.buffers.tell_requests = true;
  if (kind == CUPTI_ACTIVITY_KIND_RUNTIME) cupti.recorded[kRuntime].SetKind(true);
  if (kind == CUPTI_ACTIVITY_KIND_DRIVER) cupti.recorded[kDriver].SetKind(true);
  const bool of_calls = kind == CUPTI_ACTIVITY_KIND_RUNTIME || kind == CUPTI_ACTIVITY_KIND_DRIVER;
  if (of_calls && FindContext(1) != nullptr) cupti.ActivateApiRecords();
  cupti.Attach();
  return CUPTI_SUCCESS;
}

void KernelsDisabled(Cupti& cupti) {
  if (Has(Fault::disable_hangs) && cupti.buffers.AnyIncomplete()) {
    cupti.deadlocked = true;
    cupti.WaitIfDeadlocked();
  }
  if (Has(Fault::disable_holds)) cupti.buffers.HoldIncomplete();
}

void TakeFlushTime() {
  Cupti& cupti = TheCupti();
  const std::lock_guard guard(cupti.flush_lock);
  double ms;
  {
    const std::lock_guard machine_guard(TheMachine().lock);
    ms = TheMachine().Draw(Get(Setting::flush_ms).least, Get(Setting::flush_ms).greatest);
  }
  cupti.flushing = true;
  WaitUntil(NowNs() + static_cast<int64_t>(ms * 1e6));
  cupti.flushing = false;
  cupti.flushing.notify_all();
}

// An attribute's value: read or written through the caller's pointer.
struct Attribute {
  CUpti_ActivityAttribute id;
  size_t bytes;
  uint64_t value;
};
Attribute attributes[] = {
    {CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, sizeof(size_t), 3200000},
    {CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT, sizeof(size_t), 250},
    {CUPTI_ACTIVITY_ATTR_PROFILING_SEMAPHORE_POOL_SIZE, sizeof(size_t), 25000},
    {CUPTI_ACTIVITY_ATTR_PROFILING_SEMAPHORE_POOL_LIMIT, sizeof(size_t), 250},
    {CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, sizeof(uint8_t), 0},
    {CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE, sizeof(size_t), 3},
    {CUPTI_ACTIVITY_ATTR_PROFILING_SEMAPHORE_PRE_ALLOCATE_VALUE, sizeof(size_t), 3},
    {CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED, sizeof(uint8_t), 0},
    {CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, sizeof(uint8_t), 1},
};

bool KnowsAttribute(CUpti_ActivityAttribute id) {
  return id != CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER || EmulatedToolkit() >= 12030;
}

Attribute* FindAttribute(CUpti_ActivityAttribute id) {
  for (Attribute& attribute : attributes) {
    if (attribute.id == id) return &attribute;
  }
  return nullptr;
}

}  // namespace

namespace vgpu {

CUptiResult EnableKind(Cupti& cupti, CUpti_ActivityKind kind) {
  const CUptiResult result = SwitchOn(cupti, kind);
  if (result == CUPTI_SUCCESS) PutExisting(cupti, kind);
  return result;
}

CUptiResult DisableKind(Cupti& cupti, CUpti_ActivityKind kind) {
  if (static_cast<size_t>(kind) >= kMaxKind) return CUPTI_SUCCESS;
  cupti.kinds[kind] = false;
  if (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) KernelsDisabled(cupti);
  if (kind == CUPTI_ACTIVITY_KIND_OVERHEAD) cupti.buffers.tell_requests = false;
  if (kind == CUPTI_ACTIVITY_KIND_RUNTIME) cupti.recorded[kRuntime].SetKind(false);
  if (kind == CUPTI_ACTIVITY_KIND_DRIVER) cupti.recorded[kDriver].SetKind(false);
  return CUPTI_SUCCESS;
}

CUptiResult EnableSingle(Cupti& cupti, ApiDomain domain, CUpti_CallbackId cbid, uint8_t enable) {
  if (EmulatedToolkit() < kSingleApis) return CUPTI_ERROR_API_NOT_IMPLEMENTED;
  if (cbid == 0) return CUPTI_SUCCESS;
  const CUpti_CallbackDomain names =
      domain == ApiDomain::kDriver ? CUPTI_CB_DOMAIN_DRIVER_API : CUPTI_CB_DOMAIN_RUNTIME_API;
  if (CallbackName(names, cbid) == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  cupti.recorded[static_cast<int>(domain)].Set(cbid, enable != 0);
  cupti.Attach();
  return CUPTI_SUCCESS;
}

CUptiResult SetAttribute(Cupti& cupti, CUpti_ActivityAttribute id, size_t* bytes, void* value) {
  VGPU_NEED_POINTER(bytes);
  VGPU_NEED_POINTER(value);
  Attribute* attribute = FindAttribute(id);
  if (attribute == nullptr || !KnowsAttribute(id)) return CUPTI_ERROR_INVALID_PARAMETER;
  if (*bytes < attribute->bytes) return CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
  attribute->value = 0;
  memcpy(&attribute->value, value, attribute->bytes);
  Buffers& buffers = cupti.buffers;
  if (id == CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER)
    buffers.zeroed_by_client = attribute->value != 0;
  if (id == CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER)
    buffers.per_thread = attribute->value != 0;
  DeviceBuffers& device_buffers = cupti.device_buffers;
  if (id == CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE) device_buffers.bytes = attribute->value;
  if (id == CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT) device_buffers.limit = attribute->value;
  if (id == CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE)
    device_buffers.ahead = attribute->value;
  if (id == CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED)
    device_buffers.pinned = attribute->value != 0;
  return CUPTI_SUCCESS;
}

CUptiResult GetAttribute(Cupti& cupti, CUpti_ActivityAttribute id, size_t* bytes, void* value) {
  VGPU_NEED_POINTER(bytes);
  VGPU_NEED_POINTER(value);
  const Attribute* attribute = FindAttribute(id);
  if (attribute == nullptr || !KnowsAttribute(id)) return CUPTI_ERROR_INVALID_PARAMETER;
  if (*bytes < attribute->bytes) return CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
  const bool per_thread = cupti.buffers.per_thread;
  const bool asked = id == CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER;
  memcpy(value, asked ? static_cast<const void*>(&per_thread) : &attribute->value,
         attribute->bytes);
  return CUPTI_SUCCESS;
}

CUptiResult NextRecord(uint8_t* buffer, size_t valid_bytes, CUpti_Activity** record) {
  VGPU_NEED_POINTER(buffer);
  VGPU_NEED_POINTER(record);
  uint8_t* next = buffer;
  if (*record != nullptr) {
    const size_t bytes = RecordBytes((*record)->kind);
    if (bytes == 0) return CUPTI_ERROR_INVALID_KIND;
    next = reinterpret_cast<uint8_t*>(*record) + bytes;
  }
  if (next + sizeof(CUpti_ActivityKind) > buffer + valid_bytes)
    return CUPTI_ERROR_MAX_LIMIT_REACHED;
  auto* found = reinterpret_cast<CUpti_Activity*>(next);
  const size_t bytes = RecordBytes(found->kind);
  if (bytes == 0) return CUPTI_ERROR_INVALID_KIND;
  if (next + bytes > buffer + valid_bytes) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = found;
  return CUPTI_SUCCESS;
}

}  // namespace vgpu

extern "C" {

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  VGPU_NEED_PROCESS(cuptiActivityEnable);
  return EnableKind(TheCupti(), kind);
}

CUptiResult cuptiActivityEnableAndDump(CUpti_ActivityKind kind) {
  VGPU_NEED_PROCESS(cuptiActivityEnableAndDump);
  return cuptiActivityEnable(kind);
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  VGPU_NEED_PROCESS(cuptiActivityDisable);
  return DisableKind(TheCupti(), kind);
}

// The virtual library does not tell contexts apart here.
CUptiResult cuptiActivityEnableContext(CUcontext, CUpti_ActivityKind kind) {
  return cuptiActivityEnable(kind);
}
CUptiResult cuptiActivityDisableContext(CUcontext, CUpti_ActivityKind kind) {
  return cuptiActivityDisable(kind);
}

CUptiResult cuptiActivityEnableRuntimeApi(CUpti_CallbackId cbid, uint8_t enable) {
  VGPU_NEED_PROCESS(cuptiActivityEnableRuntimeApi);
  return EnableSingle(TheCupti(), ApiDomain::kRuntime, cbid, enable);
}

CUptiResult cuptiActivityEnableDriverApi(CUpti_CallbackId cbid, uint8_t enable) {
  VGPU_NEED_PROCESS(cuptiActivityEnableDriverApi);
  return EnableSingle(TheCupti(), ApiDomain::kDriver, cbid, enable);
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                           CUpti_BuffersCallbackCompleteFunc complete) {
  VGPU_NEED_POINTER(request);
  VGPU_NEED_POINTER(complete);
  VGPU_CLAIM(Scope::kProcess);
  TheCupti().buffers.Register(request, complete);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc callback) {
  VGPU_NEED_PROCESS(cuptiActivityRegisterTimestampCallback);
  VGPU_NEED_POINTER(callback);
  TheCupti().clock.Register(callback);
  return CUPTI_SUCCESS;
}

// Needs neither a driver nor a device: it also reads what a process left that is gone.
CUptiResult cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid_bytes,
                                       CUpti_Activity** record) {
  VGPU_CLAIM(Scope::kProcess);
  return NextRecord(buffer, valid_bytes, record);
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t* dropped) {
  VGPU_NEED_POINTER(dropped);
  VGPU_CLAIM(Scope::kProcess);
  *dropped = TheCupti().buffers.TakeDropped();
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlushAll(uint32_t flag) {
  VGPU_NEED_DRIVER(cuptiActivityFlushAll);
  if (!TheClients().AnyRegistered()) return CUPTI_ERROR_NOT_INITIALIZED;
  const int64_t hang_s = FaultNumber(Fault::flush_hangs, 0);
  if (hang_s > 0) {
    timespec left = {hang_s, 0};
    while (nanosleep(&left, &left) != 0) {
    }
  }
  if (Get(Setting::flush_ms).greatest > 0) TakeFlushTime();
  TheClients().FlushAll((flag & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) != 0);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlush(CUcontext, uint32_t, uint32_t flag) {
  return cuptiActivityFlushAll(flag);
}

// Full buffers are delivered at once, so a period changes nothing.
CUptiResult cuptiActivityFlushPeriod(uint32_t) {
  VGPU_NEED_DRIVER(cuptiActivityFlushPeriod);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivitySetAttribute(CUpti_ActivityAttribute id, size_t* bytes, void* value) {
  VGPU_NEED_PROCESS(cuptiActivitySetAttribute);
  return SetAttribute(TheCupti(), id, bytes, value);
}

CUptiResult cuptiActivityGetAttribute(CUpti_ActivityAttribute id, size_t* bytes, void* value) {
  VGPU_NEED_PROCESS(cuptiActivityGetAttribute);
  return GetAttribute(TheCupti(), id, bytes, value);
}

CUptiResult cuptiActivityEnableLatencyTimestamps(uint8_t enable) {
  VGPU_NEED_PROCESS(cuptiActivityEnableLatencyTimestamps);
  TheCupti().latency_timestamps = enable != 0;
  return CUPTI_SUCCESS;
}

// Hardware event tracing is for another generation of GPUs.
CUptiResult cuptiActivityEnableHWTrace(uint8_t) {
  VGPU_NEED_PROCESS(cuptiActivityEnableHWTrace);
  return CUPTI_ERROR_NOT_SUPPORTED;
}

// Options that add what the virtual GPU does not have.
CUptiResult cuptiActivityEnableLaunchAttributes(uint8_t) {
  VGPU_NEED_PROCESS(cuptiActivityEnableLaunchAttributes);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnableDeviceGraph(uint8_t) {
  VGPU_NEED_PROCESS(cuptiActivityEnableDeviceGraph);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnableAllocationSource(uint8_t) {
  VGPU_NEED_PROCESS(cuptiActivityEnableAllocationSource);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnableAllSyncRecords(uint8_t) {
  VGPU_NEED_PROCESS(cuptiActivityEnableAllSyncRecords);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnableCudaEventDeviceTimestamps(uint8_t enable) {
  VGPU_NEED_PROCESS(cuptiActivityEnableCudaEventDeviceTimestamps);
  TheCupti().event_timestamps = enable != 0;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                   uint64_t id) {
  VGPU_NEED_PROCESS(cuptiActivityPushExternalCorrelationId);
  PushExternal(kind, id);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                  uint64_t* id) {
  VGPU_NEED_PROCESS(cuptiActivityPopExternalCorrelationId);
  return PopExternal(kind, id) ? CUPTI_SUCCESS : CUPTI_ERROR_QUEUE_EMPTY;
}

CUptiResult cuptiSetThreadIdType(CUpti_ActivityThreadIdType type) {
  VGPU_NEED_PROCESS(cuptiSetThreadIdType);
  TheCupti().system_thread_ids = type == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetThreadIdType(CUpti_ActivityThreadIdType* type) {
  VGPU_NEED_PROCESS(cuptiGetThreadIdType);
  VGPU_NEED_POINTER(type);
  *type = TheCupti().system_thread_ids ? CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM
                                       : CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT;
  return CUPTI_SUCCESS;
}

// Detaches: nothing is recorded or called afterwards, until somebody enables something again.
CUptiResult cuptiFinalize(void) {
  if (!TheClients().Alone()) return CUPTI_SUCCESS;
  Cupti& cupti = TheCupti();
  for (auto& kind : cupti.kinds) kind = false;
  for (CallbackIds& ids : cupti.called) ids.SetAll(false);
  for (ApiSelection& selection : cupti.recorded) selection.Reset();
  cupti.callback = nullptr;
  cupti.subscribed = false;
  return CUPTI_SUCCESS;
}

}  // extern "C"
