#include "collectors/cupti/stacks.h"

#include <string.h>

#include "collectors/cupti/quick_calls.h"
#include "collectors/cupti/session.h"
#include "collectors/python/own_stack.h"
#include "collectors/python/script.h"
#include "collectors/unwind/modules.h"
#include "collectors/unwind/unwind.h"
#include "collectors/unwind/walk_budget.h"
#include "trace/recording/wire/tick_clock.h"

namespace trainprof::collectors {
namespace {

using recording::CallDomain;
using recording::MonotonicNs;

// A call this long is worth its stack: a walk costs some 10 us.
constexpr int64_t kLongCallNs = 20'000;
constexpr int64_t kLongLaunchNs =
    1'000'000;  // which loads or compiles, or waits for room in the queue
// Walking may take this part of a thread's time, and so much at once after a quiet while.
constexpr WalkBudget::Limits kBudget = {100, 5'000'000};
// Of the quick calls of one site the first few keep their stack, then one in so much time.
constexpr uint32_t kFirstOfSite = 8;
constexpr int64_t kSitePauseNs = 10'000'000;

// Quick calls by site; two sites in one place share its limit. Not wiped in a child: harmless.
struct Site {
  std::atomic<uint32_t> taken;
  std::atomic<int64_t> last_ns;
};
constexpr uint32_t kSites = 1024;
constinit Site g_sites[kSites]{};

constinit CallSet g_launches{};
constinit CallSet g_looked_at{};  // though they are quick

TRAINPROF_TLS WalkBudget t_budget;
TRAINPROF_TLS QuickCalls t_quick_calls;
TRAINPROF_TLS uint64_t t_runtime_call;  // correlation of the runtime's call that is open, + 1
TRAINPROF_TLS uint64_t t_last_end;      // the same, of the call that ended last
TRAINPROF_TLS OpenCall* t_open_call;    // where the call that is open stands; or nullptr
TRAINPROF_TLS uint32_t t_thread;        // our id; 0: not asked yet
TRAINPROF_TLS bool t_walking;           // a walk interrupted by a signal handler that calls CUDA

struct Caller {
  int64_t now;
  OwnStack python;       // count 0: the thread runs none
  bool site_had_enough;  // SiteMayGoOn said so
};

bool AlwaysGoOn(uint64_t, void*) { return true; }

// Whether this site's quick calls may have another stack.
bool SiteMayGoOn(uint64_t site, void* context) {
  auto& caller = *static_cast<Caller*>(context);
  site ^= caller.python.hash;
  Site& place = g_sites[(site >> 20) % kSites];
  const int64_t time = caller.now;
  caller.site_had_enough = place.taken.load(std::memory_order_relaxed) >= kFirstOfSite &&
                           time - place.last_ns.load(std::memory_order_relaxed) < kSitePauseNs;
  if (caller.site_had_enough) return false;
  place.taken.fetch_add(1, std::memory_order_relaxed);
  place.last_ns.store(time, std::memory_order_relaxed);
  return true;
}

// Moves the median of what walks cost: the first ones, which meet new modules and cold tables, take many times as long
// as all others. Two threads may do so at once: one of the two is lost.
void NoteCost(uint64_t ns, std::atomic<uint64_t>& median) {
  constexpr uint64_t kFirst = 10'000;
  constexpr uint64_t kSlowness = 16;
  const uint64_t was = median.load(std::memory_order_relaxed);
  const uint64_t now = was == 0 ? kFirst : was;
  median.store(ns > now ? now + now / kSlowness : now - now / kSlowness, std::memory_order_relaxed);
}

void TakeStack(Session& session, CallDomain domain, uint32_t correlation, bool was_long) {
  Caller caller;
  caller.now = MonotonicNs();
  caller.site_had_enough = false;
  if (t_walking || !t_budget.Fill(kBudget, caller.now)) {
    session.stacks_skipped.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  t_walking = true;
  const int64_t computed_ns = recording::ReadClock(CLOCK_THREAD_CPUTIME_ID);
  Frames frames;
  ReadOwnStack(&caller.python);
  if (Walk(&frames, was_long ? AlwaysGoOn : SiteMayGoOn, &caller)) {
    if (ThreadWriter* writer = ThreadWriter::Enter()) {
      WriteModules(frames, *writer);
      const uint32_t script = ScriptOf(caller.python, *writer);
      writer->CallStack(frames.address, frames.count, correlation, domain, script);
      writer->Leave();
    }
    if (frames.scanned) session.stacks_scanned.fetch_add(1, std::memory_order_relaxed);
  }
  if (!was_long) t_quick_calls.NoteLook(caller.site_had_enough);
  // A later scan would take what is left of them for frames.
  memset(static_cast<void*>(&frames), 0, sizeof frames);
  asm volatile("" : : "r"(&frames) : "memory");
  const int64_t cost_ns = recording::ReadClock(CLOCK_THREAD_CPUTIME_ID) - computed_ns;
  t_budget.left_ns -= cost_ns;
  NoteCost(static_cast<uint64_t>(cost_ns), session.stack_cost_ns);
  t_walking = false;
}

void LookAtUsage(bool now) {
  ThreadWriter* writer = ThreadWriter::EnterAgain();
  if (writer == nullptr) return;
  writer->LookAtUsage(now);
  writer->Leave();
}

void CallBegins(Session& session, CallDomain domain, uint32_t cbid,
                const CUpti_CallbackData& call) {
  if (t_thread == 0) t_thread = static_cast<uint32_t>(ThreadId());
  const BegunCall begun = {call.correlationId, static_cast<uint16_t>(cbid), domain, MonotonicNs()};
  *call.correlationData = static_cast<uint64_t>(begun.begin_ns);
  // A launch that has not returned may have brought no kernel yet: it is not told of.
  if (g_launches.Has(domain, cbid)) return;
  LookAtUsage(false);
  t_open_call = session.ring.header()->open_calls.Begin(t_open_call, t_thread, begun);
}

void CallEnds(Session& session, CallDomain domain, uint32_t cbid, const CUpti_CallbackData& call) {
  if (t_open_call != nullptr) OpenCalls::End(t_open_call);
  t_open_call = nullptr;
  const auto begin = static_cast<int64_t>(*call.correlationData);
  if (begin == 0) return;     // recording was switched on meanwhile
  *call.correlationData = 0;  // taken once, should its end be told twice
  const int64_t is_long = g_launches.Has(domain, cbid) ? kLongLaunchNs : kLongCallNs;
  const bool was_long = MonotonicNs() - begin > is_long;
  if (was_long) LookAtUsage(true);
  if (!was_long && (!g_looked_at.Has(domain, cbid) || t_quick_calls.Pass())) return;
  TakeStack(session, domain, call.correlationId, was_long);
}

}  // namespace

bool PrepareStacks() {
  uint32_t count = 0;
  const Call* calls = RecordedCalls(&count);
  for (uint32_t i = 0; i < count; ++i) {
    const Call& call = calls[i];
    if (call.use == CallUse::kLaunch) g_launches.Add(call.domain, call.cbid);
    const bool is_quick = call.use == CallUse::kCopies || call.use == CallUse::kOrders ||
                          call.use == CallUse::kHostLaunch;
    if (is_quick) g_looked_at.Add(call.domain, call.cbid);
  }
  return PrepareModules();
}

void CUPTIAPI OnCall(void* context, CUpti_CallbackDomain cupti_domain, CUpti_CallbackId cbid,
                     const void* data) {
  auto& session = *static_cast<Session*>(context);
  if (session.active.load(std::memory_order_acquire) == 0) return;
  const auto& call = *static_cast<const CUpti_CallbackData*>(data);
  if (call.correlationData == nullptr) return;
  const uint64_t correlation = uint64_t{call.correlationId} + 1;
  if (cupti_domain == CUPTI_CB_DOMAIN_RUNTIME_API) {
    t_runtime_call = call.callbackSite == CUPTI_API_ENTER ? correlation : 0;
  } else if (cupti_domain != CUPTI_CB_DOMAIN_DRIVER_API || t_runtime_call == correlation) {
    return;  // nested in a call of the runtime, which is looked at
  }
  const bool driver = cupti_domain == CUPTI_CB_DOMAIN_DRIVER_API;
  const CallDomain domain = driver ? CallDomain::kDriver : CallDomain::kRuntime;
  if (call.callbackSite == CUPTI_API_ENTER) return CallBegins(session, domain, cbid, call);
  if (t_last_end == correlation) session.repeated_callbacks.fetch_add(1, std::memory_order_relaxed);
  t_last_end = correlation;
  CallEnds(session, domain, cbid, call);
}

}  // namespace trainprof::collectors
