#include "tests/virtual_gpu/cupti/records.h"

#include <atomic>
#include <cstring>
#include <string>

#include "tests/virtual_gpu/model/faults.h"
#include "tests/virtual_gpu/model/kernels.h"
#include "tests/virtual_gpu/model/machine.h"

namespace vgpu {
namespace {

template <class Struct>
Record Finish(const Struct& body, const PendingTimes& times) {
  Record record;
  static_assert(sizeof(Struct) <= sizeof record.bytes);
  record.size = RecordBytes(body.kind);
  memcpy(record.bytes, &body, sizeof body);
  record.times = times;
  return record;
}

// What all records of device work have.
template <class Struct>
void FillCommon(Struct& body, const Work& work) {
  const Context& context = *work.stream->context;
  body.deviceId = static_cast<uint32_t>(context.device->ordinal);
  body.contextId = context.uid;
  body.streamId = work.stream->id;
  body.correlationId = work.correlation;
}

template <class Struct>
void FillGraph(Struct& body, const Work& work, CUpti_ChannelType channel) {
  body.graphNodeId = work.graph_node_id;
  body.graphId = work.graph_id;
  body.channelID = work.stream->id;
  body.channelType = channel;
}

PendingTimes TimesOf(const Work& work, size_t start_offset, size_t end_offset) {
  return {start_offset, end_offset, 0, work.start_ns, work.end_ns};
}

const char* NameOf(const Kernel& kernel) {
  if (Has(Fault::null_name)) return nullptr;
  if (!Has(Fault::huge_names)) return kernel.name.c_str();
  // One name as long as asked, made once: names stay valid as long as the process.
  static const std::string* const huge =
      new std::string(static_cast<size_t>(FaultNumber(Fault::huge_names, 0)), 'x');
  return huge->c_str();
}

Record KernelRecord(const Work& work, const RecordOptions& options) {
  CUpti_ActivityKernel10 body = {};
  body.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  FillCommon(body, work);
  FillGraph(body, work, CUPTI_CHANNEL_TYPE_COMPUTE);
  const VgpuKernelSpec& spec = work.kernel->spec;
  body.registersPerThread = static_cast<uint16_t>(spec.registers);
  body.gridX = static_cast<int32_t>(work.grid[0]);
  body.gridY = static_cast<int32_t>(work.grid[1]);
  body.gridZ = static_cast<int32_t>(work.grid[2]);
  body.blockX = static_cast<int32_t>(work.block[0]);
  body.blockY = static_cast<int32_t>(work.block[1]);
  body.blockZ = static_cast<int32_t>(work.block[2]);
  body.clusterX = work.cluster[0];
  body.clusterY = work.cluster[1];
  body.clusterZ = work.cluster[2];
  body.staticSharedMemory = spec.static_shared_bytes;
  body.dynamicSharedMemory = static_cast<int32_t>(work.dynamic_shared_bytes);
  body.sharedMemoryExecuted =
      static_cast<uint32_t>(spec.static_shared_bytes) + work.dynamic_shared_bytes;
  body.localMemoryPerThread = static_cast<uint32_t>(spec.local_bytes_per_thread);
  static std::atomic<int64_t> last_grid = 0;
  body.gridId = ++last_grid;
  body.name = NameOf(*work.kernel);
  if (options.latency_timestamps) {
    body.queued = static_cast<uint64_t>(work.issued_ns);
    body.submitted = static_cast<uint64_t>(work.issued_ns);
  }
  PendingTimes times =
      TimesOf(work, offsetof(CUpti_ActivityKernel10, start), offsetof(CUpti_ActivityKernel10, end));
  times.completed_offset = offsetof(CUpti_ActivityKernel10, completed);
  return Finish(body, times);
}

uint8_t MemoryKindOf(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kPageable:
      return CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE;
    case MemoryKind::kPinned:
      return CUPTI_ACTIVITY_MEMORY_KIND_PINNED;
    case MemoryKind::kDevice:
      return CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
    case MemoryKind::kManaged:
      return CUPTI_ACTIVITY_MEMORY_KIND_MANAGED;
    case MemoryKind::kUnknown:
      break;
  }
  return CUPTI_ACTIVITY_MEMORY_KIND_UNKNOWN;
}

uint8_t CopyKindOf(const Work& work) {
  const auto on_host = [](MemoryKind kind) {
    return kind == MemoryKind::kPageable || kind == MemoryKind::kPinned;
  };
  if (on_host(work.source)) {
    return on_host(work.target) ? CUPTI_ACTIVITY_MEMCPY_KIND_HTOH : CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
  }
  return on_host(work.target) ? CUPTI_ACTIVITY_MEMCPY_KIND_DTOH : CUPTI_ACTIVITY_MEMCPY_KIND_DTOD;
}

Record CopyRecord(const Work& work) {
  CUpti_ActivityMemcpy6 body = {};
  body.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  FillCommon(body, work);
  FillGraph(body, work, CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY);
  body.copyKind = CopyKindOf(work);
  body.srcKind = MemoryKindOf(work.source);
  body.dstKind = MemoryKindOf(work.target);
  body.flags = work.asynchronous ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : 0;
  body.bytes = work.bytes;
  body.copyCount = 1;
  return Finish(body, TimesOf(work, offsetof(CUpti_ActivityMemcpy6, start),
                              offsetof(CUpti_ActivityMemcpy6, end)));
}

Record PeerCopyRecord(const Work& work) {
  CUpti_ActivityMemcpyPtoP4 body = {};
  body.kind = CUPTI_ACTIVITY_KIND_MEMCPY2;
  FillCommon(body, work);
  FillGraph(body, work, CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY);
  body.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
  body.srcKind = body.dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  body.flags = work.asynchronous ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : 0;
  body.bytes = work.bytes;
  body.srcDeviceId = static_cast<uint32_t>(work.source_context->device->ordinal);
  body.dstDeviceId = static_cast<uint32_t>(work.target_context->device->ordinal);
  body.srcContextId = work.source_context->uid;
  body.dstContextId = work.target_context->uid;
  return Finish(body, TimesOf(work, offsetof(CUpti_ActivityMemcpyPtoP4, start),
                              offsetof(CUpti_ActivityMemcpyPtoP4, end)));
}

Record MemsetRecord(const Work& work) {
  CUpti_ActivityMemset4 body = {};
  body.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  FillCommon(body, work);
  FillGraph(body, work, CUPTI_CHANNEL_TYPE_COMPUTE);
  body.bytes = work.bytes;
  body.flags = work.asynchronous ? CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC : 0;
  if (work.graph_node_id == 0) {  // the real records of graph nodes have neither
    body.value = work.value;
    body.memoryKind = MemoryKindOf(work.target);
  }
  return Finish(body, TimesOf(work, offsetof(CUpti_ActivityMemset4, start),
                              offsetof(CUpti_ActivityMemset4, end)));
}

Record EventRecord(const Work& work, const RecordOptions& options) {
  CUpti_ActivityCudaEvent2 body = {};
  body.kind = CUPTI_ACTIVITY_KIND_CUDA_EVENT;
  FillCommon(body, work);
  body.eventId = work.event_id;
  body.cudaEventSyncId = work.event_sync_id;
  const size_t time_offset =
      options.event_timestamps ? offsetof(CUpti_ActivityCudaEvent2, deviceTimestamp) : 0;
  return Finish(body, TimesOf(work, 0, time_offset));
}

Record GraphRecord(const Work& work) {
  CUpti_ActivityGraphTrace2 body = {};
  body.kind = CUPTI_ACTIVITY_KIND_GRAPH_TRACE;
  FillCommon(body, work);
  body.graphId = work.graph_id;
  body.endDeviceId = body.deviceId;
  body.endContextId = body.contextId;
  return Finish(body, TimesOf(work, offsetof(CUpti_ActivityGraphTrace2, start),
                              offsetof(CUpti_ActivityGraphTrace2, end)));
}

}  // namespace

