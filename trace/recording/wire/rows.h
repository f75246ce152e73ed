// Rows of fixed size, in chunks of their own: what devices did (ChunkKind::kDeviceRows) and which
// calls asked for it (kCallRows). Free of the C++ runtime: the in-process library includes it.
//
// All times are CLOCK_MONOTONIC in ns: CUPTI is told to stamp its records with that clock. Strings
// (`name`) are defined in record chunks of the same writer, which never gives an id twice: a reader
// collects a writer's strings before its rows.
#pragma once

#include <cstdint>

namespace trainprof::recording {

enum class DeviceRowType : uint8_t {
  kKernel = 1,
  kCopy = 2,      // between host and device, or within a device
  kPeerCopy = 3,  // between two devices
  kMemset = 4,
  kSync = 5,       // detail: CUpti_ActivitySynchronizationType, or kHostFunctionSync
  kEvent = 6,      // cudaEventRecord as the device reached it; begin == end, 0 when unknown
  kMemory = 7,     // an allocation or a release; begin == end; detail: memory operation
  kGraph = 8,      // a whole graph launch, where nodes are not recorded
  kOverhead = 9,   // CUPTI's own work on the host; detail: OverheadDetail()
  kInFlight = 10,  // no event: work of this correlation was under way when the program ended
};

// What keeps a device busy, and answers the call that asked for it.
constexpr bool IsDeviceWork(DeviceRowType type) {
  return type == DeviceRowType::kKernel || type == DeviceRowType::kCopy ||
         type == DeviceRowType::kPeerCopy || type == DeviceRowType::kMemset ||
         type == DeviceRowType::kGraph;
}

// CUpti_ActivityOverheadKind in a byte: CUPTI's own kinds are multiples of 1 << 16.
constexpr uint8_t OverheadDetail(uint32_t kind) {
  return static_cast<uint8_t>(kind < 0x10000 ? kind : 16 + (kind >> 16));
}

// CUpti_ActivityObjectKind: whose overhead it was.
inline constexpr uint32_t kThreadObject = 2;
// OverheadDetail of ours: how long the program waited for CUPTI's set-up.
inline constexpr uint8_t kSetupOverhead = 255;

// Detail of kSync, ours: the stream waits for a function of the host, from its begin to its end.
inline constexpr uint8_t kHostFunctionSync = 255;

// 96 bytes. What a type has no use for is 0.
struct DeviceRow {
  int64_t begin_ns;
  int64_t end_ns;
  uint32_t correlation;  // of the call that issued it; within the process
  uint32_t name;         // kernels: the mangled name; memory: the source library
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  DeviceRowType type;
  uint8_t detail;       // copies: CUpti_ActivityMemcpyKind
  uint8_t source_kind;  // CUpti_ActivityMemoryKind; memsets and memory: the memory's kind
  uint8_t target_kind;
  uint64_t graph_node;  // 0: not from a graph
  uint32_t graph;
  uint32_t channel;
  union {
    struct {
      uint32_t grid[3];
      uint16_t block[3];
      uint16_t registers_per_thread;
      uint32_t static_shared_bytes;
      uint32_t dynamic_shared_bytes;
      uint32_t executed_shared_bytes;  // as the driver carved it out
      uint32_t local_bytes_per_thread;
      uint8_t cluster[3];
      uint8_t flags;
    } kernel;
    struct {
      uint64_t bytes;
      uint64_t count;  // copies merged into this row
      uint32_t source_device;
      uint32_t source_context;
      uint32_t target_device;
      uint32_t target_context;
      uint32_t flags;  // CUpti_ActivityFlag; 1: asynchronous
      uint32_t reserved;
    } copy;
    struct {
      uint64_t bytes;
      uint32_t value;
      uint32_t flags;
      uint64_t reserved[3];
    } memset;
    struct {
      uint64_t sync_id;  // pairs an event's record with who waits for it
      uint32_t event;
      uint32_t result;
      uint32_t thread;  // of the kernel, that ran a host function
      uint32_t padding;
      uint64_t reserved[2];
    } sync;  // kSync, kEvent
    struct {
      uint64_t address;
      uint64_t bytes;
      uint64_t pc;  // of the caller
      uint64_t pool_bytes;
      uint64_t pool_used_bytes;
    } memory;
    struct {
      uint32_t object_kind;
      uint32_t object;  // a thread, a stream
      uint64_t reserved[4];
    } overhead;
  };
};
static_assert(sizeof(DeviceRow) == 96);

constexpr bool IsHostFunction(const DeviceRow& row) {
  return row.type == DeviceRowType::kSync && row.detail == kHostFunctionSync;
}

enum class CallDomain : uint8_t { kDriver = 1, kRuntime = 2 };

// 40 bytes: a call of the CUDA runtime or driver on a host thread.
struct CallRow {
  int64_t begin_ns;
  int64_t end_ns;
  uint32_t correlation;
  uint32_t tid;     // of the kernel, as gettid() gives it
  uint32_t name;    // "cudaLaunchKernel"
  uint32_t cbid;    // its number in CUPTI's table of `domain`
  uint32_t result;  // what the call returned; 0: success
  CallDomain domain;
  uint8_t reserved[3];
};
static_assert(sizeof(CallRow) == 40);

}  // namespace trainprof::recording
