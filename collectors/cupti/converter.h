// Makes rows of CUPTI's records: in the profiled process as buffers are delivered, and in the
// supervisor from what a killed process left.
#pragma once

#include <atomic>
#include <cstdint>

#include "collectors/core/row_writer.h"
#include "collectors/cupti/calls.h"
#include "collectors/cupti/in_flight.h"
#include "collectors/cupti/open_launches.h"
#include "collectors/cupti/records.h"
#include "collectors/cupti/slot_file.h"

namespace trainprof::collectors {

// The name of a call, e.g. "cudaLaunchKernel_v7000", or nullptr.
using CallNamer = const char* (*)(recording::CallDomain domain, uint32_t cbid);

// CUPTI's time as the host's. A dead process's file may hold anything: wraps, never traps.
inline int64_t HostTimeOf(uint64_t time, int64_t offset) {
  return static_cast<int64_t>(time + static_cast<uint64_t>(offset));
}

class Converter {
 public:
  struct Counts {
    uint64_t rows;
    uint64_t untimed;     // CUPTI had no time stamps for them: they are no rows
    uint64_t reversed;    // rows that end before they begin, as where CUPTI has no place for times
    uint64_t in_flight;   // nor for these, which were under way when the program ended
    uint64_t misdated;    // likewise, their times are from before this converter, or ahead of now
    uint64_t unreadable;  // bytes of records of unknown size
    uint64_t nameless;    // kernels that CUPTI gave no name
    uint64_t unnamed;     // kernels whose name was not kept when the process died
    uint64_t under_way;   // calls that had not returned when the program ended; they are rows
  };

  // `in_process`: pointers in the records are good, and memory that a record owns is freed.
  // `header` must outlive the converter. `namer` may be nullptr: names are those kept in the
  // header.
  void Init(RowWriter* writer, SlotFileHeader* header, bool in_process, CallNamer namer);

  // Makes rows of the records in [*done, valid) of a buffer, moving *done behind each. `held_ns`: 0, or
  // since when (CLOCK_MONOTONIC) CUPTI has had it, and not delivered it; what is incomplete there is
  // passed over.
  void Convert(const char* buffer, uint32_t valid_bytes, std::atomic<uint32_t>* done_bytes,
               int64_t held_ns);

  // Of buffers that CUPTI has: first which calls each tells of; then what it says of the work that they
  // asked for, and how much of it is under way. That is known from here alone: a flush delivers no buffer in
  // which a record is incomplete.
  void NoteHeldCalls(const Slot& slot, const char* buffer);
  uint64_t NoteHeldWork(const Slot& slot, const char* buffer);

  // Rows that were written last: the first record of a buffer that makes one of them again is
  // passed over, since the process may have died between a row and the note of it. Either may be
  // nullptr.
  void SetLast(const recording::DeviceRow* device, const recording::CallRow* call);

  // Between the two, in CLOCK_MONOTONIC, calls are not recorded, and what devices did is no row unless
  // a recorded call asked for it.
  void BeginPause(int64_t now_ns) {
    KeepEarly();
    pauses_[++pause_ % kPauses] = {now_ns, INT64_MAX};
  }
  void EndPause(int64_t now_ns) {
    Pause& last = pauses_[pause_ % kPauses];
    if (last.end_ns == INT64_MAX) last.end_ns = now_ns;
  }
  // Whether launches of host functions are answered by records of them. Before the first call.
  void AwaitHostFunctions(bool await) { awaits_host_functions_ = await; }
  // What is delivered from here on may have been under way.
  void ProgramEnds() { in_flight_.ProgramEnds(); }
  // Counts what was: after the last buffer.
  void Settle();
  // Rows of driver's calls that ended a buffer and wait for what follows (SlotFileHeader). After the last
  // buffer.
  void WriteWaiting();
  // Rows, once, of calls that have not returned at `end_ns` (CLOCK_MONOTONIC), up to then. After the last
  // buffer.
  void EndOpenCalls(int64_t end_ns);
  // Recorded launches that no record of a device, or of a host function, has answered. Any thread may
  // ask.
  uint32_t unanswered() const { return open_launches_.count(); }
  void ForgetLaunches() { open_launches_.Forget(); }
  // CLOCK_MONOTONIC: when a graph's node of a recorded launch was last met; 0: never. A launch has many,
  // the first of which answers it. Any thread may ask.
  int64_t last_node_ns() const { return last_node_ns_.load(std::memory_order_relaxed); }

  const Counts& counts() const { return counts_; }
  // CLOCK_MONOTONIC: the latest end of a row.
  int64_t last_end_ns() const { return last_end_ns_; }
  // Likewise, the earliest and the latest begin in the last buffer; INT64_MAX and 0 without rows.
  int64_t first_begin_ns() const { return first_begin_ns_; }
  int64_t last_begin_ns() const { return last_begin_ns_; }

