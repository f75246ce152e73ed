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
    uint32_t kind = 0;
    memcpy(&kind, buffer + at, sizeof kind);
    if (kind == kRuntimeActivity || kind == kDriverActivity) {
      const auto record = ReadRecord<ApiRecord>(buffer + at, size);
      const uint32_t correlation = record.correlation;
      if (waiting_ != 0) Answer(record);
      calls_[correlation % kNotedCalls] = correlation;
      if (kind == kRuntimeActivity) runtime_calls_[correlation % kNotedCalls] = correlation;
    }
    at += size;
  }
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

template <class Record>
void Converter::NoteAnswer(const Record& record) {
  if (record.end != 0 && record.correlation != 0) open_launches_.Answered(record.correlation);
}

void Converter::NoteHeld(const Slot& slot, const char* buffer) {
  held_ns_ = slot.held_ns.load(std::memory_order_relaxed);
  // What was read before this is true was not being cleaned.
  const auto is_held = [&] {
    std::atomic_thread_fence(std::memory_order_acquire);
    return slot.state.load(std::memory_order_acquire) == SlotState::kHeld &&
           slot.held_ns.load(std::memory_order_relaxed) == held_ns_;
  };
  const auto note = [&](const auto& record) {
    if (is_held()) NoteAnswer(record);
  };
  for (uint32_t at = 0; at < kSlotBytes;) {
    at = NextRecord(buffer, at, kSlotBytes);
    const uint32_t size = at < kSlotBytes ? SizeAt(buffer + at, kSlotBytes - at) : 0;
    if (size == 0 || !is_held()) return;
    uint32_t kind = 0;
    memcpy(&kind, buffer + at, sizeof kind);
    const char* const data = buffer + at;
    at += size;
    if (kind == kKernelActivity) note(ReadRecord<KernelRecord>(data, size));
    if (kind == kMemcpyActivity) note(ReadRecord<MemcpyRecord>(data, size));
    if (kind == kPeerMemcpyActivity) note(ReadRecord<PeerMemcpyRecord>(data, size));
    if (kind == kMemsetActivity) note(ReadRecord<MemsetRecord>(data, size));
    if (kind == kGraphActivity) note(ReadRecord<GraphRecord>(data, size));
    if (kind == kHostLaunchActivity) note(ReadRecord<HostLaunchRecord>(data, size));
    if (kind == kGraphHostNodeActivity) note(ReadRecord<GraphHostNodeRecord>(data, size));
    if (kind != kRuntimeActivity && kind != kDriverActivity) continue;
    const auto call = ReadRecord<ApiRecord>(data, size);
    const bool is_whole = call.start != 0 && call.end != 0 && call.correlation != 0;
    if (is_whole && is_held()) {
      NoteLaunch(kind == kRuntimeActivity ? CallDomain::kRuntime : CallDomain::kDriver, call);
    }
  }
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
    ++waiting_;
    return true;
  }
  return false;
}

// `next` is what its thread's buffers have behind a call that waits.
void Converter::Answer(const ApiRecord& next) {
  for (ApiRecord& place : header_->waiting_calls) {
    if (place.kind == 0 || place.thread != next.thread || IsSame(place, next)) continue;
    const bool nested = next.kind == kRuntimeActivity && next.correlation == place.correlation;
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
