#include "collectors/core/lending.h"

#include "collectors/core/process_state.h"
#include "collectors/core/system.h"
#include "trace/recording/wire/tick_clock.h"

namespace trainprof::collectors {
namespace {

constexpr int64_t kMostWaitNs = 5 * recording::kNsPerSecond;

}  // namespace

bool LendCupti(bool lent) {
  if (g_runtime.state.get() == nullptr) return false;
  ProcessState& state = *g_runtime.state;
  const uint32_t wanted = lent ? 1 : 0;
  if (state.cupti_is_lent.exchange(wanted) == wanted) return false;
  if (state.lending_is_followed.load() == 0) return true;
  SignalFollowers();
  const int64_t deadline = recording::MonotonicNs() + kMostWaitNs;
  while (state.cupti_was_lent.load(std::memory_order_acquire) != wanted) {
    const int64_t left = deadline - recording::MonotonicNs();
    if (left <= 0) break;
    SleepWhile(&state.cupti_was_lent, 1 - wanted, left);
  }
  return true;
}

bool CuptiIsWanted() { return g_runtime.state->cupti_is_lent.load() != 0; }

void AnswerLending(bool lent) {
  ProcessState& state = *g_runtime.state;
  state.cupti_was_lent.store(lent ? 1 : 0, std::memory_order_release);
  state.lending_is_followed.store(1);
  Wake(&state.cupti_was_lent);
}

void StopAnswering() { g_runtime.state->lending_is_followed.store(0); }

}  // namespace trainprof::collectors
