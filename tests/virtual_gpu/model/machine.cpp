#include "tests/virtual_gpu/model/machine.h"

#include <algorithm>
#include <cstring>

#include "tests/virtual_gpu/model/clock.h"
#include "tests/virtual_gpu/model/faults.h"
#include "tests/virtual_gpu/model/kernels.h"

namespace vgpu {
namespace {

bool OnHost(MemoryKind kind) {
  return kind == MemoryKind::kPageable || kind == MemoryKind::kPinned;
}

Engine* EngineFor(const Work& work, Device& device) {
  switch (work.kind) {
    case WorkKind::kKernel:
    case WorkKind::kMemset:
      return &device.kernels;
    case WorkKind::kPeerCopy:
      return &work.source_context->device->to_host;
    case WorkKind::kCopy:
      if (OnHost(work.target)) return &device.to_host;
      return OnHost(work.source) ? &device.to_device : &device.within;
    case WorkKind::kEvent:
    case WorkKind::kGraph:
      break;
  }
  return nullptr;
}

Setting BandwidthOf(const Work& work) {
  if (work.kind == WorkKind::kPeerCopy) return Setting::p2p_gbps;
  if (work.target == MemoryKind::kPageable) return Setting::d2h_pageable_gbps;
  if (work.target == MemoryKind::kPinned) return Setting::d2h_pinned_gbps;
  if (work.source == MemoryKind::kPageable) return Setting::h2d_pageable_gbps;
  if (work.source == MemoryKind::kPinned) return Setting::h2d_pinned_gbps;
  return Setting::d2d_gbps;
}

uint64_t ThreadsOf(const Work& work) {
  uint64_t threads = 1;
  for (int i = 0; i < 3; ++i) threads *= uint64_t{work.grid[i]} * work.block[i];
  return threads;
}

}  // namespace

void PendingQueue::Push(int64_t end_ns) {
  if (ends_.empty())
    ends_.resize(std::max<size_t>(1, static_cast<size_t>(Least(Setting::queue_depth))));
  ends_[next_] = end_ns;
  next_ = next_ + 1 == ends_.size() ? 0 : next_ + 1;
}

Device::Device(int device_ordinal)
    : ordinal(device_ordinal),
      kernels(static_cast<int>(Least(Setting::kernel_slots))),
      to_device(static_cast<int>(Least(Setting::copy_engines))),
      to_host(static_cast<int>(Least(Setting::copy_engines))),
      within(1) {}

Machine::Machine() : random_state_(static_cast<uint64_t>(Least(Setting::seed))) {
  const int count = Has(Fault::no_device) ? 0 : static_cast<int>(Least(Setting::devices));
  for (int i = 0; i < count; ++i) devices.push_back(std::make_unique<Device>(i));
}

Context* Machine::PrimaryContext(Device& device, bool* created) {
  *created = device.primary == nullptr;
  if (*created) {
    device.primary = NewContext(device);
    device.primary->primary = true;
  }
  return device.primary.get();
}

std::unique_ptr<Context> Machine::NewContext(Device& device) {
  auto context = std::make_unique<Context>();
  context->uid = ++last_context_;
  context->device = &device;
  // The driver makes eight streams of its own in each context, the second of which is the null
  // stream: in the first context it has number 7, and the program's streams begin at 14.
  constexpr uint32_t kStreamsOfDriver = 8;
  const uint32_t first = last_stream_ + 1;
  context->null_stream = NewStream(*context, true, 0);
  context->null_stream->id = first + 1;
  context->null_stream->is_null = true;
  last_stream_ = first + kStreamsOfDriver - 1;
  return context;
}

std::unique_ptr<Stream> Machine::NewStream(Context& context, bool blocking, int priority) {
  auto stream = std::make_unique<Stream>();
  stream->id = ++last_stream_;
  stream->context = &context;
  stream->blocking = blocking;
  stream->priority = priority;
  return stream;
}

int64_t Machine::ReadyNs(const Stream& stream, int64_t now_ns) {
  const Context& context = *stream.context;
  int64_t before = std::max(stream.tail_ns, stream.not_before_ns);
  if (stream.is_null) {
    before = std::max(before, context.blocking_tail_ns);
  } else if (stream.blocking) {
    before = std::max(before, context.null_stream->tail_ns);
  }
  const int64_t idle = now_ns + DrawNs(Setting::launch_latency_ns);
  return before > idle ? before + DrawNs(Setting::kernel_gap_ns) : idle;
}

void Machine::Extend(Stream& stream, int64_t end_ns) {
  Context& context = *stream.context;
  stream.tail_ns = std::max(stream.tail_ns, end_ns);
  if (stream.blocking) context.blocking_tail_ns = std::max(context.blocking_tail_ns, end_ns);
  context.latest_tail_ns = std::max(context.latest_tail_ns, end_ns);
}

Work Machine::IssueNode(Stream& stream, const Operation& operation, int64_t ready_ns,
                        int64_t now_ns) {
  Work work = operation.work;
  const int64_t duration = DurationNs(operation);
  Engine* engine = EngineFor(work, *stream.context->device);
  work.stream = &stream;
  work.correlation = CurrentCorrelation();
  work.issued_ns = now_ns;
  work.start_ns = engine == nullptr ? ready_ns : engine->Reserve(ready_ns, duration, now_ns);
  work.end_ns = work.start_ns + duration;
  return work;
}

Work Machine::Issue(Stream& stream, const Operation& operation, int64_t now_ns) {
  const Work work = IssueNode(stream, operation, ReadyNs(stream, now_ns), now_ns);
  Extend(stream, work.end_ns);
  stream.pending.Push(work.end_ns);
  return work;
}

double Machine::Draw(double least, double greatest) {
  if (least >= greatest) return least;
  uint64_t z = (random_state_ += 0x9E3779B97F4A7C15ull);  // splitmix64
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  z ^= z >> 31;
  return least + (greatest - least) * static_cast<double>(z >> 11) * 0x1.0p-53;
}

int64_t Machine::DrawNs(Setting setting) {
  const Range range = Get(setting);
  return Scaled(Draw(range.least, range.greatest));
}

double Machine::TransferNs(Setting gbps, uint64_t bytes) {
  const Range range = Get(gbps);
  return static_cast<double>(bytes) / Draw(range.least, range.greatest);  // bytes / (GB/s) is ns
}

int64_t Machine::DurationNs(const Operation& operation) {
  const Work& work = operation.work;
  const auto draw = [this](Setting setting) {
    return Draw(Get(setting).least, Get(setting).greatest);
  };
  double duration = operation.fixed_ns;
  if (duration < 0) {
    switch (work.kind) {
      case WorkKind::kKernel:
        duration = DrawKernelNs(*work.kernel, ThreadsOf(work));
        break;
      case WorkKind::kCopy:
      case WorkKind::kPeerCopy:
        duration = draw(Setting::copy_latency_ns) + TransferNs(BandwidthOf(work), work.bytes);
        break;
      case WorkKind::kMemset:
        duration = draw(Setting::memset_latency_ns) + TransferNs(Setting::memset_gbps, work.bytes);
        break;
      case WorkKind::kEvent:
      case WorkKind::kGraph:
        duration = draw(Setting::event_ns);
    }
  }
  return std::max<int64_t>(1, Scaled(duration));
}

Machine& TheMachine() {
  static Machine* const machine = new Machine;
  return *machine;
}

void DeviceUuid(int ordinal, bool slice, char* bytes) {
  memcpy(bytes, slice ? "virtual slice 0" : "virtual gpu 000", 15);
  bytes[15] = static_cast<char>(ordinal);
}

int64_t Scaled(double nanoseconds) {
  return static_cast<int64_t>(nanoseconds * Least(Setting::scale));
}

}  // namespace vgpu