 private:
  // The bytes of the record at `data`; 0: unknown.
  uint32_t SizeAt(const char* data, uint32_t room) const;
  // Where the next record of a known size begins, from `at` on. Behind one of unknown size, which in a
  // held buffer may be one that is not written yet, that is where several records follow each other; in
  // a held one, where a kernel or a call begins whose times can be.
  uint32_t NextRecord(const char* buffer, uint32_t at, uint32_t valid_bytes) const;
  bool IsCompleteInHeld(const char* data, uint32_t room) const;
  bool ChainBegins(const char* buffer, uint32_t at, uint32_t valid_bytes) const;
  bool IsRecorded(uint32_t correlation) const;
  void NoteCalls(const char* buffer, uint32_t from, uint32_t valid_bytes);
  void NoteCall(const ApiRecord& record);
  void ConvertOne(const char* data, uint32_t size);
  void Kernel(const KernelRecord& record);
  void Copy(const MemcpyRecord& record);
  void PeerCopy(const PeerMemcpyRecord& record);
  void Memset(const MemsetRecord& record);
  void Sync(const SyncRecord& record);
  void Event(const EventRecord& record);
  template <class Record>  // of a stream, or of a graph
  void HostFunction(const Record& record);
  void Memory(const MemoryRecord& record);
  void Graph(const GraphRecord& record);
  void Overhead(const OverheadRecord& record);
  void Api(const ApiRecord& record);
  bool Wait(const ApiRecord& record);
  void Answer(const ApiRecord& next);
  void WriteCall(recording::CallDomain domain, const ApiRecord& record);
  void NoteLaunch(recording::CallDomain domain, const ApiRecord& record);
  void Device(const DeviceRecord& record);
  void Context(const ContextRecord& record);
  void Stream(const StreamRecord& record);

  template <class Record>
  recording::DeviceRow RowOf(recording::DeviceRowType type, const Record& record, uint64_t begin,
                             uint64_t end);
  // False: it is no row.
  bool Write(const recording::DeviceRow& row);
  bool IsOfPause(const recording::DeviceRow& row) const;
  template <class Record>
  bool NoteWork(const Record& record);
  template <class Visit>
  void ForEachHeld(const Slot& slot, const char* buffer, Visit visit);
  bool IsMisdated(int64_t begin_ns, int64_t end_ns);
  void WriteEarly();
  // Of the last pause's, the first: a thread that was in a launch when it began, and has not run since, tells
  // of its call later than CUPTI delivers the kernel.
  void KeepEarly();
  uint32_t NameAt(uint64_t pointer);
  uint32_t NameOfCall(recording::CallDomain domain, uint32_t kind, uint32_t cbid);
  void NoteTimes(int64_t begin_ns, int64_t end_ns);

  // All zero: none.
  struct Pause {
    int64_t begin_ns;
    int64_t end_ns;
  };

  static constexpr uint32_t kNotedCalls = 16 * 1024;
  static constexpr uint32_t kContexts = 256;

  RowWriter* writer_;
  SlotFileHeader* header_;
  KeptNames names_;
  CallNamer namer_;
  bool in_process_;
  int64_t held_ns_;
  int64_t earliest_ns_;  // that a record may begin
  int64_t latest_ns_;    // that one may end
  bool at_first_;        // of the records of this buffer
  bool at_last_;
  uint32_t waiting_;  // of header_->waiting_calls
  uint32_t buffer_;   // number of this one, from 1 on
  // Of each of these: the buffer in which its thread went on otherwise; 0: none.
  uint32_t other_buffer_[kMostWaitingCalls];
  recording::DeviceRow last_device_;
  recording::CallRow last_call_;
  Counts counts_;
  int64_t last_end_ns_;
  int64_t first_begin_ns_;
  int64_t last_begin_ns_;
  static constexpr uint32_t kMostEarly = 4096;

  // Records may come later than the next pause begins, or several of them on a busy machine.
  static constexpr uint32_t kPauses = 16;
  Pause pauses_[kPauses];
  uint32_t pause_;  // number of the last one
  // Of the last pause, as it seems: the call that asked for it may come with a later buffer of its thread,
  // which went on when the device was done.
  recording::DeviceRow early_[kMostEarly];
  uint32_t early_count_;
  OpenLaunches open_launches_;
  std::atomic<int64_t> last_node_ns_;
  InFlight in_flight_;
  CallSet wanted_;
  CallSet launches_;
  CallSet host_launches_;
  bool awaits_host_functions_;
  CallSet capture_begins_;
  CallSet capture_ends_;
  // Correlation ids of the calls that were met last, and of the runtime's among them: a driver's call
  // with the same id is nested in one.
  uint32_t calls_[kNotedCalls];
  uint32_t runtime_calls_[kNotedCalls];
  uint32_t call_names_[2][kMostCbids];
  uint32_t device_of_context_[kContexts];
};

}  // namespace trainprof::collectors
