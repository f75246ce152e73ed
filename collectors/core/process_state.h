// What the recording library knows of the process it runs in. One global: NVTX's C callbacks carry
// no context.
//
// ProcessState lies in memory that the kernel zeroes in a forked child (MADV_WIPEONFORK), so that a
// child, however it was made, finds itself "not started", locks and counters included, and opens a
// segment of its own at its next event. What a child may keep lies outside of it, in Runtime.
#pragma once

#include <atomic>
#include <cstdint>

#include "collectors/core/options.h"
#include "trace/recording/wire/format.h"

namespace trainprof::collectors {

// Why the next event needs a closer look. 0: record it.
enum GateBits : uint32_t {
  kGateWindow = 1,      // a window is configured
  kGatePhasesOnly = 2,  // 3/4 of the size bound are used: only phases and steps
  kGateFull = 4,        // the size bound is reached
  kGateFailed = 8,      // recording stopped; the cause is in the segment or in RunControl
};

// Why the window is closed. 0: it is open.
enum WindowBits : uint32_t {
  kBeforeSteps = 1,
  kAfterSteps = 2,
  kBeforeDelay = 4,
  kAfterDuration = 8,
  kOutsideCapture = 16,
};

struct ProcessState {
  // Read at every event.
  std::atomic<uint32_t> generation;  // 0: not started in this process
  std::atomic<uint32_t> gate;        // GateBits
  std::atomic<uint32_t> plain;  // the generation while the gate is 0 and the clock the TSC; else 0

  alignas(64) std::atomic<uint32_t> starting;
  recording::SegmentHeader* segment;   // nullptr: it could not be opened
  std::atomic<uint64_t> free_writers;  // top of the stack: pointer | tag << 48
  std::atomic<uint32_t> next_writer;
  std::atomic<uint32_t> window_closed;  // WindowBits
  std::atomic<uint32_t> timing_done;    // delay and duration have both passed
  std::atomic<uint32_t> captures_open;
  std::atomic<int64_t> window_opened_ns;  // CLOCK_MONOTONIC; 0: open from the first event on
  std::atomic<uint32_t> initial_gap;  // 1: the window begins closed, and that is yet to be written
  std::atomic<uint64_t> steps_seen;
  // For who follows the program's steps: how many ranges named as steps have begun, and the number
  // at which `step_signal` is raised and woken.
  std::atomic<uint64_t> steps_begun;
  std::atomic<uint32_t> steps_are_ranges;  // 1: what a hook says of steps counts no more
  std::atomic<uint64_t> signal_at_step;
  std::atomic<uint32_t> step_signal;
  // 1: another tool in this process has CUPTI (lending.h); and who follows that and has done so.
  std::atomic<uint32_t> cupti_is_lent;
  std::atomic<uint32_t> lending_is_followed;
  std::atomic<uint32_t> cupti_was_lent;
  std::atomic<uint32_t> claims;   // chunks whose header is being written
  std::atomic<uint32_t> exiting;  // CloseSegment() was called
  int64_t first_event_ns;         // CLOCK_MONOTONIC
  int adopted;  // adopt.h: its segment's descriptor + 1; 0: the path below is opened
  char segment_path[3500];
};

// Set once. Acquired at every event: the publication of NVTX's own tables is no such thing for
// processors that reorder loads.
class StatePointer {
 public:
  ProcessState* operator->() const { return get(); }
  ProcessState& operator*() const { return *get(); }
  ProcessState* get() const { return pointer_.load(std::memory_order_acquire); }
  void Publish(ProcessState* state) { pointer_.store(state, std::memory_order_release); }

 private:
  std::atomic<ProcessState*> pointer_{nullptr};
};

class ThreadWriter;
struct Domain;

struct Runtime {
  StatePointer state;  // nullptr: not installed
  recording::RunControl* control;
  recording::ClockKind clock;
  std::atomic<uint32_t> generations;  // the latest given out; inherited, so that none is re-used
  std::atomic<uint32_t> installed;    // 0 not yet, 1 under way, 2 done, 3 refused
  Options options;
  std::atomic<void (*)()> in_child;  // called when a forked child's segment is open; or nullptr
  // Called when a range's name is in a thread's records for the first time, before the range is; or nullptr.
  std::atomic<void (*)(ThreadWriter& writer, const Domain& domain, uint32_t name)> on_new_name;
  char folder[64];  // rank-00000 or pid-1234: a forked child records beside its parent
};

extern Runtime g_runtime;

// Reads the environment and maps run.ctl. True when recording may start; false (and nothing done)
// without TRAINPROF_DIR or with one that holds no run. Repeated calls give the first one's answer.
bool InstallRuntime();

// Maps run.ctl into Runtime::control; false when there is none of ours.
bool MapRunControl(const char* run_directory);
bool MapRunControlIn(int run_directory);  // a descriptor

// Opens this process's segment, once; other threads wait for it. False when that takes too long.
bool StartProcess();

// Recording stops in this process; the first cause is kept where the reader finds it.
void Fail(const char* what, int negative_errno);

// Wakes who follows the program's steps and the window.
void SignalFollowers();

// Sets bits of the gate; whether one of them is new.
bool RaiseGate(uint32_t bits);

// Events that were lost before they could be counted in a chunk.
void CountLost(bool detail);

}  // namespace trainprof::collectors
