// CUPTI's activity records as they lie in its buffers: of each kind the fields that are recorded,
// at the offsets that CUPTI 11 to 13 share (later versions append; record_layouts.cpp compares them
// with the headers at hand). Free of CUPTI's headers, so that a dead process's buffers can be read
// without.
#pragma once

#include <cstdint>
#include <cstring>

namespace trainprof::collectors {

// CUpti_ActivityKind, the kinds that are read.
enum ActivityKind : uint32_t {
  kMemcpyActivity = 1,
  kMemsetActivity = 2,
  kDriverActivity = 4,
  kRuntimeActivity = 5,
  kDeviceActivity = 8,
  kContextActivity = 9,
  kKernelActivity = 10,
  kOverheadActivity = 17,
  kPeerMemcpyActivity = 22,
  kEventActivity = 36,
  kStreamActivity = 37,
  kSyncActivity = 38,
  kMemoryActivity = 49,
  kGraphActivity = 51,
  kGraphHostNodeActivity = 56,  // from CUPTI 13.1 on, as the next
  kHostLaunchActivity = 58,
};

// Beside the kind of a record that has its place and not its times: the work has not ended, or CUPTI has not been
// flushed since. So it is in the buffers that CUPTI 13.0 holds (on an H200), and in none that it delivers.
inline constexpr uint32_t kIncompleteMark = 1u << 31;

// Of the record at `data`, with the mark or without.
inline uint32_t KindAt(const char* data) {
  uint32_t kind = 0;
  memcpy(&kind, data, sizeof kind);
  return kind & ~kIncompleteMark;
}
inline constexpr uint32_t kActivityKinds = 64;  // more than CUPTI 13 has

struct KernelRecord {
  uint32_t kind;
  uint8_t cache_config;
  uint8_t shared_config;
  uint16_t registers_per_thread;
  uint32_t partitioned_cache[2];
  uint64_t start;
  uint64_t end;
  uint64_t completed;
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  int32_t grid[3];
  int32_t block[3];
  int32_t static_shared_bytes;
  int32_t dynamic_shared_bytes;
  uint32_t local_bytes_per_thread;
  uint32_t local_bytes;
  uint32_t correlation;
  int64_t grid_id;
  uint64_t name;
  uint64_t reserved;
  uint64_t queued;
  uint64_t submitted;
  uint8_t launch_type;
  uint8_t carveout[3];
  uint32_t executed_shared_bytes;
  uint64_t graph_node;
  uint32_t shared_limit;
  uint32_t graph;
  uint64_t access_policy;
  uint32_t channel;
  uint32_t channel_type;
  uint32_t cluster[3];
};
static_assert(offsetof(KernelRecord, graph) == 156 && offsetof(KernelRecord, cluster) == 176);

struct MemcpyRecord {
  uint32_t kind;
  uint8_t copy_kind;
  uint8_t source_kind;
  uint8_t target_kind;
  uint8_t flags;
  uint64_t bytes;
  uint64_t start;
  uint64_t end;
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  uint32_t correlation;
  uint32_t runtime_correlation;
  uint32_t padding;
  uint64_t reserved;
  uint64_t graph_node;
  uint32_t graph;
  uint32_t channel;
  uint32_t channel_type;
  uint32_t device_launched;
  uint64_t count;
};
static_assert(sizeof(MemcpyRecord) == 96);

struct PeerMemcpyRecord {
  uint32_t kind;
  uint8_t copy_kind;
  uint8_t source_kind;
  uint8_t target_kind;
  uint8_t flags;
  uint64_t bytes;
  uint64_t start;
  uint64_t end;
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  uint32_t source_device;
  uint32_t source_context;
  uint32_t target_device;
  uint32_t target_context;
  uint32_t correlation;
  uint64_t reserved;
  uint64_t graph_node;
  uint32_t graph;
  uint32_t channel;
};
static_assert(sizeof(PeerMemcpyRecord) == 88);

struct MemsetRecord {
  uint32_t kind;
  uint32_t value;
  uint64_t bytes;
  uint64_t start;
  uint64_t end;
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  uint32_t correlation;
  uint16_t flags;
  uint16_t memory_kind;
  uint32_t padding;
  uint64_t reserved;
  uint64_t graph_node;
  uint32_t graph;
  uint32_t channel;
};
static_assert(sizeof(MemsetRecord) == 80);

struct ApiRecord {
  uint32_t kind;
  uint32_t cbid;
  uint64_t start;
  uint64_t end;
  uint32_t process;
  uint32_t thread;
  uint32_t correlation;
  uint32_t result;
};
static_assert(sizeof(ApiRecord) == 40);

struct SyncRecord {
  uint32_t kind;
  uint32_t type;
  uint64_t start;
  uint64_t end;
  uint32_t correlation;
  uint32_t context;
  uint32_t stream;
  uint32_t event;
  uint64_t sync_id;  // from CUPTI 12.8 on
  uint32_t result;
  uint32_t padding;
};
static_assert(sizeof(SyncRecord) == 56);

struct EventRecord {
  uint32_t kind;
  uint32_t correlation;
  uint32_t context;
  uint32_t stream;
  uint32_t event;
  uint32_t padding;
  uint32_t device;  // from CUPTI 12.8 on
  uint32_t padding2;
  uint64_t reserved;
  uint64_t device_timestamp;
  uint64_t sync_id;
};
static_assert(sizeof(EventRecord) == 56);

struct MemoryRecord {
  uint32_t kind;
  uint32_t operation;
  uint32_t memory_kind;
  uint32_t correlation;
  uint64_t address;
  uint64_t bytes;
  uint64_t timestamp;
  uint64_t pc;
  uint32_t process;
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  uint64_t name;
  uint32_t asynchronous;
  uint32_t padding;
  uint32_t pool_type;
  uint32_t padding2;
  uint64_t pool_address;
  uint64_t release_threshold;
  uint64_t pool_bytes;
  uint64_t pool_used_bytes;  // from CUPTI 11.8 on
};
static_assert(sizeof(MemoryRecord) == 120);

struct GraphRecord {
  uint32_t kind;
  uint32_t correlation;
  uint64_t start;
  uint64_t end;
  uint32_t device;
  uint32_t graph;
  uint32_t context;
  uint32_t stream;
};
static_assert(sizeof(GraphRecord) == 40);

// A host function of a stream, on the thread that ran it.
struct HostLaunchRecord {
  uint32_t kind;
  uint32_t stream;
  uint32_t context;
  uint32_t device;
  uint32_t correlation;
  uint32_t process;
  uint32_t thread;
  uint32_t padding;
  uint64_t start;
  uint64_t end;
};
static_assert(sizeof(HostLaunchRecord) == 48);

// The same of a graph.
struct GraphHostNodeRecord {
  uint32_t kind;
  uint32_t stream;
  uint32_t context;
  uint32_t device;
  uint32_t correlation;
  uint32_t graph;
  uint64_t graph_node;
  uint32_t process;
  uint32_t thread;
  uint64_t start;
  uint64_t end;
};
static_assert(sizeof(GraphHostNodeRecord) == 56);

struct OverheadRecord {
  uint32_t kind;
  uint32_t overhead_kind;
  uint32_t object_kind;
  uint32_t object[3];  // process, thread; or device, context, stream
  uint64_t start;
  uint64_t end;
  uint32_t correlation;  // from CUPTI 12.2 on
  uint32_t reserved;
  uint64_t data;  // from CUPTI 12.4 on: malloc'ed, ours to free
};
static_assert(sizeof(OverheadRecord) == 56);

struct DeviceRecord {
  uint32_t kind;
  uint32_t flags;
  uint64_t memory_kb_per_second;
  uint64_t memory_bytes;
  uint32_t constant_bytes;
  uint32_t l2_bytes;
  uint32_t threads_per_warp;
  uint32_t clock_khz;
  uint32_t copy_engines;
  uint32_t multiprocessors;
  uint32_t max_ipc;
  uint32_t warps_per_multiprocessor;
  uint32_t blocks_per_multiprocessor;
  uint32_t shared_bytes_per_multiprocessor;
  uint32_t registers_per_multiprocessor;
  uint32_t registers_per_block;
  uint32_t shared_bytes_per_block;
  uint32_t threads_per_block;
  uint32_t block_limits[3];
  uint32_t grid_limits[3];
  uint32_t compute_major;
  uint32_t compute_minor;
  uint32_t id;
  uint32_t ecc;
  char uuid[16];
  uint64_t name;
  uint8_t visible;
  uint8_t mig;
  uint8_t reserved[6];
};
static_assert(offsetof(DeviceRecord, uuid) == 120 && offsetof(DeviceRecord, mig) == 145);

struct ContextRecord {
  uint32_t kind;
  uint32_t context;
  uint32_t device;
  uint16_t compute_api;
  uint16_t null_stream;
};
static_assert(sizeof(ContextRecord) == 16);

struct StreamRecord {
  uint32_t kind;
  uint32_t context;
  uint32_t stream;
  uint32_t priority;
  uint32_t flags;
  uint32_t correlation;
};
static_assert(sizeof(StreamRecord) == 24);

// The record at `data`, whose size in this CUPTI is `size_bytes`; fields that it lacks are 0.
template <class Record>
Record ReadRecord(const char* data, uint32_t size_bytes) {
  Record record;
  if (size_bytes >= sizeof record) [[likely]] {
    memcpy(&record, data, sizeof record);
  } else {
    memset(&record, 0, sizeof record);
    memcpy(&record, data, size_bytes);
  }
  return record;
}

}  // namespace trainprof::collectors
