// The recording of GPU work in this process: one per process, made when the driver first calls
// InitializeInjection. Two threads of ours serve it:
//
//   trainprof-cupti (control.cpp)  makes all calls into CUPTI: turns recording on and off, flushes
//   trainprof       (worker.cpp)   makes rows of delivered buffers, writes facts, watches the other
//
// The program's threads only run CUPTI's callbacks: take and deliver a buffer, walk a stack. No
// lock is held across a call into CUPTI.
#pragma once

#include <atomic>
#include <cstdint>

#include "collectors/core/system.h"
#include "collectors/cupti/client.h"
#include "collectors/cupti/converter.h"
#include "collectors/cupti/library.h"
#include "collectors/cupti/schedule.h"
#include "collectors/cupti/slot_ring.h"
#include "trace/recording/wire/tick_clock.h"

namespace trainprof::collectors {

// Held for one buffer's conversion or a few facts, by our two threads and the thread that starts
// and ends them.
class OwnLock {
 public:
  void Lock() {
    constexpr int64_t kRetryNs = 200'000;
    uint32_t free = 0;
    while (!taken_.compare_exchange_weak(free, 1, std::memory_order_acquire)) {
      SleepWhile(&taken_, 1, kRetryNs);
      free = 0;
    }
  }
  void Unlock() { taken_.store(0, std::memory_order_release); }

 private:
  std::atomic<uint32_t> taken_;
};

class Locked {
 public:
  explicit Locked(OwnLock& lock) : lock_(lock) { lock_.Lock(); }
  ~Locked() { lock_.Unlock(); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  OwnLock& lock_;
};

// Lies in pages that a forked child finds zeroed: there the collector is inert.
struct Session {
  std::atomic<uint32_t> active;  // 0: every callback returns at once
  CuptiLibrary library;
  CuptiClient client;
  SlotRing ring;
  Schedule schedule;

  char refusals[512];  // what NoteRefusal has noted

  OwnLock writer_lock;
  RowWriter* writer;
  Converter converter;

  // Of the control thread: the schedule wants rows; another tool has CUPTI meanwhile (core/lending.h).
  bool recording;
  int64_t drained_by_ns;  // until when an ending window waits for what was launched; 0: none ends
  int64_t draining_since_ns;
  uint32_t drain_flushes;     // since then
  uint64_t drain_left;        // what it waits for, as last looked at
  int64_t launches_until_ns;  // until when launches are looked at, too; 0: CUDA is not in use yet
  bool watches_launches;
  bool times_host_functions;  // CUPTI has a record of each
  bool lent;
  bool was_away;  // at any time: lent or taken
  // Of the control thread, too (takeover.h).
  bool has_own_clock;       // CUPTI has taken ours, and calls it when it is asked for the time
  bool has_own_buffers;     // likewise, a buffer for each thread
  std::atomic<bool> taken;  // another client has taken CUPTI over
  uint64_t times_taken;
  uint64_t ours_until_ticks;  // when it was ours still
  std::atomic<bool> failed;   // fact::kCuptiState tells why nothing is recorded (any more)
  // CLOCK_MONOTONIC: when a window last ended with work under way; 0: never.
  std::atomic<int64_t> cut_off_ns;
  std::atomic<uint64_t> dropped;
  std::atomic<uint64_t> stacks_skipped;
  std::atomic<uint64_t> stack_cost_ns;  // of the CPU, for one: the median; 0: none yet
  std::atomic<uint64_t> stacks_scanned;
  std::atomic<uint64_t> repeated_callbacks;
  std::atomic<uint32_t> forks;
  // The call into CUPTI that is under way: since when (0: none), and its name.
  std::atomic<int64_t> call_since_ns;
  std::atomic<const char*> call;
  std::atomic<int64_t> longest_call_ns;

  std::atomic<uint32_t> requested;  // CUPTI has had a buffer: there is something to flush
  std::atomic<uint32_t> work;       // raised when there is a delivered buffer
  std::atomic<uint32_t> worker_sleeps;
  std::atomic<uint32_t> flush_wanted;  // 1: CUPTI holds most buffers
  std::atomic<uint32_t> control_sleeps;
  std::atomic<uint32_t> ending;  // 1: final flush, 2: last rows
  std::atomic<uint32_t> control_done;
  std::atomic<uint32_t> worker_done;
};

// One call into CUPTI is granted so long.
inline constexpr int64_t kCallLimitNs = 5 * recording::kNsPerSecond;

// nullptr before StartSession.
Session* TheSession();
// Sets up everything for this process, once. What stands in the way becomes fact::kCuptiState.
void StartSession();

// The result of call(), one into CUPTI by this name: the other of our threads sees how long it takes. To be
// used by one thread at a time.
template <class Call>
CUptiResult Watched(Session& session, const char* name, Call call) {
  const int64_t begin = recording::MonotonicNs();
  session.call.store(name, std::memory_order_relaxed);
  session.call_since_ns.store(begin, std::memory_order_release);
  const CUptiResult result = call();
  const int64_t took = recording::MonotonicNs() - begin;
  if (took > session.longest_call_ns.load(std::memory_order_relaxed)) {
    session.longest_call_ns.store(took, std::memory_order_relaxed);
  }
  session.call_since_ns.store(0, std::memory_order_release);
  return result;
}

// Writes a fact; printf-like.
[[gnu::format(printf, 3, 4)]] void WriteFact(Session& session, const char* key, const char* format,
                                             ...);

// Unless the call succeeded: notes what CUPTI refused although recording goes on without it, once a
// call, in fact::kCuptiRefused. To be called by one thread at a time.
void NoteRefusal(Session& session, CUptiResult result, const char* call);

// Takes CUPTI for ourselves, and gives all of it up. To be called by one thread at a time. False:
// kCuptiState tells why not.
bool TakeCupti(Session& session);
void GiveUpCupti(Session& session);

// control.cpp: begins to record; to be called by one thread at a time. False when kernels cannot be
// recorded; kCuptiState tells why then.
bool BeginRecording(Session& session);
void WriteGap(Session& session, bool begins, recording::GapReason reason, uint64_t ticks);
ScheduleInput PresentInput();
void RunControl();
// Of any thread: a flush before the next one is due. No system call unless the control thread sleeps.
void WantFlush(Session& session);
// worker.cpp
void RunWorker();
void WakeWorker(Session& session);
// exit.cpp: the last flush and the last rows, within a time limit; in a forked child, the fact that
// it is not recorded.
void FinishSession();
void TellChild();

}  // namespace trainprof::collectors
