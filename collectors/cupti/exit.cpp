// What happens to the recording of GPU work when the process ends through exit(), and in children
// that fork without exec.
#include <stdio.h>

#include "collectors/core/process_state.h"
#include "collectors/cupti/session.h"
#include "trace/recording/wire/facts.h"
#include "trace/recording/wire/tick_clock.h"

namespace trainprof::collectors {
namespace {

constexpr int64_t kRowsLimitNs = 5 * recording::kNsPerSecond;

bool Await(std::atomic<uint32_t>& done, int64_t limit_ns) {
  const int64_t deadline = recording::MonotonicNs() + limit_ns;
  while (done.load(std::memory_order_acquire) == 0) {
    const int64_t left = deadline - recording::MonotonicNs();
    if (left <= 0) return false;
    SleepWhile(&done, 0, left);
  }
  return true;
}

}  // namespace

void TellChild() {
  RowWriter* writer = RowWriter::Make();
  if (writer == nullptr) return;
  char text[128];
  snprintf(text, sizeof text, "pid %d %s: GPU recording is off in the child.", ProcessId(),
           fact::kGpuForked);
  writer->Fact(fact::kCuptiState, text);
}

void FinishSession() {
  Session* session = TheSession();
  if (session == nullptr || session->active.load(std::memory_order_acquire) == 0) return;
  session->ending.store(1, std::memory_order_release);
  SignalFollowers();
  // Where that is not enough, our other thread writes the message.
  const int64_t since = session->call_since_ns.load();
  const int64_t used = since == 0 ? 0 : recording::MonotonicNs() - since;
  Await(session->control_done, kCallLimitNs - used);
  session->ending.store(2, std::memory_order_release);
  WakeWorker(*session);
  Await(session->worker_done, kRowsLimitNs);
}

}  // namespace trainprof::collectors
