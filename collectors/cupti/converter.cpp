#include "collectors/cupti/converter.h"

#include <stdlib.h>
#include <string.h>

#include "trace/base/names.h"
#include "trace/recording/wire/tick_clock.h"

namespace trainprof::collectors {

using recording::CallDomain;
using recording::CallRow;
using recording::DeviceRow;
using recording::DeviceRowType;
using recording::RecordType;

namespace {

constexpr uint32_t kMostNameBytes = 128;
// Times of devices are converted, by clocks that drift.
constexpr int64_t kMostSkewNs = recording::kNsPerSecond;

// CUpti_ActivityObjectKind.
constexpr uint32_t kProcessObject = 1;
using recording::kThreadObject;
constexpr uint32_t kStreamObject = 5;

uint8_t Byte(uint32_t value) { return static_cast<uint8_t>(value < 255 ? value : 255); }
uint16_t Half(int32_t value) { return static_cast<uint16_t>(value < 65535 ? value : 65535); }

// "cudaLaunchKernel_v7000" -> "cudaLaunchKernel", "cudaMemcpyAsync_ptsz_v7000" the same way.
void WithoutVersion(const char* name, char (&out)[kMostNameBytes]) {
  strncpy(out, name, sizeof out - 1);
  out[sizeof out - 1] = 0;
  for (const char* mark : {"_v", "_ptsz", "_ptds"}) {
    char* found = strstr(out, mark);
    if (found != nullptr && found != out) *found = 0;
  }
}

}  // namespace

void Converter::Init(RowWriter* writer, SlotFileHeader* header, bool in_process, CallNamer namer) {
  writer_ = writer;
  header_ = header;
  names_ = KeptNames(header->names);
  in_process_ = in_process;
  namer_ = namer;
  earliest_ns_ = in_process ? recording::MonotonicNs() - kMostSkewNs : INT64_MIN;
  for (const ApiRecord& place : header->waiting_calls) waiting_ += place.kind != 0 ? 1 : 0;
  uint32_t count = 0;
  const Call* calls = RecordedCalls(&count);
  for (uint32_t i = 0; i < count; ++i) {
    wanted_.Add(calls[i].domain, calls[i].cbid);
    if (calls[i].use == CallUse::kLaunch) launches_.Add(calls[i].domain, calls[i].cbid);
    if (calls[i].use == CallUse::kHostLaunch) host_launches_.Add(calls[i].domain, calls[i].cbid);
    const CaptureEdge edge = CaptureEdgeOf(calls[i].name);
    if (edge == CaptureEdge::kBegin) capture_begins_.Add(calls[i].domain, calls[i].cbid);
    if (edge == CaptureEdge::kEnd) capture_ends_.Add(calls[i].domain, calls[i].cbid);
  }
}

void Converter::SetLast(const DeviceRow* device, const CallRow* call) {
  if (device != nullptr) last_device_ = *device;
  if (call != nullptr) last_call_ = *call;
}

uint32_t Converter::SizeAt(const char* data, uint32_t room) const {
  if (room < sizeof(uint32_t)) return 0;
  const uint32_t kind = KindAt(data);
  const uint32_t size = kind < kActivityKinds ? header_->record_bytes[kind] : 0;
  return size <= room ? size : 0;
}

bool Converter::ChainBegins(const char* buffer, uint32_t at, uint32_t valid_bytes) const {
  constexpr int kLinks = 3;
  for (int i = 0; i < kLinks && at < valid_bytes; ++i) {
    const uint32_t size = SizeAt(buffer + at, valid_bytes - at);
    if (size == 0) return false;
    at += size;
  }
  return true;
}

bool Converter::IsCompleteInHeld(const char* data, uint32_t room) const {
  constexpr int64_t kLongestNs = 3600 * recording::kNsPerSecond;
  // Places are given in the order of launches; the one before may have waited long.
  constexpr int64_t kOlderNs = 60 * recording::kNsPerSecond;
  const uint32_t size = SizeAt(data, room);
  if (size == 0) return false;
  const uint32_t kind = KindAt(data);
  uint64_t start = 0;
  uint64_t end = 0;
  if (kind == kKernelActivity) {
    const auto record = ReadRecord<KernelRecord>(data, size);
    start = record.start, end = record.end;
  } else if (kind == kRuntimeActivity || kind == kDriverActivity) {
    const auto record = ReadRecord<ApiRecord>(data, size);
    start = record.start, end = record.end;
  }
  const int64_t begin_ns = HostTimeOf(start, header_->time_offset_ns);
  const int64_t end_ns = HostTimeOf(end, header_->time_offset_ns);
  return start != 0 && begin_ns > held_ns_ - kOlderNs && end_ns >= begin_ns &&
         end_ns - begin_ns < kLongestNs;
}

uint32_t Converter::NextRecord(const char* buffer, uint32_t at, uint32_t valid_bytes) const {
  if (SizeAt(buffer + at, valid_bytes - at) != 0) return at;
  constexpr uint32_t kStep = 8;  // records begin at multiples of it
  for (at += kStep; at < valid_bytes; at += kStep) {
    if (held_ns_ != 0 ? IsCompleteInHeld(buffer + at, valid_bytes - at)
                      : ChainBegins(buffer, at, valid_bytes)) {
      return at;
    }
  }
  return valid_bytes;
}

void Converter::Convert(const char* buffer, uint32_t valid_bytes, std::atomic<uint32_t>* done_bytes,
                        int64_t held_ns) {
  held_ns_ = held_ns;
  latest_ns_ = recording::MonotonicNs() + kMostSkewNs;
  at_first_ = true;
  ++buffer_;
  first_begin_ns_ = INT64_MAX;
  last_begin_ns_ = 0;
  uint32_t at = done_bytes->load(std::memory_order_relaxed);
  NoteCalls(buffer, at, valid_bytes);
  if (early_count_ != 0) WriteEarly();
  const auto skip = [&](uint32_t from) {
    const uint32_t next = NextRecord(buffer, from, valid_bytes);
    if (held_ns == 0) counts_.unreadable += next - from;
    return next;
  };
  if (at < valid_bytes) at = skip(at);
  while (at < valid_bytes) {
    const uint32_t size = SizeAt(buffer + at, valid_bytes - at);
    const uint32_t next = at + size < valid_bytes ? skip(at + size) : valid_bytes;
    at_last_ = next >= valid_bytes;
    ConvertOne(buffer + at, size);
    at_first_ = false;
    done_bytes->store(at + size, std::memory_order_release);
    at = next;
  }
  done_bytes->store(valid_bytes, std::memory_order_release);
}

void Converter::ConvertOne(const char* data, uint32_t size) {
  switch (KindAt(data)) {
    case kKernelActivity:
      return Kernel(ReadRecord<KernelRecord>(data, size));
    case kRuntimeActivity:
    case kDriverActivity:
      return Api(ReadRecord<ApiRecord>(data, size));
    case kMemcpyActivity:
      return Copy(ReadRecord<MemcpyRecord>(data, size));
    case kPeerMemcpyActivity:
      return PeerCopy(ReadRecord<PeerMemcpyRecord>(data, size));
    case kMemsetActivity:
      return Memset(ReadRecord<MemsetRecord>(data, size));
    case kSyncActivity:
      return Sync(ReadRecord<SyncRecord>(data, size));
    case kEventActivity:
      return Event(ReadRecord<EventRecord>(data, size));
    case kGraphHostNodeActivity:
      return HostFunction(ReadRecord<GraphHostNodeRecord>(data, size));
    case kHostLaunchActivity:
      return HostFunction(ReadRecord<HostLaunchRecord>(data, size));
    case kMemoryActivity:
      return Memory(ReadRecord<MemoryRecord>(data, size));
    case kGraphActivity:
      return Graph(ReadRecord<GraphRecord>(data, size));
    case kOverheadActivity:
      return Overhead(ReadRecord<OverheadRecord>(data, size));
    case kDeviceActivity:
      return Device(ReadRecord<DeviceRecord>(data, size));
    case kContextActivity:
      return Context(ReadRecord<ContextRecord>(data, size));
    case kStreamActivity:
      return Stream(ReadRecord<StreamRecord>(data, size));
    default:
      return;  // a kind that nobody asked for
  }
}

// With what kinds of records have under the same names, as far as this one has it.
template <class Record>
DeviceRow Converter::RowOf(DeviceRowType type, const Record& record, uint64_t begin, uint64_t end) {
  DeviceRow row;
  memset(static_cast<void*>(&row), 0, sizeof row);
  row.type = type;
  row.correlation = record.correlation;
  if constexpr (requires { record.device; }) row.device = record.device;
  if constexpr (requires { record.context; }) row.context = record.context;
  if constexpr (requires { record.stream; }) row.stream = record.stream;
  if constexpr (requires { record.graph; }) row.graph = record.graph;
  if constexpr (requires { record.graph_node; }) row.graph_node = record.graph_node;
  if constexpr (requires { record.channel; }) row.channel = record.channel;
  row.begin_ns = begin == 0 ? 0 : HostTimeOf(begin, header_->time_offset_ns);
  row.end_ns = end == 0 ? 0 : HostTimeOf(end, header_->time_offset_ns);
  return row;
}

void Converter::NoteTimes(int64_t begin_ns, int64_t end_ns) {
  if (end_ns > last_end_ns_) last_end_ns_ = end_ns;
  if (begin_ns < first_begin_ns_) first_begin_ns_ = begin_ns;
  if (begin_ns > last_begin_ns_) last_begin_ns_ = begin_ns;
}

bool Converter::IsRecorded(uint32_t correlation) const {
  return calls_[correlation % kNotedCalls] == correlation;
}

bool Converter::IsOfPause(const DeviceRow& row) const {
  if (pause_ == 0 || row.correlation == 0 || IsRecorded(row.correlation)) return false;
  // Where CUPTI gave no times: what it lost of a recorded call counts as loss.
  if (row.begin_ns == 0) return true;
  for (const Pause& pause : pauses_) {
    if (row.begin_ns >= pause.begin_ns && row.begin_ns < pause.end_ns) return true;
  }
  return false;
}

void Converter::WriteEarly() {
  const uint32_t count = early_count_;
  early_count_ = 0;  // the others may have their calls yet
  for (uint32_t i = 0; i < count; ++i) {
    const DeviceRow row = early_[i];
    if (IsRecorded(row.correlation)) {
      Write(row);
    } else {
      early_[early_count_++] = row;
    }
  }
}

void Converter::KeepEarly() {
  const int64_t since_ns = pauses_[pause_ % kPauses].begin_ns;
  const uint32_t count = early_count_;
  early_count_ = 0;
  for (uint32_t i = 0; i < count && early_count_ < kMostEarly / 2; ++i) {
    if (early_[i].begin_ns >= since_ns) early_[early_count_++] = early_[i];
  }
}

void Converter::Settle() {
  const InFlight::Rows rows = in_flight_.Settle([&](uint32_t correlation) {
    DeviceRow row;
    memset(static_cast<void*>(&row), 0, sizeof row);
    row.type = DeviceRowType::kInFlight;
    row.correlation = correlation;
    writer_->Write(row);
  });
  counts_.in_flight += rows.in_flight;
  counts_.untimed += rows.lost;
}

bool Converter::IsMisdated(int64_t begin_ns, int64_t end_ns) {
  if (begin_ns >= earliest_ns_ && end_ns <= latest_ns_) return false;
  ++counts_.misdated;
  return true;
}

bool Converter::Write(const DeviceRow& row) {
  const bool may_lack_time = row.type == DeviceRowType::kEvent;
  if (IsOfPause(row)) {
    if (row.begin_ns != 0 && early_count_ < kMostEarly) early_[early_count_++] = row;
    return false;
  }
  if (recording::IsDeviceWork(row.type) || recording::IsHostFunction(row)) {
    open_launches_.Answered(row.correlation);
  }
  if (row.graph_node != 0) last_node_ns_.store(recording::MonotonicNs(), std::memory_order_relaxed);
  if (!may_lack_time && (row.begin_ns == 0 || row.end_ns == 0)) {
    // CUPTI says of its own work that it may have no times.
    const bool is_lost =
        held_ns_ == 0 && row.type != DeviceRowType::kOverhead && !in_flight_.Take(row);
    if (is_lost) ++counts_.untimed;
    return false;
  }
  if (!may_lack_time && IsMisdated(row.begin_ns, row.end_ns)) return false;
  const bool again = row.type == last_device_.type && row.correlation == last_device_.correlation &&
                     row.begin_ns == last_device_.begin_ns && row.end_ns == last_device_.end_ns &&
                     row.graph_node == last_device_.graph_node;
  if (at_first_ && again) return false;
  if (!may_lack_time) NoteTimes(row.begin_ns, row.end_ns);
  if (!may_lack_time) in_flight_.Note(row);
  if (!writer_->Write(row)) return false;
  ++counts_.rows;
  if (row.end_ns < row.begin_ns) ++counts_.reversed;
  return true;
}

uint32_t Converter::NameAt(uint64_t pointer) {
  if (pointer == 0) return 0;
  if (!in_process_) return names_.Find(pointer);
  // By content: what lies there may have changed since the pointer was met.
  const uint32_t id = writer_->String(reinterpret_cast<const char*>(pointer));
  names_.Keep(pointer, id);
  return id;
}

uint32_t Converter::NameOfCall(CallDomain domain, uint32_t kind, uint32_t cbid) {
  if (cbid >= kMostCbids) return 0;
  uint32_t& id = call_names_[domain == CallDomain::kDriver ? 0 : 1][cbid];
  if (id != 0) return id;
  const uint64_t key = CallKey(kind, cbid);
  if (namer_ == nullptr && (id = names_.Find(key)) != 0) return id;
  const char* text = namer_ == nullptr ? NameOfRecorded(domain, cbid) : namer_(domain, cbid);
  if (text == nullptr) return 0;
  char name[kMostNameBytes];
  WithoutVersion(text, name);
  id = writer_->String(name);
  if (id != 0) names_.Keep(key, id);
  return id;
}

void Converter::Kernel(const KernelRecord& record) {
  DeviceRow row = RowOf(DeviceRowType::kKernel, record, record.start, record.end);
  for (int i = 0; i < 3; ++i) {
    row.kernel.grid[i] = static_cast<uint32_t>(record.grid[i]);
    row.kernel.block[i] = Half(record.block[i]);
    row.kernel.cluster[i] = Byte(record.cluster[i]);
  }
  row.kernel.registers_per_thread = record.registers_per_thread;
  row.kernel.static_shared_bytes = static_cast<uint32_t>(record.static_shared_bytes);
  row.kernel.dynamic_shared_bytes = static_cast<uint32_t>(record.dynamic_shared_bytes);
  row.kernel.executed_shared_bytes = record.executed_shared_bytes;
  row.kernel.local_bytes_per_thread = record.local_bytes_per_thread;
  row.name = NameAt(record.name);
  if (Write(row) && row.name == 0) ++(record.name == 0 ? counts_.nameless : counts_.unnamed);
}

void Converter::Copy(const MemcpyRecord& record) {
  DeviceRow row = RowOf(DeviceRowType::kCopy, record, record.start, record.end);
  row.detail = record.copy_kind;
  row.source_kind = record.source_kind;
  row.target_kind = record.target_kind;
  row.copy.bytes = record.bytes;
  row.copy.count = record.count;
  row.copy.flags = record.flags;
  Write(row);
}

void Converter::PeerCopy(const PeerMemcpyRecord& record) {
  DeviceRow row = RowOf(DeviceRowType::kPeerCopy, record, record.start, record.end);
  row.detail = record.copy_kind;
  row.source_kind = record.source_kind;
  row.target_kind = record.target_kind;
  row.copy.bytes = record.bytes;
  row.copy.source_device = record.source_device;
  row.copy.source_context = record.source_context;
  row.copy.target_device = record.target_device;
  row.copy.target_context = record.target_context;
  row.copy.flags = record.flags;
  Write(row);
}

void Converter::Memset(const MemsetRecord& record) {
  DeviceRow row = RowOf(DeviceRowType::kMemset, record, record.start, record.end);
  row.source_kind = Byte(record.memory_kind);
  row.memset.bytes = record.bytes;
  row.memset.value = record.value;
  row.memset.flags = record.flags;
  Write(row);
}

void Converter::Sync(const SyncRecord& record) {
  DeviceRow row = RowOf(DeviceRowType::kSync, record, record.start, record.end);
  row.device = device_of_context_[record.context % kContexts];
  row.detail = Byte(record.type);
  row.sync.sync_id = record.sync_id;
  row.sync.event = record.event;
  row.sync.result = record.result;
  Write(row);
}

void Converter::Event(const EventRecord& record) {
  DeviceRow row =
      RowOf(DeviceRowType::kEvent, record, record.device_timestamp, record.device_timestamp);
  row.device = device_of_context_[record.context % kContexts];
  row.sync.sync_id = record.sync_id;
  row.sync.event = record.event;
  Write(row);
}

template <class Record>
void Converter::HostFunction(const Record& record) {
  DeviceRow row = RowOf(DeviceRowType::kSync, record, record.start, record.end);
  row.detail = recording::kHostFunctionSync;
  row.sync.thread = record.thread;
  Write(row);
}

void Converter::Memory(const MemoryRecord& record) {
  DeviceRow row = RowOf(DeviceRowType::kMemory, record, record.timestamp, record.timestamp);
  row.detail = Byte(record.operation);
  row.source_kind = Byte(record.memory_kind);
  row.memory.address = record.address;
  row.memory.bytes = record.bytes;
  row.memory.pc = record.pc;
  row.memory.pool_bytes = record.pool_bytes;
  row.memory.pool_used_bytes = record.pool_used_bytes;
  Write(row);
}

void Converter::Graph(const GraphRecord& record) {
  Write(RowOf(DeviceRowType::kGraph, record, record.start, record.end));
}

void Converter::Overhead(const OverheadRecord& record) {
  DeviceRow row = RowOf(DeviceRowType::kOverhead, record, record.start, record.end);
  row.detail = recording::OverheadDetail(record.overhead_kind);
  row.overhead.object_kind = record.object_kind;
  if (record.object_kind == kProcessObject || record.object_kind == kThreadObject) {
    row.overhead.object = record.object[1];
  } else {
    row.device = record.object[0];
    row.context = record.object[1];
    row.stream = record.object[2];
    row.overhead.object = record.object_kind == kStreamObject ? record.object[2] : 0;
  }
  Write(row);
  if (in_process_) free(reinterpret_cast<void*>(record.data));
}

void Converter::Device(const DeviceRecord& record) {
  recording::DeviceFacts facts{};
  facts.ordinal = record.id;
  facts.multiprocessors = record.multiprocessors;
  facts.compute_major = record.compute_major;
  facts.compute_minor = record.compute_minor;
  facts.memory_bytes = record.memory_bytes;
  facts.memory_bytes_per_second = record.memory_kb_per_second * 1000;
  facts.clock_khz = record.clock_khz;
  facts.warps_per_multiprocessor = record.warps_per_multiprocessor;
  facts.blocks_per_multiprocessor = record.blocks_per_multiprocessor;
  facts.registers_per_multiprocessor = record.registers_per_multiprocessor;
  facts.shared_bytes_per_multiprocessor = record.shared_bytes_per_multiprocessor;
  facts.shared_bytes_per_block = record.shared_bytes_per_block;
  facts.copy_engines = record.copy_engines;
  facts.flags = record.mig != 0 ? 1 : 0;
  memcpy(facts.uuid, record.uuid, sizeof facts.uuid);
  writer_->Record(RecordType::kDevice, 0, NameAt(record.name), &facts, sizeof facts / 8);
}

void Converter::Context(const ContextRecord& record) {
  device_of_context_[record.context % kContexts] = record.device;
  const uint64_t words[2] = {record.context | uint64_t{record.device} << 32, record.null_stream};
  writer_->Record(RecordType::kContext, 0, 0, words, 2);
}

void Converter::Stream(const StreamRecord& record) {
  const uint64_t words[3] = {record.context | uint64_t{record.stream} << 32,
                             static_cast<uint64_t>(static_cast<int32_t>(record.priority)),
                             record.flags};
  writer_->Record(RecordType::kStream, 0, 0, words, 3);
}

}  // namespace trainprof::collectors
