// Activity records: what the library of an emulated version writes for what the device did.
#pragma once

#include <cupti.h>

#include <cstddef>
#include <cstdint>

#include "tests/virtual_gpu/cupti/buffers.h"
#include "tests/virtual_gpu/model/tool.h"

namespace vgpu {

// What the library is without VGPU_CUPTI_VERSION: 13.0 as libcupti.so.13, 12.9 as libcupti.so.12.
extern const uint32_t kDefaultToolkit;
// Of the toolkit whose CUPTI this is, as 12040 for 12.4.
uint32_t EmulatedToolkit();
// What cuptiGetVersion says for it.
uint32_t EmulatedApiVersion();

// The first number that 13.0 does not know.
constexpr auto kFirstNewerKind = static_cast<CUpti_ActivityKind>(56);
// CUPTI_ACTIVITY_KIND_GRAPH_HOST_NODE and _HOST_LAUNCH, from 13.1 on, CUpti_ActivityGraphHostNode and
// CUpti_ActivityHostLaunch: older headers lack them.
constexpr auto kGraphHostNodeKind = static_cast<CUpti_ActivityKind>(56);
struct GraphHostNodeRecord {
  CUpti_ActivityKind kind;
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
constexpr auto kHostLaunchKind = static_cast<CUpti_ActivityKind>(58);
struct HostLaunchRecord {
  CUpti_ActivityKind kind;
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

// Bytes of a record of this kind in the emulated version; 0 for a kind that it does not have.
size_t RecordBytes(CUpti_ActivityKind kind);

// A record and what will be filled in when the work has ended.
struct Record {
  alignas(8) uint8_t bytes[256] = {};
  size_t size = 0;
  PendingTimes times;
};

// of a kernel, copy, memset, event or graph.
CUpti_ActivityKind KindOf(const Work& work);

struct RecordOptions {
  bool latency_timestamps = false;  // of kernels: when they were queued and submitted
  bool event_timestamps = false;    // of CUDA events
};
Record RecordOf(const Work& work, const RecordOptions& options);

}  // namespace vgpu
