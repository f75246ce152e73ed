// Calls of the host, as the converter makes rows of them.
#include <string.h>

#include "collectors/cupti/converter.h"
#include "trace/recording/wire/tick_clock.h"

namespace trainprof::collectors {

using recording::CallDomain;
using recording::CallRow;

namespace {

bool IsSame(const ApiRecord& a, const ApiRecord& b) { return memcmp(&a, &b, sizeof a) == 0; }

}  // namespace

void Converter::NoteCalls(const char* buffer, uint32_t from, uint32_t valid_bytes) {
  for (uint32_t at = from; at < valid_bytes;) {
    at = NextRecord(buffer, at, valid_bytes);
    if (at >= valid_bytes) return;
    const uint32_t size = SizeAt(buffer + at, valid_bytes - at);
    const uint32_t kind = KindAt(buffer + at);
    if (kind == kRuntimeActivity || kind == kDriverActivity) {
      const auto record = ReadRecord<ApiRecord>(buffer + at, size);
      // One that CUPTI had not filled in when the program was killed has no id yet.
      if (record.correlation != 0) {
        if (waiting_ != 0) Answer(record);
        NoteCall(record);
      }
    }
    at += size;
  }
}

void Converter::NoteCall(const ApiRecord& record) {
  const uint32_t place = record.correlation % kNotedCalls;
  calls_[place] = record.correlation;
  if (record.kind == kRuntimeActivity) runtime_calls_[place] = record.correlation;
}

void Converter::NoteLaunch(CallDomain domain, const ApiRecord& record) {
  const bool succeeded = record.result == 0;
  const bool is_answered = launches_.Has(domain, record.cbid) ||
                           (awaits_host_functions_ && host_launches_.Has(domain, record.cbid));
  if (succeeded && is_answered) open_launches_.Launched(record.correlation);
  if (succeeded && capture_begins_.Has(domain, record.cbid)) {
    open_launches_.CaptureBegan(record.correlation, record.thread);
  }
  if (capture_ends_.Has(domain, record.cbid)) {
    open_launches_.CaptureEnded(record.correlation, record.thread);
  }
}

// visit(kind, record, bytes) of each, as long as CUPTI has the buffer: what is then read was not being
// cleaned.
template <class Visit>
void Converter::ForEachHeld(const Slot& slot, const char* buffer, Visit visit) {
  alignas(8) char record[512];
  held_ns_ = slot.held_ns.load(std::memory_order_relaxed);
  const auto is_held = [&] {
    std::atomic_thread_fence(std::memory_order_acquire);
    return slot.state.load(std::memory_order_acquire) == SlotState::kHeld &&
           slot.held_ns.load(std::memory_order_relaxed) == held_ns_;
  };
  for (uint32_t at = 0; at < kSlotBytes;) {
    at = NextRecord(buffer, at, kSlotBytes);
    const uint32_t size = at < kSlotBytes ? SizeAt(buffer + at, kSlotBytes - at) : 0;
    if (size == 0 || size > sizeof record) return;
    memcpy(record, buffer + at, size);
    if (!is_held()) return;
    visit(KindAt(record), record, size);
    at += size;
  }
}

void Converter::NoteHeldCalls(const Slot& slot, const char* buffer) {
  ForEachHeld(slot, buffer, [this](uint32_t kind, const char* data, uint32_t size) {
    if (kind != kRuntimeActivity && kind != kDriverActivity) return;
    const auto call = ReadRecord<ApiRecord>(data, size);
    if (call.start == 0 || call.end == 0 || call.correlation == 0) return;
    NoteCall(call);
    NoteLaunch(kind == kRuntimeActivity ? CallDomain::kRuntime : CallDomain::kDriver, call);
  });
}

// Whether it is under way, and a recorded call asked for it.
template <class Record>
bool Converter::NoteWork(const Record& record) {
  if (record.correlation == 0) return false;
  const bool has_ended = record.start != 0 && record.end != 0;
  if (has_ended) open_launches_.Answered(record.correlation);
  return !has_ended && IsRecorded(record.correlation);
}

uint64_t Converter::NoteHeldWork(const Slot& slot, const char* buffer) {
  uint64_t under_way = 0;
  ForEachHeld(slot, buffer, [&](uint32_t kind, const char* data, uint32_t size) {
    switch (kind) {
      case kKernelActivity:
        under_way += NoteWork(ReadRecord<KernelRecord>(data, size)) ? 1 : 0;
        return;
      case kMemcpyActivity:
        under_way += NoteWork(ReadRecord<MemcpyRecord>(data, size)) ? 1 : 0;
        return;
      case kPeerMemcpyActivity:
        under_way += NoteWork(ReadRecord<PeerMemcpyRecord>(data, size)) ? 1 : 0;
        return;
      case kMemsetActivity:
        under_way += NoteWork(ReadRecord<MemsetRecord>(data, size)) ? 1 : 0;
        return;
      case kGraphActivity:
        under_way += NoteWork(ReadRecord<GraphRecord>(data, size)) ? 1 : 0;
        return;
      case kHostLaunchActivity:
        under_way += NoteWork(ReadRecord<HostLaunchRecord>(data, size)) ? 1 : 0;
        return;
      case kGraphHostNodeActivity:
        under_way += NoteWork(ReadRecord<GraphHostNodeRecord>(data, size)) ? 1 : 0;
        return;
      default:
        return;
    }
  });
  return under_way;
}

void Converter::Api(const ApiRecord& record) {
  const bool runtime = record.kind == kRuntimeActivity;
  const CallDomain domain = runtime ? CallDomain::kRuntime : CallDomain::kDriver;
  if (record.start == 0 || record.end == 0) {
    if (held_ns_ == 0) ++counts_.untimed;
    return;
  }
  if (header_->whole_kinds != 0 && !wanted_.Has(domain, record.cbid)) return;
  if (!runtime && runtime_calls_[record.correlation % kNotedCalls] == record.correlation) return;
  if (!runtime && at_last_ && Wait(record)) return;
  WriteCall(domain, record);
}

// False: there is no place for it.
bool Converter::Wait(const ApiRecord& record) {
  for (ApiRecord& place : header_->waiting_calls) {
    // A process that was killed may have put it there, and not have noted that its buffer is done.
    if (place.kind != 0 && IsSame(place, record)) return true;
  }
  for (ApiRecord& place : header_->waiting_calls) {
    if (place.kind != 0) continue;
    place = record;
    other_buffer_[&place - header_->waiting_calls] = 0;
    ++waiting_;
    return true;
  }
  return false;
}

// `next` is what its thread's buffers have behind a call that waits. Two buffers may have come in the wrong order: the
// one in which the thread goes on otherwise has to be followed by another.
void Converter::Answer(const ApiRecord& next) {
  for (ApiRecord& place : header_->waiting_calls) {
    if (place.kind == 0 || place.thread != next.thread || IsSame(place, next)) continue;
    const bool nested = next.kind == kRuntimeActivity && next.correlation == place.correlation;
    uint32_t& other = other_buffer_[&place - header_->waiting_calls];
    if (!nested && other == 0) other = buffer_;
    if (!nested && other == buffer_) continue;
    if (!nested) WriteCall(CallDomain::kDriver, place);
    place.kind = 0;
    --waiting_;
  }
}

void Converter::WriteWaiting() {
  for (ApiRecord& place : header_->waiting_calls) {
    const bool nested = runtime_calls_[place.correlation % kNotedCalls] == place.correlation;
    if (place.kind != 0 && !nested) WriteCall(CallDomain::kDriver, place);
    place.kind = 0;
  }
  waiting_ = 0;
}

void Converter::WriteCall(CallDomain domain, const ApiRecord& record) {
  NoteLaunch(domain, record);
  CallRow row;
  memset(static_cast<void*>(&row), 0, sizeof row);
  row.begin_ns = HostTimeOf(record.start, header_->time_offset_ns);
  row.end_ns = HostTimeOf(record.end, header_->time_offset_ns);
  row.correlation = record.correlation;
  row.tid = record.thread;
  row.name = NameOfCall(domain, record.kind, record.cbid);
  row.cbid = record.cbid;
  row.result = record.result;
  row.domain = domain;
  const bool again = row.domain == last_call_.domain && row.correlation == last_call_.correlation &&
                     row.begin_ns == last_call_.begin_ns && row.tid == last_call_.tid;
  if (at_first_ && again) return;
  if (IsMisdated(row.begin_ns, row.end_ns)) return;
  NoteTimes(row.begin_ns, row.end_ns);
  counts_.rows += writer_->Write(row) ? 1 : 0;
}

}  // namespace trainprof::collectors
