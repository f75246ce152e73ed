#include "collectors/python/name_sites.h"

#include <signal.h>
#include <string.h>

#include "collectors/core/process_state.h"
#include "collectors/core/system.h"
#include "collectors/core/thread_writer.h"
#include "collectors/python/own_stack.h"
#include "collectors/python/script.h"
#include "collectors/unwind/modules.h"
#include "collectors/unwind/unwind.h"
#include "collectors/unwind/walk_budget.h"
#include "trace/recording/wire/tick_clock.h"

namespace trainprof::collectors {
namespace {

constexpr WalkBudget::Limits kBudget = {1000, 2'000'000};
// Of a thread. Who has more makes them up as it goes.
constexpr uint32_t kMostNames = 1000;

TRAINPROF_TLS WalkBudget t_budget;
TRAINPROF_TLS uint32_t t_names;

bool AlwaysGoOn(uint64_t, void*) { return true; }

// Operators come by the hundred, and their calls tell where they are from.
bool IsOfOperators(const Domain& domain) {
  return domain.name.length == sizeof recording::kOperatorDomain - 1 &&
         memcmp(domain.name.data, recording::kOperatorDomain, domain.name.length) == 0;
}

// One of a signal handler's own, which may be a few KB.
bool IsOnAlternateStack() {
  stack_t stack{};
  return sigaltstack(nullptr, &stack) == 0 && (stack.ss_flags & SS_ONSTACK) != 0;
}

void OnNewName(ThreadWriter& writer, const Domain& domain, uint32_t name) {
  const int64_t now = recording::MonotonicNs();
  if (t_names >= kMostNames || IsOfOperators(domain) || !t_budget.Fill(kBudget, now)) return;
  if (IsOnAlternateStack()) return;
  ++t_names;
  const int64_t computed_ns = recording::ReadClock(CLOCK_THREAD_CPUTIME_ID);
  // The interpreter's own stack tells more than that of what runs it.
  OwnStack python;
  Frames frames{};
  if (ReadOwnStack(&python)) {
    writer.NameStack(name, nullptr, 0, ScriptOf(python, writer));
  } else if (Walk(&frames, AlwaysGoOn, nullptr) && !frames.scanned) {
    WriteModules(frames, writer);
    writer.NameStack(name, frames.address, frames.count, 0);
  }
  // A later scan of the stack would take what is left of them for frames.
  memset(static_cast<void*>(&frames), 0, sizeof frames);
  asm volatile("" : : "r"(&frames) : "memory");
  t_budget.left_ns -= recording::ReadClock(CLOCK_THREAD_CPUTIME_ID) - computed_ns;
}

}  // namespace

void WatchNames() {
  if (PrepareModules()) g_runtime.on_new_name.store(OnNewName, std::memory_order_release);
}

}  // namespace trainprof::collectors
