// Compares records.h with the CUPTI headers that are built with. No code: it compiles, or not.
#include <cuda.h>
#include <cupti.h>

#include <cstddef>

#include "collectors/cupti/records.h"

#define TRAINPROF_SAME(ours, our_field, theirs, their_field) \
  static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field))

#if CUPTI_API_VERSION >= 130000
namespace trainprof::collectors {

TRAINPROF_SAME(KernelRecord, registers_per_thread, CUpti_ActivityKernel10, registersPerThread);
TRAINPROF_SAME(KernelRecord, start, CUpti_ActivityKernel10, start);
TRAINPROF_SAME(KernelRecord, grid, CUpti_ActivityKernel10, gridX);
TRAINPROF_SAME(KernelRecord, correlation, CUpti_ActivityKernel10, correlationId);
TRAINPROF_SAME(KernelRecord, name, CUpti_ActivityKernel10, name);
TRAINPROF_SAME(KernelRecord, executed_shared_bytes, CUpti_ActivityKernel10, sharedMemoryExecuted);
TRAINPROF_SAME(KernelRecord, graph_node, CUpti_ActivityKernel10, graphNodeId);
TRAINPROF_SAME(KernelRecord, graph, CUpti_ActivityKernel10, graphId);
TRAINPROF_SAME(KernelRecord, channel, CUpti_ActivityKernel10, channelID);
TRAINPROF_SAME(KernelRecord, cluster, CUpti_ActivityKernel10, clusterX);
TRAINPROF_SAME(MemcpyRecord, start, CUpti_ActivityMemcpy6, start);
TRAINPROF_SAME(MemcpyRecord, correlation, CUpti_ActivityMemcpy6, correlationId);
TRAINPROF_SAME(MemcpyRecord, graph_node, CUpti_ActivityMemcpy6, graphNodeId);
TRAINPROF_SAME(MemcpyRecord, channel, CUpti_ActivityMemcpy6, channelID);
TRAINPROF_SAME(MemcpyRecord, count, CUpti_ActivityMemcpy6, copyCount);
TRAINPROF_SAME(PeerMemcpyRecord, source_device, CUpti_ActivityMemcpyPtoP4, srcDeviceId);
TRAINPROF_SAME(PeerMemcpyRecord, correlation, CUpti_ActivityMemcpyPtoP4, correlationId);
TRAINPROF_SAME(PeerMemcpyRecord, channel, CUpti_ActivityMemcpyPtoP4, channelID);
TRAINPROF_SAME(MemsetRecord, correlation, CUpti_ActivityMemset4, correlationId);
TRAINPROF_SAME(MemsetRecord, memory_kind, CUpti_ActivityMemset4, memoryKind);
TRAINPROF_SAME(MemsetRecord, channel, CUpti_ActivityMemset4, channelID);
TRAINPROF_SAME(ApiRecord, thread, CUpti_ActivityAPI, threadId);
TRAINPROF_SAME(ApiRecord, result, CUpti_ActivityAPI, returnValue);
TRAINPROF_SAME(SyncRecord, correlation, CUpti_ActivitySynchronization2, correlationId);
TRAINPROF_SAME(SyncRecord, sync_id, CUpti_ActivitySynchronization2, cudaEventSyncId);
TRAINPROF_SAME(EventRecord, event, CUpti_ActivityCudaEvent2, eventId);
TRAINPROF_SAME(EventRecord, device_timestamp, CUpti_ActivityCudaEvent2, deviceTimestamp);
TRAINPROF_SAME(EventRecord, sync_id, CUpti_ActivityCudaEvent2, cudaEventSyncId);
TRAINPROF_SAME(MemoryRecord, timestamp, CUpti_ActivityMemory4, timestamp);
TRAINPROF_SAME(MemoryRecord, name, CUpti_ActivityMemory4, name);
TRAINPROF_SAME(MemoryRecord, pool_type, CUpti_ActivityMemory4, memoryPoolConfig);
TRAINPROF_SAME(GraphRecord, stream, CUpti_ActivityGraphTrace2, streamId);
TRAINPROF_SAME(OverheadRecord, object, CUpti_ActivityOverhead3, objectId);
TRAINPROF_SAME(OverheadRecord, start, CUpti_ActivityOverhead3, start);
TRAINPROF_SAME(OverheadRecord, data, CUpti_ActivityOverhead3, overheadData);
TRAINPROF_SAME(DeviceRecord, multiprocessors, CUpti_ActivityDevice5, numMultiprocessors);
TRAINPROF_SAME(DeviceRecord, compute_major, CUpti_ActivityDevice5, computeCapabilityMajor);
TRAINPROF_SAME(DeviceRecord, uuid, CUpti_ActivityDevice5, uuid);
TRAINPROF_SAME(DeviceRecord, mig, CUpti_ActivityDevice5, isMigEnabled);
TRAINPROF_SAME(ContextRecord, device, CUpti_ActivityContext3, deviceId);
TRAINPROF_SAME(StreamRecord, priority, CUpti_ActivityStream, priority);
static_assert(kGraphActivity == static_cast<int>(CUPTI_ACTIVITY_KIND_GRAPH_TRACE));
static_assert(kMemoryActivity == static_cast<int>(CUPTI_ACTIVITY_KIND_MEMORY2));
#if CUPTI_API_VERSION >= 130100
TRAINPROF_SAME(HostLaunchRecord, stream, CUpti_ActivityHostLaunch, streamId);
TRAINPROF_SAME(HostLaunchRecord, context, CUpti_ActivityHostLaunch, contextId);
TRAINPROF_SAME(HostLaunchRecord, device, CUpti_ActivityHostLaunch, deviceId);
TRAINPROF_SAME(HostLaunchRecord, correlation, CUpti_ActivityHostLaunch, correlationId);
TRAINPROF_SAME(HostLaunchRecord, thread, CUpti_ActivityHostLaunch, threadId);
TRAINPROF_SAME(HostLaunchRecord, start, CUpti_ActivityHostLaunch, start);
TRAINPROF_SAME(HostLaunchRecord, end, CUpti_ActivityHostLaunch, end);
TRAINPROF_SAME(GraphHostNodeRecord, stream, CUpti_ActivityGraphHostNode, streamId);
TRAINPROF_SAME(GraphHostNodeRecord, context, CUpti_ActivityGraphHostNode, contextId);
TRAINPROF_SAME(GraphHostNodeRecord, device, CUpti_ActivityGraphHostNode, deviceId);
TRAINPROF_SAME(GraphHostNodeRecord, correlation, CUpti_ActivityGraphHostNode, correlationId);
TRAINPROF_SAME(GraphHostNodeRecord, graph, CUpti_ActivityGraphHostNode, graphId);
TRAINPROF_SAME(GraphHostNodeRecord, graph_node, CUpti_ActivityGraphHostNode, graphNodeId);
TRAINPROF_SAME(GraphHostNodeRecord, thread, CUpti_ActivityGraphHostNode, threadId);
TRAINPROF_SAME(GraphHostNodeRecord, start, CUpti_ActivityGraphHostNode, start);
TRAINPROF_SAME(GraphHostNodeRecord, end, CUpti_ActivityGraphHostNode, end);
static_assert(kGraphHostNodeActivity == static_cast<int>(CUPTI_ACTIVITY_KIND_GRAPH_HOST_NODE));
static_assert(kHostLaunchActivity == static_cast<int>(CUPTI_ACTIVITY_KIND_HOST_LAUNCH));
#endif

}  // namespace trainprof::collectors
#endif
