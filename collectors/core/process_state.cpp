#include "collectors/core/process_state.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>

#include "collectors/core/own_memory.h"
#include "collectors/core/segment_file.h"
#include "collectors/core/system.h"
#include "collectors/core/window.h"
#include "trace/recording/wire/tick_clock.h"

namespace trainprof::collectors {

using recording::RunControl;

constinit Runtime g_runtime{};

namespace {

enum InstallStage : uint32_t { kUntouched = 0, kUnderWay = 1, kInstalled = 2, kRefused = 3 };

// A thread that finds another one at work waits this often, yielding the processor, then gives up:
// opening a file takes far less, and the program must never hang on us.
constexpr int kMostYields = 100'000;

RunControl* MapControl(int run_directory) {
  const int fd = OpenRecordedIn(run_directory, recording::kControlFile, O_RDWR);
  if (fd < 0) return nullptr;
  RunControl probe{};
  int error = 0;
  RunControl* control = nullptr;
  // The file must really be that long: reading past the end of a mapped file kills.
  if (pread(fd, static_cast<void*>(&probe), sizeof probe, 0) == sizeof probe &&
      probe.magic == RunControl::kMagic && probe.version == RunControl::kVersion) {
    control = static_cast<RunControl*>(MapShared(fd, 0, sizeof(RunControl), &error));
  }
  CloseFile(fd);
  return control;
}

bool Install() {
  if (!ReadEnvironment(&g_runtime.options)) return false;
  if (!MapRunControl(g_runtime.options.run_directory)) return false;
  g_runtime.clock =
      g_runtime.options.monotonic ? recording::ClockKind::kMonotonic : recording::DetectClockKind();
  g_runtime.state.Publish(
      static_cast<ProcessState*>(AllocatePagesWipedInChild(sizeof(ProcessState))));
  return g_runtime.state.get() != nullptr;
}

void WriteFailure(char* out, size_t size, const char* what, int negative_errno) {
  snprintf(out, size, "%s: %s", what, DescribeError(negative_errno));
}

}  // namespace

bool MapRunControl(const char* run_directory) {
  const int folder = OpenFile(run_directory, O_RDONLY | O_DIRECTORY);
  if (folder < 0) return false;
  const bool mapped = MapRunControlIn(folder);
  CloseFile(folder);
  return mapped;
}

bool MapRunControlIn(int run_directory) {
  g_runtime.control = MapControl(run_directory);
  return g_runtime.control != nullptr;
}

bool InstallRuntime() {
  uint32_t stage = kUntouched;
  if (g_runtime.installed.compare_exchange_strong(stage, kUnderWay)) {
    stage = Install() ? kInstalled : kRefused;
    g_runtime.installed.store(stage, std::memory_order_release);
  }
  for (int i = 0; i < kMostYields && stage == kUnderWay; ++i) {
    sched_yield();
    stage = g_runtime.installed.load(std::memory_order_acquire);
  }
  return stage == kInstalled;
}

bool StartProcess() {
  ProcessState& state = *g_runtime.state;
  uint32_t idle = 0;
  if (state.starting.compare_exchange_strong(idle, 1)) {
    state.first_event_ns = recording::MonotonicNs();
    OpenSegment();
    StartWindow();
    GiveOwnMemoryAgain();
    const auto in_child = g_runtime.in_child.load(std::memory_order_acquire);
    if (in_child != nullptr && state.segment != nullptr) in_child();
    const uint32_t generation = g_runtime.generations.fetch_add(1) + 1;
    state.generation.store(generation, std::memory_order_release);
    if (g_runtime.clock == recording::ClockKind::kTsc) state.plain.store(generation);
    if (state.gate.load() != 0) state.plain.store(0);
    return true;
  }
  for (int i = 0; i < kMostYields; ++i) {
    if (state.generation.load(std::memory_order_acquire) != 0) return true;
    sched_yield();
  }
  return false;
}

bool RaiseGate(uint32_t bits) {
  const bool is_new = (g_runtime.state->gate.fetch_or(bits) & bits) != bits;
  g_runtime.state->plain.store(0);
  return is_new;
}

void Fail(const char* what, int negative_errno) {
  ProcessState& state = *g_runtime.state;
  if (!RaiseGate(kGateFailed)) return;
  if (state.segment != nullptr) {
    WriteFailure(state.segment->failure, sizeof state.segment->failure, what, negative_errno);
    state.segment->failed.store(1, std::memory_order_release);
    return;
  }
  RunControl& control = *g_runtime.control;
  control.failed_processes.fetch_add(1);
  uint32_t unwritten = 0;
  if (!control.failure_written.compare_exchange_strong(unwritten, 1)) return;
  WriteFailure(control.failure, sizeof control.failure, what, negative_errno);
  control.failure_written.store(2, std::memory_order_release);
}

void SignalFollowers() {
  ProcessState& state = *g_runtime.state;
  state.step_signal.fetch_add(1, std::memory_order_release);
  Wake(&state.step_signal);
}

void CountLost(bool detail) {
  ProcessState& state = *g_runtime.state;
  if (state.segment == nullptr) {
    g_runtime.control->lost_events.fetch_add(1, std::memory_order_relaxed);
  } else {
    auto& counter = detail ? state.segment->dropped_detail : state.segment->dropped_all;
    counter.fetch_add(1, std::memory_order_relaxed);
  }
}

}  // namespace trainprof::collectors
