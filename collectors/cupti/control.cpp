// The thread that calls CUPTI: switches recording on and off as the schedule and the user's window
// say, and flushes once a second, or sooner when CUPTI holds most of the buffers.
//
// Recording ends in steps: calls are no longer recorded; CUPTI is flushed until each recorded launch
// has been answered, or kDrainNs are over in which none was; then, unless recording is to go on by now, the device's kinds
// are switched off. CUPTI holds the records of work that is under way when its kind is switched off, and
// gives it the end at which it is switched on again (kineto#1105).
#include "collectors/core/lending.h"
#include "collectors/core/process_state.h"
#include "collectors/core/window.h"
#include "collectors/cupti/messages.h"
#include "collectors/cupti/session.h"
#include "collectors/cupti/takeover.h"
#include "trace/recording/wire/facts.h"
#include "trace/recording/wire/tick_clock.h"

namespace trainprof::collectors {
namespace {

using recording::MonotonicNs;

constexpr int64_t kFlushEveryNs = recording::kNsPerSecond;
// The end of a window waits as long as the device gets on: the host may be far ahead of it.
constexpr int64_t kDrainNs = 2 * recording::kNsPerSecond;
constexpr int64_t kMostDrainNs = 30 * recording::kNsPerSecond;
constexpr int64_t kFlushDrainingNs = 100'000'000;
// Launches may wait for a flush, and one may bring nothing back: what is under way is held.
constexpr int64_t kFlushLowNs = 50'000'000;
constexpr uint32_t kForced = 1;  // CUPTI_ACTIVITY_FLAG_FLUSH_FORCED

CUpti_ActivityKind Kind(ActivityKind kind) { return static_cast<CUpti_ActivityKind>(kind); }

// Those of the device, switched on first and off last, so that no launch is recorded whose kernel
// is not. Devices, contexts and streams are never switched off (session.cpp).
struct SwitchedKind {
  ActivityKind kind;
  const char* enable;  // the call, as it is reported when CUPTI refuses it
  int since = 0;       // the CUDA version whose CUPTI has it first
};
constexpr SwitchedKind kKernels = {kKernelActivity, "cuptiActivityEnable(CONCURRENT_KERNEL)"};
constexpr SwitchedKind kSwitchedKinds[] = {
    {kMemcpyActivity, "cuptiActivityEnable(MEMCPY)"},
    {kPeerMemcpyActivity, "cuptiActivityEnable(MEMCPY2)"},
    {kMemsetActivity, "cuptiActivityEnable(MEMSET)"},
    {kSyncActivity, "cuptiActivityEnable(SYNCHRONIZATION)"},
    {kEventActivity, "cuptiActivityEnable(CUDA_EVENT)"},
    {kMemoryActivity, "cuptiActivityEnable(MEMORY2)"},
    {kOverheadActivity, "cuptiActivityEnable(OVERHEAD)"},
};
constexpr SwitchedKind kHostFunctions = {kHostLaunchActivity, "cuptiActivityEnable(HOST_LAUNCH)",
                                         13010};
constexpr SwitchedKind kWholeGraphs = {kGraphActivity, "cuptiActivityEnable(GRAPH_TRACE)"};
// Their other nodes have the kinds of what they do.
constexpr SwitchedKind kHostNodes = {kGraphHostNodeActivity, "cuptiActivityEnable(GRAPH_HOST_NODE)",
                                     13010};
constexpr SwitchedKind kAllCalls[] = {{kRuntimeActivity, "cuptiActivityEnable(RUNTIME)"},
                                      {kDriverActivity, "cuptiActivityEnable(DRIVER)"}};

CUptiResult EnableKind(Session& session, const SwitchedKind& switched) {
  return Watched(session, switched.enable,
                 [&] { return session.client.Enable(Kind(switched.kind)); });
}

void DisableKind(Session& session, const SwitchedKind& switched) {
  Watched(session, "cuptiActivityDisable",
          [&] { return session.client.Disable(Kind(switched.kind)); });
}

// Whether it is on now.
bool SwitchKind(Session& session, const SwitchedKind& switched, bool on) {
  if (session.library.cuda_version < switched.since) return false;
  if (!on) {
    DisableKind(session, switched);
    return false;
  }
  const CUptiResult result = EnableKind(session, switched);
  NoteRefusal(session, result, switched.enable);
  return result == CUPTI_SUCCESS;
}

const SwitchedKind& KindOfGraphs() {
  return g_runtime.options.whole_graphs ? kWholeGraphs : kHostNodes;
}

void SwitchCalls(Session& session, bool on) {
  const CuptiClient& client = session.client;
  if (session.ring.header()->whole_kinds != 0) {
    for (const SwitchedKind& kind : kAllCalls) SwitchKind(session, kind, on);
    return;
  }
  uint32_t count = 0;
  const Call* calls = RecordedCalls(&count);
  for (uint32_t i = 0; i < count; ++i) {
    const bool runtime = calls[i].domain == recording::CallDomain::kRuntime;
    const char* name = runtime ? "cuptiActivityEnableRuntimeApi" : "cuptiActivityEnableDriverApi";
    const CUptiResult result = Watched(session, name, [&] {
      return runtime ? client.EnableRuntimeApi(calls[i].cbid, on)
                     : client.EnableDriverApi(calls[i].cbid, on);
    });
    // Numbers that an older version does not know are refused for a good reason.
    if (result != CUPTI_ERROR_INVALID_PARAMETER) NoteRefusal(session, result, name);
  }
}

// Those of one use.
void SwitchCallbacksOf(Session& session, CallUse use, bool on) {
  if (session.client.subscriber == nullptr) return;
  uint32_t count = 0;
  const Call* calls = RecordedCalls(&count);
  for (uint32_t i = 0; i < count; ++i) {
    if (calls[i].use != use) continue;
    const bool runtime = calls[i].domain == recording::CallDomain::kRuntime;
    const CUptiResult result = Watched(session, "cuptiEnableCallback", [&] {
      return session.library.api.enable_callback(
          on ? 1 : 0, session.client.subscriber,
          runtime ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API, calls[i].cbid);
    });
    if (result != CUPTI_ERROR_INVALID_PARAMETER) {
      NoteRefusal(session, result, "cuptiEnableCallback");
    }
  }
}

// Launches are looked at for this long after CUDA's first use: they load modules and compile, at a line
// worth knowing, most of all then. Each costs two callbacks more, or four.
constexpr int64_t kFirstLaunchesNs = 10 * recording::kNsPerSecond;

void SwitchCallbacks(Session& session, bool on) {
  for (const CallUse use :
       {CallUse::kWaits, CallUse::kCopies, CallUse::kOrders, CallUse::kHostLaunch}) {
    SwitchCallbacksOf(session, use, on);
  }
  const int64_t until = session.launches_until_ns;
  const bool launches = on && (until == 0 || MonotonicNs() < until);
  if (launches != session.watches_launches) SwitchCallbacksOf(session, CallUse::kLaunch, launches);
  session.watches_launches = launches;
}

// To be called while CUPTI is ours.
void WatchFirstLaunches(Session& session) {
  int64_t& until = session.launches_until_ns;
  if (until == 0 && session.requested.load() != 0) until = MonotonicNs() + kFirstLaunchesNs;
  if (until == 0 || MonotonicNs() < until || !session.watches_launches) return;
  SwitchCallbacksOf(session, CallUse::kLaunch, false);
  session.watches_launches = false;
}

CUptiResult EnableDeviceKinds(Session& session) {
  const CUptiResult result = EnableKind(session, kKernels);
  if (result != CUPTI_SUCCESS) return result;
  SwitchKind(session, KindOfGraphs(), true);
  for (const SwitchedKind& kind : kSwitchedKinds) SwitchKind(session, kind, true);
  session.times_host_functions = SwitchKind(session, kHostFunctions, true);
  return CUPTI_SUCCESS;
}

void DisableDeviceKinds(Session& session) {
  if (MayDisableKernels(session.library.api.version)) DisableKind(session, kKernels);
  SwitchKind(session, KindOfGraphs(), false);
  for (const SwitchedKind& kind : kSwitchedKinds) SwitchKind(session, kind, false);
  SwitchKind(session, kHostFunctions, false);
}

void Flush(Session& session, uint32_t flag) {
  const CUptiResult flushed = Watched(session, "cuptiActivityFlushAll",
                                      [&] { return session.library.api.flush_all(flag); });
  size_t dropped = 0;
  const CUptiResult asked = Watched(session, "cuptiActivityGetNumDroppedRecords",
                                    [&] { return session.client.GetDropped(&dropped); });
  if (asked == CUPTI_SUCCESS) session.dropped.fetch_add(dropped, std::memory_order_relaxed);
  NoteRefusal(session, flushed, "cuptiActivityFlushAll");
  NoteRefusal(session, asked, "cuptiActivityGetNumDroppedRecords");
}

// A forced flush takes incomplete records, of all clients alike: not where others record. To be called
// where nothing of ours is on but what lasts.
void FlushLast(Session& session) {
  constexpr CUpti_ActivityKind kLasting[] = {
      static_cast<CUpti_ActivityKind>(kDeviceActivity),
      static_cast<CUpti_ActivityKind>(kContextActivity),
      static_cast<CUpti_ActivityKind>(kStreamActivity),
  };
  bool spare = session.client.shares;
  if (spare) {
    Watched(session, "cuptiActivityGetEnabledKinds", [&] {
      spare = session.client.OthersRecord(kLasting, sizeof kLasting / sizeof *kLasting);
      return CUPTI_SUCCESS;
    });
  }
  Flush(session, spare ? 0 : kForced);
}

// All kinds that come and go. False when kernels cannot be recorded; kCuptiState tells why then.
bool EnableAll(Session& session) {
  const bool drains = session.drained_by_ns != 0;  // those of the device are on
  session.drained_by_ns = 0;
  const CUptiResult result = drains ? CUPTI_SUCCESS : EnableDeviceKinds(session);
  if (result != CUPTI_SUCCESS) {
    char text[512];
    DescribeFailure(session.library, result, "cuptiActivityEnable", "", text, sizeof text);
    WriteFact(session, fact::kCuptiState, "%s", text);
    session.failed.store(true);
    return false;
  }
  {
    Locked lock(session.writer_lock);
    session.converter.EndPause(MonotonicNs());  // no call has been recorded yet
    session.converter.AwaitHostFunctions(session.times_host_functions);
  }
  SwitchCalls(session, true);
  SwitchCallbacks(session, true);
  return true;
}

void DisableCalls(Session& session) {
  SwitchCallbacks(session, false);
  session.ring.header()->open_calls.Forget();
  SwitchCalls(session, false);
}

void NoteHeldCalls(Session& session) {
  session.ring.ForEachHeld(
      [&](const Slot& slot, const char* data) { session.converter.NoteHeldCalls(slot, data); });
}

void BeginDraining(Session& session) {
  WriteGap(session, true, recording::GapReason::kDevice, recording::ReadTicks(g_runtime.clock));
  DisableCalls(session);
  session.recording = false;
  session.draining_since_ns = MonotonicNs();
  session.drained_by_ns = session.draining_since_ns + kDrainNs;
  session.drain_flushes = 0;
  // What was launched in the window may run in the pause.
  Locked lock(session.writer_lock);
  NoteHeldCalls(session);
}

void EndDraining(Session& session) {
  const int64_t now = MonotonicNs();
  if (now >= session.drained_by_ns) session.cut_off_ns.store(now, std::memory_order_relaxed);
  DisableDeviceKinds(session);
  FlushLast(session);
  session.drained_by_ns = 0;
}

// Of what was launched, as far as CUPTI tells. With writer_lock held.
uint64_t CountLeft(Session& session) {
  NoteHeldCalls(session);
  uint64_t left = session.converter.unanswered();
  session.ring.ForEachHeld([&](const Slot& slot, const char* data) {
    left += session.converter.NoteHeldWork(slot, data);
  });
  return left;
}

// A call may have been under way when the first flush was, and comes with the second. Of the nodes of a
// graph two flushes brought no more.
bool HasAll(Session& session) {
  constexpr uint32_t kLeastFlushes = 2;
  if (session.drain_flushes < kLeastFlushes) return false;
  Locked lock(session.writer_lock);
  const int64_t now = MonotonicNs();
  const bool nodes_come = now - session.converter.last_node_ns() < 2 * kFlushDrainingNs;
  const uint64_t left = CountLeft(session);
  if (left != session.drain_left || nodes_come) {
    const int64_t most = session.draining_since_ns + kMostDrainNs;
    session.drained_by_ns = now + kDrainNs < most ? now + kDrainNs : most;
  }
  session.drain_left = left;
  return left == 0 && !nodes_come && !session.ring.HasDelivered();
}

bool IsDrained(Session& session) {
  return HasAll(session) || MonotonicNs() >= session.drained_by_ns;
}

// Or another client has, which is told.
bool StillHave(Session& session) {
  if (IsOurs(session)) {
    session.ours_until_ticks = recording::ReadTicks(g_runtime.clock);
    return true;
  }
  WriteGap(session, true, recording::GapReason::kLent, session.ours_until_ticks);
  WriteFact(session, fact::kCuptiState, "%s", fact::kGpuTaken);
  WriteFact(session, fact::kCuptiTaken, "%llu",
            static_cast<unsigned long long>(++session.times_taken));
  session.taken = true;
  return false;
}

void ApplySchedule(Session& session) {
  constexpr uint32_t kNoRoom = kGatePhasesOnly | kGateFull | kGateFailed;
  const bool room = (g_runtime.state->gate.load(std::memory_order_relaxed) & kNoRoom) == 0;
  const bool want = session.schedule.Want(PresentInput()) && room && !session.failed.load();
  const bool is_drained = session.drained_by_ns != 0 && !want && IsDrained(session);
  if ((is_drained || want != session.recording) && !StillHave(session)) return;
  if (is_drained) EndDraining(session);
  if (want != session.recording) want ? void(BeginRecording(session)) : BeginDraining(session);
  g_runtime.state->signal_at_step.store(session.schedule.NextStep());
}

// The other tool finds CUPTI as if nobody had used it.
void Lend(Session& session) {
  if (!session.taken) {
    WriteGap(session, true, recording::GapReason::kLent, recording::ReadTicks(g_runtime.clock));
  }
  session.taken = false;
  if (session.recording) DisableCalls(session);
  DisableDeviceKinds(session);
  // Nothing is under way: who asks has waited for the device.
  DisableKind(session, kKernels);
  session.drained_by_ns = 0;
  FlushLast(session);
  GiveUpCupti(session);
  session.lent = true;
}

void TakeBack(Session& session) {
  session.lent = false;
  session.taken = false;
  session.was_away = true;
  if (session.failed.load()) return;
  if (!TakeCupti(session)) return session.failed.store(true);  // the gap lasts
  if (session.recording && !EnableAll(session)) return;
  WriteGap(session, false, recording::GapReason::kLent, recording::ReadTicks(g_runtime.clock));
}

// Another client may have left on what it does not use itself.
void TakeBackFromOther(Session& session) {
  DisableCalls(session);
  DisableDeviceKinds(session);
  session.drained_by_ns = 0;
  TakeBack(session);
  if (session.failed.load()) return;
  Locked lock(session.writer_lock);
  session.converter.ForgetLaunches();  // the other has their kernels
  session.writer->Fact(fact::kCuptiState, fact::kGpuRecording);
}

void ApplyLending(Session& session) {
  const bool wanted = CuptiIsWanted();
  if (wanted != session.lent) wanted ? Lend(session) : TakeBack(session);
  AnswerLending(session.lent);
}

// Of one client of several the others stay.
void EndRecording(Session& session) {
  if (session.client.shares && session.recording) {
    DisableCalls(session);
    DisableDeviceKinds(session);
  }
  FlushLast(session);
}

// What is due every second: a flush, where there is something to bring; and whether it is ours to be flushed.
void KeepCupti(Session& session) {
  if (!session.taken && StillHave(session)) {
    WatchFirstLaunches(session);
    const bool is_pause = !session.recording && session.drained_by_ns == 0;
    if (is_pause && !session.ring.HoldsRecords()) return;
    ++session.drain_flushes;
    return Flush(session, 0);
  }
  if (OthersAreDone(session)) TakeBackFromOther(session);
}

}  // namespace

void WriteGap(Session& session, bool begins, recording::GapReason reason, uint64_t ticks) {
  Locked lock(session.writer_lock);
  session.writer->Gap(begins, reason, ticks);
  if (begins && reason == recording::GapReason::kDevice)
    session.converter.BeginPause(MonotonicNs());
}

ScheduleInput PresentInput() {
  return {MonotonicNs(), g_runtime.state->steps_begun.load(), WindowIsOpen()};
}

bool BeginRecording(Session& session) {
  if (!EnableAll(session)) return false;
  session.recording = true;
  WriteGap(session, false, recording::GapReason::kDevice, recording::ReadTicks(g_runtime.clock));
  return true;
}

void WantFlush(Session& session) {
  if (session.flush_wanted.exchange(1) != 0) return;
  ProcessState& state = *g_runtime.state;
  state.step_signal.fetch_add(1);
  if (session.control_sleeps.load() != 0) Wake(&state.step_signal);
}

void RunControl() {
  Session& session = *TheSession();
  ProcessState& state = *g_runtime.state;
  int64_t last_flush = MonotonicNs();
  int64_t next_flush = last_flush + kFlushEveryNs;
  while (session.ending.load(std::memory_order_acquire) == 0) {
    const uint32_t signal = state.step_signal.load(std::memory_order_acquire);
    ApplyLending(session);
    const bool was_recording = session.recording;
    if (!session.lent && !session.taken) ApplySchedule(session);
    if (was_recording && !session.recording) next_flush = 0;  // at once
    if (session.flush_wanted.exchange(0) != 0) {
      const int64_t soon = last_flush + kFlushLowNs;
      if (soon < next_flush) next_flush = soon;
    }
    if (MonotonicNs() >= next_flush) {
      // Not within cuInit, which may hold CUPTI's locks for long.
      if (!session.lent && session.requested.load() != 0) KeepCupti(session);
      last_flush = MonotonicNs();
      next_flush = last_flush + (session.drained_by_ns != 0 ? kFlushDrainingNs : kFlushEveryNs);
    }
    const uint64_t next_step = session.schedule.NextStep();
    const bool step_came = next_step != 0 && state.steps_begun.load() == next_step;
    if (step_came && !session.lent && !session.taken) continue;  // meanwhile
    const int64_t next_change = session.schedule.NextNs();
    const int64_t next = next_change < next_flush ? next_change : next_flush;
    session.control_sleeps.store(1);
    if (session.ending.load() == 0) SleepWhile(&state.step_signal, signal, next - MonotonicNs());
    session.control_sleeps.store(0);
  }
  StopAnswering();
  if (!session.lent && !session.taken) EndRecording(session);
  session.control_done.store(1, std::memory_order_release);
  Wake(&session.control_done);
}

}  // namespace trainprof::collectors
