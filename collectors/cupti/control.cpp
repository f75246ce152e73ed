// The thread that calls CUPTI: switches recording on and off as the schedule and the user's window
// say, and flushes once a second.
//
// Recording ends in steps: calls are no longer recorded; CUPTI is flushed until each recorded launch
// has been answered, or kDrainNs are over; then the device's kinds are switched off. CUPTI holds the
// records of work that is under way when its kind is switched off, and gives it the end at which it is
// switched on again (kineto#1105).
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
constexpr int64_t kDrainNs = 2 * recording::kNsPerSecond;
constexpr int64_t kFlushDrainingNs = 100'000'000;
constexpr uint32_t kForced = 1;  // CUPTI_ACTIVITY_FLAG_FLUSH_FORCED

CUpti_ActivityKind Kind(ActivityKind kind) { return static_cast<CUpti_ActivityKind>(kind); }

// Those of the device, switched on first and off last, so that no launch is recorded whose kernel
// is not. Devices, contexts and streams are never switched off (session.cpp).
struct SwitchedKind {
  ActivityKind kind;
  const char* enable;  // the call, as it is reported when CUPTI refuses it
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
constexpr SwitchedKind kGraphs = {kGraphActivity, "cuptiActivityEnable(GRAPH_TRACE)"};
constexpr SwitchedKind kAllCalls[] = {{kRuntimeActivity, "cuptiActivityEnable(RUNTIME)"},
                                      {kDriverActivity, "cuptiActivityEnable(DRIVER)"}};

CUptiResult EnableKind(Session& session, const SwitchedKind& switched) {
  return Watched(session, switched.enable,
                 [&] { return session.library.api.enable(Kind(switched.kind)); });
}

void DisableKind(Session& session, const SwitchedKind& switched) {
  Watched(session, "cuptiActivityDisable",
          [&] { return session.library.api.disable(Kind(switched.kind)); });
}

void SwitchKind(Session& session, const SwitchedKind& switched, bool on) {
  if (!on) return DisableKind(session, switched);
  NoteRefusal(session, EnableKind(session, switched), switched.enable);
}

void SwitchCalls(Session& session, bool on) {
  const CuptiApi& api = session.library.api;
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
      return (runtime ? api.enable_runtime_api : api.enable_driver_api)(calls[i].cbid, on ? 1 : 0);
    });
    // Numbers that an older version does not know are refused for a good reason.
    if (result != CUPTI_ERROR_INVALID_PARAMETER) NoteRefusal(session, result, name);
  }
}

void SwitchCallbacks(Session& session, bool on) {
  if (session.subscriber == nullptr) return;
  uint32_t count = 0;
  const Call* calls = RecordedCalls(&count);
  for (uint32_t i = 0; i < count; ++i) {
    if (calls[i].use != CallUse::kWaits) continue;
    const bool runtime = calls[i].domain == recording::CallDomain::kRuntime;
    const CUptiResult result = Watched(session, "cuptiEnableCallback", [&] {
      return session.library.api.enable_callback(
          on ? 1 : 0, session.subscriber,
          runtime ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API, calls[i].cbid);
    });
    if (result != CUPTI_ERROR_INVALID_PARAMETER) {
      NoteRefusal(session, result, "cuptiEnableCallback");
    }
  }
}

CUptiResult EnableDeviceKinds(Session& session) {
  const CUptiResult result = EnableKind(session, kKernels);
  if (result != CUPTI_SUCCESS) return result;
  if (g_runtime.options.whole_graphs) SwitchKind(session, kGraphs, true);
  for (const SwitchedKind& kind : kSwitchedKinds) SwitchKind(session, kind, true);
  return CUPTI_SUCCESS;
}

void DisableDeviceKinds(Session& session) {
  if (MayDisableKernels(session.library.api.version)) DisableKind(session, kKernels);
  if (g_runtime.options.whole_graphs) DisableKind(session, kGraphs);
  for (const SwitchedKind& kind : kSwitchedKinds) DisableKind(session, kind);
}

void Flush(Session& session, uint32_t flag) {
  const CUptiResult flushed = Watched(session, "cuptiActivityFlushAll",
                                      [&] { return session.library.api.flush_all(flag); });
  size_t dropped = 0;
  const CUptiResult asked = Watched(session, "cuptiActivityGetNumDroppedRecords", [&] {
    return session.library.api.get_dropped(nullptr, 0, &dropped);
  });
  if (asked == CUPTI_SUCCESS) session.dropped.fetch_add(dropped, std::memory_order_relaxed);
  NoteRefusal(session, flushed, "cuptiActivityFlushAll");
  NoteRefusal(session, asked, "cuptiActivityGetNumDroppedRecords");
}

// All kinds that come and go. False when kernels cannot be recorded; kCuptiState tells why then.
bool EnableAll(Session& session) {
  const CUptiResult result = EnableDeviceKinds(session);
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
  }
  SwitchCalls(session, true);
  SwitchCallbacks(session, true);
  return true;
}

void DisableCalls(Session& session) {
  SwitchCallbacks(session, false);
  SwitchCalls(session, false);
}

void BeginDraining(Session& session) {
  WriteGap(session, true, recording::GapReason::kDevice, recording::ReadTicks(g_runtime.clock));
  DisableCalls(session);
  session.recording = false;
  session.drained_by_ns = MonotonicNs() + kDrainNs;
}

void EndDraining(Session& session) {
  DisableDeviceKinds(session);
  Flush(session, kForced);
  session.drained_by_ns = 0;
}

// Of the nodes of a graph two flushes brought no more.
bool IsDrained(const Session& session) {
  const int64_t now = MonotonicNs();
  const bool has_all = session.converter.unanswered() == 0 &&
                       now - session.converter.last_node_ns() >= 2 * kFlushDrainingNs;
  return has_all || now >= session.drained_by_ns;
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
  const bool is_drained = session.drained_by_ns != 0 && (want || IsDrained(session));
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
  GiveUpCupti(session);
  Flush(session, kForced);
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

// What is due every second: a flush; and whether it is ours to be flushed.
void KeepCupti(Session& session) {
  if (!session.taken && StillHave(session)) return Flush(session, 0);
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

void RunControl() {
  Session& session = *TheSession();
  ProcessState& state = *g_runtime.state;
  int64_t next_flush = MonotonicNs() + kFlushEveryNs;
  while (session.ending.load(std::memory_order_acquire) == 0) {
    const uint32_t signal = state.step_signal.load(std::memory_order_acquire);
    ApplyLending(session);
    const bool was_recording = session.recording;
    if (!session.lent && !session.taken) ApplySchedule(session);
    if (was_recording && !session.recording) next_flush = 0;  // at once
    if (MonotonicNs() >= next_flush) {
      // Not within cuInit, which may hold CUPTI's locks for long.
      if (!session.lent && session.requested.load() != 0) KeepCupti(session);
      next_flush = MonotonicNs() + (session.drained_by_ns != 0 ? kFlushDrainingNs : kFlushEveryNs);
    }
    const uint64_t next_step = session.schedule.NextStep();
    const bool step_came = next_step != 0 && state.steps_begun.load() == next_step;
    if (step_came && !session.lent && !session.taken) continue;  // meanwhile
    const int64_t next_change = session.schedule.NextNs();
    const int64_t next = next_change < next_flush ? next_change : next_flush;
    if (session.ending.load() == 0) SleepWhile(&state.step_signal, signal, next - MonotonicNs());
  }
  StopAnswering();
  if (!session.lent && !session.taken) Flush(session, kForced);
  session.control_done.store(1, std::memory_order_release);
  Wake(&session.control_done);
}

}  // namespace trainprof::collectors
