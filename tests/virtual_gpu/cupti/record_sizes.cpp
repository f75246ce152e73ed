// Sizes of activity records, by kind and by version of the library that is emulated. Those of 13.0
// are compared with a real library where there is one (real_library_test.cpp); the older ones
// follow what CUPTI's headers and release notes say about each structure.
#include <cstdio>
#include <cstdlib>

#include "tests/virtual_gpu/cupti/records.h"
#include "tests/virtual_gpu/model/faults.h"

namespace vgpu {
namespace {

constexpr uint32_t kThisToolkit = 13000;

// A kind's record, and the shorter one that libraries before `since` wrote: newer fields come last.
struct Size {
  CUpti_ActivityKind kind;
  size_t bytes;
  uint32_t since;
  size_t bytes_before;
};

constexpr Size kSizes[] = {
    {CUPTI_ACTIVITY_KIND_MEMCPY, sizeof(CUpti_ActivityMemcpy6), 12080,
     sizeof(CUpti_ActivityMemcpy5)},
    {CUPTI_ACTIVITY_KIND_MEMSET, sizeof(CUpti_ActivityMemset4), 0, 0},
    {CUPTI_ACTIVITY_KIND_KERNEL, sizeof(CUpti_ActivityKernel10), 13000,
     sizeof(CUpti_ActivityKernel9)},
    {CUPTI_ACTIVITY_KIND_DRIVER, sizeof(CUpti_ActivityAPI), 0, 0},
    {CUPTI_ACTIVITY_KIND_RUNTIME, sizeof(CUpti_ActivityAPI), 0, 0},
    {CUPTI_ACTIVITY_KIND_DEVICE, sizeof(CUpti_ActivityDevice5), 12080,
     sizeof(CUpti_ActivityDevice4)},
    {CUPTI_ACTIVITY_KIND_CONTEXT, sizeof(CUpti_ActivityContext3), 12080,
     sizeof(CUpti_ActivityContext)},
    {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, sizeof(CUpti_ActivityKernel10), 13000,
     sizeof(CUpti_ActivityKernel9)},
    {CUPTI_ACTIVITY_KIND_NAME, sizeof(CUpti_ActivityName), 0, 0},
    {CUPTI_ACTIVITY_KIND_MARKER, sizeof(CUpti_ActivityMarker2), 0, 0},
    {CUPTI_ACTIVITY_KIND_MARKER_DATA, sizeof(CUpti_ActivityMarkerData2), 13000,
     sizeof(CUpti_ActivityMarkerData)},
    {CUPTI_ACTIVITY_KIND_OVERHEAD, sizeof(CUpti_ActivityOverhead3), 12040,
     sizeof(CUpti_ActivityOverhead)},
    {CUPTI_ACTIVITY_KIND_CDP_KERNEL, sizeof(CUpti_ActivityCdpKernel), 0, 0},
    {CUPTI_ACTIVITY_KIND_PREEMPTION, sizeof(CUpti_ActivityPreemption), 0, 0},
    {CUPTI_ACTIVITY_KIND_ENVIRONMENT, sizeof(CUpti_ActivityEnvironment), 0, 0},
    {CUPTI_ACTIVITY_KIND_MEMCPY2, sizeof(CUpti_ActivityMemcpyPtoP4), 0, 0},
    {CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER, sizeof(CUpti_ActivityUnifiedMemoryCounter3), 13000,
     sizeof(CUpti_ActivityUnifiedMemoryCounter2)},
    {CUPTI_ACTIVITY_KIND_FUNCTION, sizeof(CUpti_ActivityFunction), 0, 0},
    {CUPTI_ACTIVITY_KIND_MODULE, sizeof(CUpti_ActivityModule), 0, 0},
    {CUPTI_ACTIVITY_KIND_DEVICE_ATTRIBUTE, sizeof(CUpti_ActivityDeviceAttribute), 0, 0},
    {CUPTI_ACTIVITY_KIND_OPENACC_DATA, sizeof(CUpti_ActivityOpenAccData), 0, 0},
    {CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH, sizeof(CUpti_ActivityOpenAccLaunch), 0, 0},
    {CUPTI_ACTIVITY_KIND_OPENACC_OTHER, sizeof(CUpti_ActivityOpenAccOther), 0, 0},
    {CUPTI_ACTIVITY_KIND_CUDA_EVENT, sizeof(CUpti_ActivityCudaEvent2), 12080,
     sizeof(CUpti_ActivityCudaEvent)},
    {CUPTI_ACTIVITY_KIND_STREAM, sizeof(CUpti_ActivityStream), 0, 0},
    {CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, sizeof(CUpti_ActivitySynchronization2), 12080,
     sizeof(CUpti_ActivitySynchronization)},
    {CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, sizeof(CUpti_ActivityExternalCorrelation), 0, 0},
    {CUPTI_ACTIVITY_KIND_NVLINK, sizeof(CUpti_ActivityNvLink4), 0, 0},
    {CUPTI_ACTIVITY_KIND_MEMORY, sizeof(CUpti_ActivityMemory), 0, 0},
    {CUPTI_ACTIVITY_KIND_PCIE, sizeof(CUpti_ActivityPcie), 0, 0},
    {CUPTI_ACTIVITY_KIND_OPENMP, sizeof(CUpti_ActivityOpenMp), 0, 0},
    {CUPTI_ACTIVITY_KIND_INTERNAL_LAUNCH_API, sizeof(CUpti_ActivityAPI), 0, 0},
    {CUPTI_ACTIVITY_KIND_MEMORY2, sizeof(CUpti_ActivityMemory4), 12060,
     sizeof(CUpti_ActivityMemory3)},
    {CUPTI_ACTIVITY_KIND_MEMORY_POOL, sizeof(CUpti_ActivityMemoryPool3), 13000,
     sizeof(CUpti_ActivityMemoryPool2)},
    {CUPTI_ACTIVITY_KIND_GRAPH_TRACE, sizeof(CUpti_ActivityGraphTrace2), 12040,
     sizeof(CUpti_ActivityGraphTrace)},
    {CUPTI_ACTIVITY_KIND_JIT, sizeof(CUpti_ActivityJit2), 0, 0},
    {CUPTI_ACTIVITY_KIND_DEVICE_GRAPH_TRACE, sizeof(CUpti_ActivityDeviceGraphTrace), 12050, 0},
    {CUPTI_ACTIVITY_KIND_MEM_DECOMPRESS, sizeof(CUpti_ActivityMemDecompress), 12080, 0},
    {CUPTI_ACTIVITY_KIND_CONFIDENTIAL_COMPUTE_ROTATION,
     sizeof(CUpti_ActivityConfidentialComputeRotation), 12090, 0},
    {kGraphHostNodeKind, sizeof(GraphHostNodeRecord), 13010, 0},
    {kHostLaunchKind, sizeof(HostLaunchRecord), 13010, 0},
};

struct Version {
  uint32_t toolkit;
  int update;  // -1: not said
};

Version ParseVersion() {
  if (Has(Fault::wrong_libcupti)) {
    return {static_cast<uint32_t>(FaultNumber(Fault::wrong_libcupti, kThisToolkit)), -1};
  }
  const char* text = getenv("VGPU_CUPTI_VERSION");
  if (text == nullptr || *text == '\0') return {kDefaultToolkit, -1};
  unsigned major = 0;
  unsigned minor = 0;
  int update = -1;
  if (sscanf(text, "%u.%u.%d", &major, &minor, &update) < 2) {
    fprintf(stderr, "virtual GPU: VGPU_CUPTI_VERSION: \"%s\" is no version like 12.4\n", text);
    exit(2);
  }
  return {major * 1000 + minor * 10, update};
}

const Version& TheVersion() {
  static const Version version = ParseVersion();
  return version;
}

}  // namespace

uint32_t EmulatedToolkit() { return TheVersion().toolkit; }

uint32_t EmulatedApiVersion() {
  const uint32_t toolkit = EmulatedToolkit();
  const bool readable = toolkit >= 13000;  // xxyyzz since 13.0
  if (readable && TheVersion().update >= 0) {
    return toolkit * 10 + static_cast<uint32_t>(TheVersion().update);
  }
  if (toolkit == kThisToolkit) return CUPTI_API_VERSION;
  if (readable) return toolkit * 10;
  struct Known {
    uint32_t toolkit;
    uint32_t api;
  };
  constexpr Known kKnown[] = {{12090, 28}, {12080, 26}, {12060, 24}, {12050, 23}, {12040, 22},
                              {12030, 21}, {12020, 20}, {12000, 19}, {11080, 18}};
  for (const Known& known : kKnown) {
    if (toolkit >= known.toolkit) return known.api;
  }
  return 17;
}

size_t RecordBytes(CUpti_ActivityKind kind) {
  for (const Size& size : kSizes) {
    if (size.kind == kind) return EmulatedToolkit() >= size.since ? size.bytes : size.bytes_before;
  }
  return 0;
}

}  // namespace vgpu