CUpti_ActivityKind KindOf(const Work& work) {
  switch (work.kind) {
    case WorkKind::kKernel:
      return CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    case WorkKind::kCopy:
      return CUPTI_ACTIVITY_KIND_MEMCPY;
    case WorkKind::kPeerCopy:
      return CUPTI_ACTIVITY_KIND_MEMCPY2;
    case WorkKind::kMemset:
      return CUPTI_ACTIVITY_KIND_MEMSET;
    case WorkKind::kEvent:
      return CUPTI_ACTIVITY_KIND_CUDA_EVENT;
    case WorkKind::kGraph:
      return CUPTI_ACTIVITY_KIND_GRAPH_TRACE;
  }
  return CUPTI_ACTIVITY_KIND_INVALID;
}

Record RecordOf(const Work& work, const RecordOptions& options) {
  switch (work.kind) {
    case WorkKind::kKernel:
      return KernelRecord(work, options);
    case WorkKind::kCopy:
      return CopyRecord(work);
    case WorkKind::kPeerCopy:
      return PeerCopyRecord(work);
    case WorkKind::kMemset:
      return MemsetRecord(work);
    case WorkKind::kEvent:
      return EventRecord(work, options);
    case WorkKind::kGraph:
      return GraphRecord(work);
  }
  return {};
}

}  // namespace vgpu
