// The seam between the virtual GPU and a tool (CUPTI): what is told of calls, of device work, of
// objects. With no tool attached a call costs one load and one branch here.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace vgpu {

struct Context;
struct Device;
struct Kernel;
struct Stream;

enum class ApiDomain : uint8_t { kDriver, kRuntime };

// Of CUPTI, at a time.
constexpr size_t kMostClients = 4;

// One CUDA API call of one thread, alive while the call runs. Driver calls made by a runtime call
// have its correlation.
struct ApiCall {
  ApiDomain domain;
  uint32_t cbid;
  const void* params;    // the *_params structure of CUPTI's generated headers
  const Kernel* kernel;  // launches only
  uint32_t correlation;  // 0: no tool was attached when the call began
  int result;            // cudaError_t or CUresult; valid on exit
  // Of each client.
  uint64_t tool_data[kMostClients];   // CUPTI's correlationData
  uint64_t tool_start[kMostClients];  // its time stamp
};

enum class WorkKind : uint8_t { kKernel, kCopy, kPeerCopy, kMemset, kEvent, kGraph };
enum class MemoryKind : uint8_t {
  kUnknown,
  kPageable,
  kPinned,
  kDevice,
  kManaged
};  // 0-3 as in CUPTI

// An operation of the device; its times are known as soon as it is issued. CLOCK_MONOTONIC
// nanoseconds.
struct Work {
  WorkKind kind;
  uint32_t correlation = 0;
  const Stream* stream = nullptr;
  int64_t issued_ns = 0;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  // kernels
  const Kernel* kernel = nullptr;
  uint32_t grid[3] = {};
  uint32_t block[3] = {};
  uint32_t cluster[3] = {};
  uint32_t dynamic_shared_bytes = 0;
  // copies and memsets
  uint64_t bytes = 0;
  MemoryKind source = MemoryKind::kUnknown;
  MemoryKind target = MemoryKind::kUnknown;
  bool asynchronous = false;
  const Context* source_context = nullptr;  // peer copies
  const Context* target_context = nullptr;
  uint32_t value = 0;
  // events
  uint32_t event_id = 0;
  uint64_t event_sync_id = 0;
  // graphs: 0 outside
  uint32_t graph_id = 0;
  uint64_t graph_node_id = 0;
  bool graph_knew_tool = false;  // when it was instantiated, the tool recorded kernels
};

enum class SyncKind : uint8_t { kEvent = 1, kStreamWaitsEvent, kStream, kContext };  // as in CUPTI

struct Sync {
  SyncKind kind;
  uint32_t correlation;
  const Context* context;
  const Stream* stream;  // null: the kind has none
  uint32_t event_id;     // 0: the kind has none
  uint64_t event_sync_id;
  int64_t start_ns;
  int64_t end_ns;
};

struct MemoryOperation {
  bool release;
  bool asynchronous;
  MemoryKind kind;
  uint32_t correlation;
  uint64_t address;
  uint64_t bytes;
  const Context* context;
  const Stream* stream;  // null: not ordered in a stream
};

// A host function of a stream that has returned. Told by the thread that ran it, when the stream may be gone.
struct HostFunctionRun {
  uint32_t correlation;
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  uint32_t graph_id;  // 0 outside
  uint64_t graph_node_id;
  int64_t start_ns;
  int64_t end_ns;
};

class Tool {
 public:
  virtual ~Tool() = default;
  virtual void Enter(ApiCall& call) = 0;
  virtual void Exit(ApiCall& call) = 0;
  virtual void Issued(const Work& work) = 0;
  virtual bool RecordsKernels() const = 0;
  virtual void Synchronized(const Sync& sync) = 0;
  // An operation waited for room in the stream's queue.
  virtual void QueueWasFull(const Stream& stream, int64_t start_ns, int64_t end_ns) = 0;
  virtual void Memory(const MemoryOperation& operation) = 0;
  virtual void Ran(const HostFunctionRun& run) = 0;
  virtual void Created(const Context& context) = 0;
  virtual void Created(const Stream& stream) = 0;
  virtual void Destroyed(const Stream& stream) = 0;
};

// Null while there is none. A tool that was attached once stays alive as long as the process.
extern std::atomic<Tool*> attached_tool;
inline Tool* AttachedTool() { return attached_tool.load(std::memory_order_acquire); }

// The correlation of the call that this thread is in; 0 outside, and when no tool is attached.
uint32_t CurrentCorrelation();

// Frames an API call: tells the tool, gives the call a correlation and makes it take its modelled
// time.
class ApiScope {
 public:
  ApiScope(ApiDomain domain, uint32_t cbid, const void* params);
  ~ApiScope();
  ApiScope(const ApiScope&) = delete;
  ApiScope& operator=(const ApiScope&) = delete;

  // For a launch: what the tool shows as the symbol.
  void SetKernel(const Kernel* kernel) { call_.kernel = kernel; }
  // The call lasts at least this long, by the host's clock.
  void TakeAtLeast(int64_t duration_ns) { duration_ns_ = duration_ns; }
  int Return(int result) {
    call_.result = result;
    return result;
  }
  // When the call began; 0 with neither a tool nor a modelled duration.
  int64_t start_ns() const { return start_ns_; }

 private:
  ApiCall call_;
  Tool* tool_;
  uint32_t outer_correlation_;
  int64_t start_ns_ = 0;
  int64_t duration_ns_ = 0;
};

// Whether the innermost call of this thread was made by another one.
bool NestedInApiCall();

// API calls of this process so far, runtime and driver.
uint64_t ApiCallCount();

}  // namespace vgpu
