#include "tests/virtual_gpu/cupti/cupti.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/virtual_gpu/cupti/clients.h"
#include "tests/virtual_gpu/cupti/names.h"
#include "tests/virtual_gpu/model/clock.h"
#include "tests/virtual_gpu/model/faults.h"
#include "tests/virtual_gpu/model/kernels.h"
#include "tests/virtual_gpu/model/session.h"

namespace vgpu {
namespace {

constexpr uint32_t kTrueGraphCorrelations = 130101;

struct ExternalId {
  CUpti_ExternalCorrelationKind kind;
  uint64_t id;
};
thread_local std::vector<ExternalId> external_ids;

CUpti_CallbackDomain DomainOf(const ApiCall& call) {
  return call.domain == ApiDomain::kDriver ? CUPTI_CB_DOMAIN_DRIVER_API
                                           : CUPTI_CB_DOMAIN_RUNTIME_API;
}

uint32_t ThreadNumber(bool of_system) {
  thread_local const auto system = static_cast<uint32_t>(syscall(SYS_gettid));
  return of_system ? system : static_cast<uint32_t>(pthread_self());
}

uint32_t ProcessNumber() {
  static const auto number = static_cast<uint32_t>(getpid());
  return number;
}

}  // namespace

Cupti& TheCupti() { return TheClients().Default(); }

CUptiResult Usable(const char* function) {
  if (InForkedChild()) {
    fprintf(stderr, "virtual GPU: %s in a forked child, where the real library hangs\n", function);
    abort();
  }
  const std::string* missing = FaultText(Fault::missing_function);
  if (missing != nullptr && *missing == function) return CUPTI_ERROR_API_NOT_IMPLEMENTED;
  if (Has(Fault::no_driver)) return CUPTI_ERROR_UNKNOWN;
  if (Has(Fault::old_driver) || Has(Fault::wrong_libcupti)) return CUPTI_ERROR_NOT_INITIALIZED;
  WaitForInitialization();
  return CUPTI_SUCCESS;
}

void PushExternal(CUpti_ExternalCorrelationKind kind, uint64_t id) {
  external_ids.push_back({kind, id});
}

bool PopExternal(CUpti_ExternalCorrelationKind kind, uint64_t* id) {
  for (size_t i = external_ids.size(); i-- > 0;) {
    if (external_ids[i].kind != kind) continue;
    if (id != nullptr) *id = external_ids[i].id;
    external_ids.erase(external_ids.begin() + static_cast<ptrdiff_t>(i));
    return true;
  }
  return false;
}

// API calls are recorded from the first context on, if there is anything to record of them by then.
void Cupti::ActivateApiRecords() {
  if (!recorded[0].Any() && !recorded[1].Any()) return;
  for (ApiSelection& selection : recorded) selection.SetActive();
}

void Cupti::Attach() { attached_tool.store(&TheClients(), std::memory_order_release); }

void Cupti::Call(CUpti_CallbackDomain domain, uint32_t cbid, const void* data) {
  const CUpti_CallbackFunc function = callback.load(std::memory_order_acquire);
  if (function == nullptr || !called[domain].Has(cbid)) return;
  function(userdata, domain, cbid, data);
  if (Has(Fault::callback_twice)) function(userdata, domain, cbid, data);
}

void Cupti::CallForApi(ApiCall& call, CUpti_ApiCallbackSite site) {
  const CUpti_CallbackDomain domain = DomainOf(call);
  if (!called[domain].Has(call.cbid)) return;
  const Context* context = CurrentContext();
  CUpti_CallbackData data = {};
  data.callbackSite = site;
  data.functionName = FunctionName(domain, call.cbid);
  data.functionParams = call.params;
  data.functionReturnValue = site == CUPTI_API_EXIT ? &call.result : nullptr;
  data.symbolName = call.kernel == nullptr ? nullptr : call.kernel->name.c_str();
  data.context = reinterpret_cast<CUcontext>(const_cast<Context*>(context));
  data.contextUid = context == nullptr ? 0 : context->uid;
  data.correlationData = &call.tool_data[index];
  data.correlationId = call.correlation;
  Call(domain, call.cbid, &data);
}

namespace {

CUpti_ActivityKind ApiKind(const ApiCall& call) {
  return call.domain == ApiDomain::kDriver ? CUPTI_ACTIVITY_KIND_DRIVER
                                           : CUPTI_ACTIVITY_KIND_RUNTIME;
}

}  // namespace

void Cupti::Enter(ApiCall& call) {
  CallForApi(call, CUPTI_API_ENTER);
  const bool wanted = recorded[static_cast<int>(call.domain)].Wants(call.cbid);
  call.tool_start[index] = wanted ? clock.Now() : 0;
}

void Cupti::Exit(ApiCall& call) {
  if (call.tool_start[index] != 0) PutApi(call);
  CallForApi(call, CUPTI_API_EXIT);
}

void Cupti::PutApi(const ApiCall& call) {
  if (!buffers.registered()) return;
  CUpti_ActivityAPI body = {};
  body.kind = ApiKind(call);
  body.cbid = call.cbid;
  body.start = call.tool_start[index];
  body.end = clock.Now();
  body.processId = ProcessNumber();
  body.threadId = ThreadNumber(system_thread_ids);
  body.correlationId = call.correlation;
  body.returnValue = static_cast<uint32_t>(call.result);
  PutExternal(call.correlation);
  Put(body);
}

void Cupti::PutExternal(uint32_t correlation) {
  if (external_ids.empty() || !KindOn(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION)) return;
  CUpti_ActivityExternalCorrelation body = {};
  body.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
  body.externalKind = external_ids.back().kind;
  body.externalId = external_ids.back().id;
  body.correlationId = correlation;
  Put(body);
}

bool Cupti::RecordsDevice() const {
  return KindOn(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) || KindOn(CUPTI_ACTIVITY_KIND_KERNEL) ||
         KindOn(CUPTI_ACTIVITY_KIND_MEMCPY) || KindOn(CUPTI_ACTIVITY_KIND_MEMCPY2) ||
         KindOn(CUPTI_ACTIVITY_KIND_MEMSET) || KindOn(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
}

void Cupti::WaitIfDeadlocked() const {
  while (deadlocked) sleep(1);
}

void Cupti::Issued(const vgpu::Work& work) {
  WaitIfDeadlocked();
  flushing.wait(true);
  if (!buffers.registered()) return;
  const CUpti_ActivityKind kind = KindOf(work);
  const bool serial_kernel = work.kind == WorkKind::kKernel && KindOn(CUPTI_ACTIVITY_KIND_KERNEL);
  if (!KindOn(kind) && !serial_kernel) return;
  // Tracing whole graphs leaves out their nodes.
  if (work.graph_node_id != 0 && KindOn(CUPTI_ACTIVITY_KIND_GRAPH_TRACE)) return;
  if (work.kind == WorkKind::kKernel && Has(Fault::zero_kernel_records)) return;
  const bool node = work.kind == WorkKind::kKernel && work.graph_node_id != 0;
  if (node && !work.graph_knew_tool && Has(Fault::graph_needs_kind)) return;
  if (TakeOne(Fault::drop_records)) {
    buffers.CountDropped();
    return;
  }
  vgpu::Work told = work;
  if (node && kernel_sessions > 1 && EmulatedApiVersion() < kTrueGraphCorrelations &&
      Has(Fault::late_session_correlation)) {
    --told.correlation;
  }
  Record record = RecordOf(told, {latency_timestamps, event_timestamps});
  if (serial_kernel)
    memcpy(record.bytes, &(const CUpti_ActivityKind&)CUPTI_ACTIVITY_KIND_KERNEL, 4);
  if (work.kind != WorkKind::kEvent) {
    record.times.pool = device_buffers.Enter(*work.stream->context);
    if (record.times.pool == nullptr) {
      record.times.start_offset = record.times.end_offset = record.times.completed_offset = 0;
    }
  }
  buffers.PutIncomplete(record.bytes, record.size, record.times);
  thread_local uint64_t count = 0;
  if (Has(Fault::garbage_kind) && ++count % 100 == 0) {
    alignas(8)
        uint32_t garbage[16] = {static_cast<uint32_t>(FaultNumber(Fault::garbage_kind, 777))};
    buffers.Put(garbage, sizeof garbage);
  }
}

void Cupti::Synchronized(const Sync& sync) {
  if (sync.kind == SyncKind::kStream || sync.kind == SyncKind::kContext) {
    CUpti_SynchronizeData data = {};
    data.context = reinterpret_cast<CUcontext>(const_cast<Context*>(sync.context));
    data.stream = reinterpret_cast<CUstream>(const_cast<Stream*>(sync.stream));
    Call(CUPTI_CB_DOMAIN_SYNCHRONIZE,
         sync.kind == SyncKind::kStream ? CUPTI_CBID_SYNCHRONIZE_STREAM_SYNCHRONIZED
                                        : CUPTI_CBID_SYNCHRONIZE_CONTEXT_SYNCHRONIZED,
         &data);
  }
  if (!KindOn(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION) || !buffers.registered()) return;
  if (Has(Fault::no_sync_records)) return;
  const ClientClock::Mapping to_client = clock.MappingNow();
  CUpti_ActivitySynchronization2 body = {};
  body.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
  body.type = static_cast<CUpti_ActivitySynchronizationType>(sync.kind);
  body.start = to_client(sync.start_ns);
  body.end = to_client(sync.end_ns);
  body.correlationId = sync.correlation;
  body.contextId = sync.context->uid;
  const bool of_stream = sync.kind == SyncKind::kStream || sync.kind == SyncKind::kStreamWaitsEvent;
  body.streamId = of_stream ? sync.stream->id : CUPTI_SYNCHRONIZATION_INVALID_VALUE;
  body.cudaEventId = sync.event_id == 0 ? CUPTI_SYNCHRONIZATION_INVALID_VALUE : sync.event_id;
  body.cudaEventSyncId = sync.event_sync_id;
  Put(body);
}

void Cupti::QueueWasFull(const Stream& stream, int64_t start_ns, int64_t end_ns) {
  if (!KindOn(CUPTI_ACTIVITY_KIND_OVERHEAD) || !buffers.registered()) return;
  const ClientClock::Mapping to_client = clock.MappingNow();
  CUpti_ActivityOverhead3 body = {};
  body.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
  body.overheadKind = CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL;
  body.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
  body.objectId.pt.processId = ProcessNumber();
  body.objectId.pt.threadId = ThreadNumber(system_thread_ids);
  body.start = to_client(start_ns);
  body.end = to_client(end_ns);
  body.correlationId = CurrentCorrelation();
  if (RecordBytes(body.kind) == sizeof body) {  // older records have no place for it
    auto* data = static_cast<CUpti_ActivityOverheadCommandBufferFullData*>(
        calloc(1, sizeof(CUpti_ActivityOverheadCommandBufferFullData)));  // the client frees it
    data->channelID = stream.id;
    data->channelType = CUPTI_CHANNEL_TYPE_COMPUTE;
    body.overheadData = data;
  }
  Put(body);
}

void Cupti::Memory(const MemoryOperation& operation) {
  if (!KindOn(CUPTI_ACTIVITY_KIND_MEMORY2) || !buffers.registered()) return;
  CUpti_ActivityMemory4 body = {};
  body.kind = CUPTI_ACTIVITY_KIND_MEMORY2;
  body.memoryOperationType = operation.release ? CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE
                                               : CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION;
  body.memoryKind = operation.kind == MemoryKind::kManaged  ? CUPTI_ACTIVITY_MEMORY_KIND_MANAGED
                    : operation.kind == MemoryKind::kDevice ? CUPTI_ACTIVITY_MEMORY_KIND_DEVICE
                                                            : CUPTI_ACTIVITY_MEMORY_KIND_PINNED;
  body.correlationId = operation.correlation;
  body.address = operation.address;
  body.bytes = operation.bytes;
  body.timestamp = clock.Now();
  body.processId = ProcessNumber();
  body.deviceId = static_cast<uint32_t>(operation.context->device->ordinal);
  body.contextId = operation.context->uid;
  body.streamId = operation.stream == nullptr ? CUPTI_INVALID_STREAM_ID : operation.stream->id;
  body.isAsync = operation.asynchronous;
  Put(body);
}

template <class Struct>
void Cupti::PutRun(CUpti_ActivityKind kind, const HostFunctionRun& run) {
  if (!KindOn(kind)) return;
  const ClientClock::Mapping to_client = clock.MappingNow();
  Struct body = {};
  body.kind = kind;
  body.stream = run.stream;
  body.context = run.context;
  body.device = run.device;
  body.correlation = run.correlation;
  body.process = ProcessNumber();
  body.thread = ThreadNumber(system_thread_ids);
  if constexpr (requires { body.graph_node; }) {
    body.graph = run.graph_id;
    body.graph_node = run.graph_node_id;
  }
  body.start = to_client(run.start_ns);
  body.end = to_client(run.end_ns);
  Put(body);
}

void Cupti::Ran(const HostFunctionRun& run) {
  if (!buffers.registered()) return;
  if (run.graph_node_id == 0) {
    PutRun<HostLaunchRecord>(kHostLaunchKind, run);
  } else if (!KindOn(CUPTI_ACTIVITY_KIND_GRAPH_TRACE)) {
    PutRun<GraphHostNodeRecord>(kGraphHostNodeKind, run);
  }
}

namespace {

// Before 13.3 update 1 the library did not know what it says of slices.
constexpr uint32_t kKnowsSlices = 130301;

void FillIdentity(CUpti_ActivityDevice5& body, const Device& device) {
  body.id = static_cast<uint32_t>(device.ordinal);
  body.name = "Virtual GPU (trainprof)";
  const bool slice = Has(Fault::mig);
  const bool knows = EmulatedApiVersion() >= kKnowsSlices;
  DeviceUuid(device.ordinal, slice && knows, body.uuid.bytes);
  body.isCudaVisible = 1;
  body.isMigEnabled = slice;
  if (!slice) return;
  body.gpuInstanceId = 1;
  if (knows) DeviceUuid(device.ordinal, true, body.migUuid.bytes);
  if (!knows) body.name = nullptr;
}

}  // namespace

void Cupti::PutDevice(const Device& device) {
  if (!KindOn(CUPTI_ACTIVITY_KIND_DEVICE) || !buffers.registered()) return;
  CUpti_ActivityDevice5 body = {};
  body.kind = CUPTI_ACTIVITY_KIND_DEVICE;
  body.flags = CUPTI_ACTIVITY_FLAG_DEVICE_CONCURRENT_KERNELS;
  body.globalMemoryBandwidth = 3'350'000'000;  // kB/s
  body.globalMemorySize = static_cast<uint64_t>(Least(Setting::memory_mib)) << 20;
  body.constantMemorySize = 65536;
  body.l2CacheSize = 52428800;
  body.numThreadsPerWarp = 32;
  body.coreClockRate = static_cast<uint32_t>(Get(Setting::clock_mhz).greatest) * 1000;
  body.numMemcpyEngines = 2 * static_cast<uint32_t>(Least(Setting::copy_engines));
  body.numMultiprocessors = static_cast<uint32_t>(Least(Setting::sm_count));
  body.maxWarpsPerMultiprocessor = 64;
  body.maxBlocksPerMultiprocessor = 32;
  body.maxSharedMemoryPerMultiprocessor = 233472;
  body.maxRegistersPerMultiprocessor = body.maxRegistersPerBlock = 65536;
  body.maxSharedMemoryPerBlock = 49152;
  body.maxThreadsPerBlock = 1024;
  body.maxBlockDimX = body.maxBlockDimY = 1024;
  body.maxBlockDimZ = 64;
  body.maxGridDimX = 2147483647;
  body.maxGridDimY = body.maxGridDimZ = 65535;
  body.computeCapabilityMajor = 9;
  FillIdentity(body, device);
  Put(body);
}

void Cupti::PutContext(const Context& context) {
  if (!KindOn(CUPTI_ACTIVITY_KIND_CONTEXT) || !buffers.registered()) return;
  CUpti_ActivityContext3 body = {};
  body.kind = CUPTI_ACTIVITY_KIND_CONTEXT;
  body.contextId = context.uid;
  body.deviceId = static_cast<uint32_t>(context.device->ordinal);
  body.computeApiKind = CUPTI_ACTIVITY_COMPUTE_API_CUDA;
  body.nullStreamId = static_cast<uint16_t>(context.null_stream->id);
  body.numMultiprocessors = static_cast<uint16_t>(Least(Setting::sm_count));
  Put(body);
}

void Cupti::PutStream(const Stream& stream, uint32_t correlation) {
  if (!KindOn(CUPTI_ACTIVITY_KIND_STREAM) || !buffers.registered()) return;
  CUpti_ActivityStream body = {};
  body.kind = CUPTI_ACTIVITY_KIND_STREAM;
  body.contextId = stream.context->uid;
  body.streamId = stream.id;
  body.priority = static_cast<uint32_t>(stream.priority);
  body.flag = stream.is_null    ? CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NULL
              : stream.blocking ? CUPTI_ACTIVITY_STREAM_CREATE_FLAG_DEFAULT
                                : CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING;
  body.correlationId = correlation;
  Put(body);
}

void Cupti::Created(const Context& context) {
  if (context.uid == 1) ActivateApiRecords();
  if (RecordsDevice()) device_buffers.PreAllocate(context);
  PutDevice(*context.device);
  PutContext(context);
  CUpti_ResourceData data = {};
  data.context = reinterpret_cast<CUcontext>(const_cast<Context*>(&context));
  Call(CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_CREATED, &data);
}

namespace {

CUpti_ResourceData ResourceOf(const Stream& stream) {
  CUpti_ResourceData data = {};
  data.context = reinterpret_cast<CUcontext>(stream.context);
  data.resourceHandle.stream = reinterpret_cast<CUstream>(const_cast<Stream*>(&stream));
  return data;
}

}  // namespace

void Cupti::Created(const Stream& stream) {
  PutStream(stream, CurrentCorrelation());
  const CUpti_ResourceData data = ResourceOf(stream);
  Call(CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_STREAM_CREATED, &data);
}

void Cupti::Destroyed(const Stream& stream) {
  const CUpti_ResourceData data = ResourceOf(stream);
  Call(CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING, &data);
}

}  // namespace vgpu
