// The model: devices, contexts, streams and events, and when the work that is issued to them runs.
// Times are computed when work is issued; nothing runs in the background.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "tests/virtual_gpu/model/engine.h"
#include "tests/virtual_gpu/model/settings.h"
#include "tests/virtual_gpu/model/tool.h"

namespace vgpu {

struct Capture;
struct GraphNode;

// When the latest operations of a stream end, for the bound on what may be pending.
class PendingQueue {
 public:
  // Until when the host must wait before it may issue the next operation: 0 when there is room.
  int64_t RoomAtNs() const { return ends_.empty() ? 0 : ends_[next_]; }
  void Push(int64_t end_ns);

 private:
  std::vector<int64_t> ends_;  // a ring of queue_depth entries
  size_t next_ = 0;
};

struct Stream {
  uint32_t id = 0;
  Context* context = nullptr;
  bool is_null = false;  // the legacy default stream
  bool blocking = true;  // ordered with the legacy default stream
  int priority = 0;
  int64_t tail_ns = 0;        // when all that was issued ends
  int64_t not_before_ns = 0;  // of the events that it waits for
  PendingQueue pending;
  Capture* capture = nullptr;  // being captured into a graph
  std::vector<GraphNode*> capture_frontier;
};

struct Event {
  uint32_t id = 0;
  bool timing = true;
  int64_t time_ns = 0;  // 0: never recorded
  uint64_t sync_id = 0;
  const Stream* stream = nullptr;
  Capture* capture = nullptr;  // recorded during a capture
  std::vector<GraphNode*> capture_frontier;
};

struct Context {
  uint32_t uid = 0;
  Device* device = nullptr;
  bool primary = false;
  std::atomic<bool> ready = false;  // of a primary one: created, and told of
  std::unique_ptr<Stream> null_stream;
  int64_t blocking_tail_ns = 0;  // the latest tail of its blocking streams
  int64_t latest_tail_ns = 0;    // of all its streams
};

struct Device {
  explicit Device(int ordinal);
  int ordinal;
  Engine kernels;
  Engine to_device;
  Engine to_host;
  Engine within;  // device to device
  uint64_t memory_used_bytes = 0;
  std::unique_ptr<Context> primary;
};

// What to run; Issue() says when and how long.
struct Operation {
  Work work;             // without its times
  double fixed_ns = -1;  // instead of the model's duration, before scaling
};

class Machine {
 public:
  Machine();

  std::mutex lock;  // guards everything below; never held while waiting or while a tool runs
  std::vector<std::unique_ptr<Device>> devices;

  // All with `lock` held.
  Context* PrimaryContext(Device& device, bool* created);
  std::unique_ptr<Context> NewContext(Device& device);
  std::unique_ptr<Stream> NewStream(Context& context, bool blocking, int priority);
  // Runs an operation after all that precedes it in the stream, and returns its work with its
  // times.
  Work Issue(Stream& stream, const Operation& operation, int64_t now_ns);
  // The same within a graph launch: not before ready_ns, without a place in the stream's queue.
  Work IssueNode(Stream& stream, const Operation& operation, int64_t ready_ns, int64_t now_ns);
  // When work that is issued to the stream at now_ns could start at the earliest.
  int64_t ReadyNs(const Stream& stream, int64_t now_ns);
  // What was issued to the stream ends at end_ns.
  void Extend(Stream& stream, int64_t end_ns);

  // A value of the setting's range times the scale, in nanoseconds.
  int64_t DrawNs(Setting setting);
  double Draw(double least, double greatest);

  uint32_t NextEventId() { return ++last_event_; }
  uint64_t NextEventSyncId() { return ++last_event_sync_; }

 private:
  int64_t DurationNs(const Operation& operation);
  double TransferNs(Setting gbps, uint64_t bytes);

  uint64_t random_state_;
  uint32_t last_context_ = 0;
  uint32_t last_stream_ = 5;
  uint32_t last_event_ = 0;
  uint64_t last_event_sync_ = 0;
};

// The one machine of this process: C entry points have no other way to reach it. Never destroyed,
// since programs use CUDA in their own destructors.
Machine& TheMachine();

// The 16 bytes of a GPU's UUID, or of a slice of it.
void DeviceUuid(int ordinal, bool slice, char* bytes);

// scaled as all modelled durations are
int64_t Scaled(double nanoseconds);

}  // namespace vgpu
