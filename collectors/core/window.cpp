#include "collectors/core/window.h"

#include "collectors/core/process_state.h"
#include "trace/recording/wire/tick_clock.h"

namespace trainprof::collectors {
namespace {

WindowVerdict Set(uint32_t bit) {
  const uint32_t before = g_runtime.state->window_closed.fetch_or(bit);
  return {false, before == 0 ? WindowChange::kClosed : WindowChange::kNone};
}

WindowVerdict Clear(uint32_t bit) {
  const uint32_t before = g_runtime.state->window_closed.fetch_and(~bit);
  const bool open = (before & ~bit) == 0;
  if (open && before != 0) {
    g_runtime.state->window_opened_ns.store(recording::MonotonicNs(), std::memory_order_relaxed);
  }
  return {open, open && before != 0 ? WindowChange::kOpened : WindowChange::kNone};
}

WindowVerdict Unchanged() { return {WindowIsOpen(), WindowChange::kNone}; }

}  // namespace

bool WindowIsOpen() { return g_runtime.state->window_closed.load(std::memory_order_relaxed) == 0; }

void StartWindow() {
  const Options& options = g_runtime.options;
  ProcessState& state = *g_runtime.state;
  if (!options.HasWindow()) return;
  uint32_t closed = 0;
  if (options.has_steps) closed |= kBeforeSteps;
  if (options.delay_ns > 0) closed |= kBeforeDelay;
  if (options.capture[0] != 0) closed |= kOutsideCapture;
  state.window_closed.store(closed);
  state.initial_gap.store(closed != 0 ? 1 : 0);
  RaiseGate(kGateWindow);
}

WindowVerdict CheckTime() {
  const Options& options = g_runtime.options;
  ProcessState& state = *g_runtime.state;
  if ((options.delay_ns == 0 && options.duration_ns == 0) ||
      state.timing_done.load(std::memory_order_relaxed) != 0) {
    return Unchanged();
  }
  const int64_t elapsed = recording::MonotonicNs() - state.first_event_ns;
  if (elapsed < options.delay_ns) return Unchanged();
  if (options.duration_ns > 0 && elapsed - options.delay_ns >= options.duration_ns) {
    state.timing_done.store(1, std::memory_order_relaxed);
    return Set(kAfterDuration);
  }
  if (options.duration_ns == 0) state.timing_done.store(1, std::memory_order_relaxed);
  const bool delayed = (state.window_closed.load(std::memory_order_relaxed) & kBeforeDelay) != 0;
  return delayed ? Clear(kBeforeDelay) : Unchanged();
}

WindowVerdict OnStep() {
  const Options& options = g_runtime.options;
  if (!options.has_steps) return Unchanged();
  const uint64_t step = g_runtime.state->steps_seen.fetch_add(1, std::memory_order_relaxed);
  if (step == options.end_step) return Set(kAfterSteps);
  if (step == options.first_step) return Clear(kBeforeSteps);
  return Unchanged();
}

WindowVerdict OnCaptureBegin() {
  if (g_runtime.state->captures_open.fetch_add(1) != 0) return Unchanged();
  return Clear(kOutsideCapture);
}

WindowChange OnCaptureEnd() {
  if (g_runtime.state->captures_open.fetch_sub(1) != 1) return WindowChange::kNone;
  return Set(kOutsideCapture).change;
}

}  // namespace trainprof::collectors
