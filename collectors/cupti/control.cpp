// The thread that calls CUPTI: switches recording on and off as the schedule and the user's window
// say, and flushes once a second.
#include "collectors/core/lending.h"
#include "collectors/core/process_state.h"
#include "collectors/core/window.h"
#include "collectors/cupti/messages.h"
#include "collectors/cupti/session.h"
#include "trace/recording/wire/facts.h"
#include "trace/recording/wire/tick_clock.h"

namespace trainprof::collectors {
namespace {

using recording::MonotonicNs;

constexpr int64_t kFlushEveryNs = recording::kNsPerSecond;
constexpr uint32_t kForced = 1;  // CUPTI_ACTIVITY_FLAG_FLUSH_FORCED

CUpti_ActivityKind Kind(ActivityKind kind) { return static_cast<CUpti_ActivityKind>(kind); }

// Those of the device, switched on first and off last, so that no launch is recorded whose kernel
// is not. Devices, contexts and streams are never switched off (session.cpp).
struct SwitchedKind {
  ActivityKind kind;
  const char* enable;  // the call, as it is reported when CUPTI refuses it
};
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

void SwitchKind(Session& session, const SwitchedKind& switched, bool on) {
  const CuptiApi& api = session.library.api;
  if (on) {
    NoteRefusal(session, api.enable(Kind(switched.kind)), switched.enable);
  } else {
    api.disable(Kind(switched.kind));
  }
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
    const CUptiResult result =
        (runtime ? api.enable_runtime_api : api.enable_driver_api)(calls[i].cbid, on ? 1 : 0);
    // Numbers that an older version does not know are refused for a good reason.
    if (result != CUPTI_ERROR_INVALID_PARAMETER) {
      NoteRefusal(session, result,
                  runtime ? "cuptiActivityEnableRuntimeApi" : "cuptiActivityEnableDriverApi");
    }
  }
}

void SwitchCallbacks(Session& session, bool on) {
  if (session.subscriber == nullptr) return;
  uint32_t count = 0;
  const Call* calls = RecordedCalls(&count);
  for (uint32_t i = 0; i < count; ++i) {
    if (!calls[i].blocks) continue;
    const bool runtime = calls[i].domain == recording::CallDomain::kRuntime;
    const CUptiResult result = session.library.api.enable_callback(
        on ? 1 : 0, session.subscriber,
        runtime ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API, calls[i].cbid);
    if (result != CUPTI_ERROR_INVALID_PARAMETER) {
      NoteRefusal(session, result, "cuptiEnableCallback");
    }
  }
}

CUptiResult SwitchDeviceKinds(Session& session, bool on) {
  const CuptiApi& api = session.library.api;
  const CUpti_ActivityKind kernels = Kind(kKernelActivity);
  const CUptiResult result = on ? api.enable(kernels) : api.disable(kernels);
  if (on && result != CUPTI_SUCCESS) return result;
  if (g_runtime.options.whole_graphs) SwitchKind(session, kGraphs, on);
  for (const SwitchedKind& kind : kSwitchedKinds) SwitchKind(session, kind, on);
  return CUPTI_SUCCESS;
}

void ApplySchedule(Session& session) {
  constexpr uint32_t kNoRoom = kGatePhasesOnly | kGateFull | kGateFailed;
  const bool room = (g_runtime.state->gate.load(std::memory_order_relaxed) & kNoRoom) == 0;
  const bool want = session.schedule.Want(PresentInput()) && room && !session.failed.load();
  if (want != session.recording) SwitchRecording(session, want);
  g_runtime.state->signal_at_step.store(session.schedule.NextStep());
}

void Flush(Session& session, uint32_t flag) {
  session.flush_since_ns.store(MonotonicNs());
  const CUptiResult flushed = session.library.api.flush_all(flag);
  size_t dropped = 0;
  const CUptiResult asked = session.library.api.get_dropped(nullptr, 0, &dropped);
  if (asked == CUPTI_SUCCESS) session.dropped.fetch_add(dropped, std::memory_order_relaxed);
  session.flush_since_ns.store(0);
  NoteRefusal(session, flushed, "cuptiActivityFlushAll");
  NoteRefusal(session, asked, "cuptiActivityGetNumDroppedRecords");
}

// All kinds that come and go. False when kernels cannot be recorded; kCuptiState tells why then.
bool SwitchKinds(Session& session, bool on) {
  if (!on) {
    SwitchCallbacks(session, false);
    SwitchCalls(session, false);
    SwitchDeviceKinds(session, false);
    return true;
  }
  const CUptiResult result = SwitchDeviceKinds(session, true);
  if (result != CUPTI_SUCCESS) {
    char text[512];
    DescribeFailure(session.library, result, "cuptiActivityEnable", "", text, sizeof text);
    WriteFact(session, fact::kCuptiState, "%s", text);
    session.failed.store(true);
    return false;
  }
  SwitchCalls(session, true);
  SwitchCallbacks(session, true);
  return true;
}

// The other tool finds CUPTI as if nobody had used it.
void Lend(Session& session) {
  WriteGap(session, true, recording::GapReason::kLent, recording::ReadTicks(g_runtime.clock));
  if (session.recording) SwitchKinds(session, false);
  GiveUpCupti(session);
  Flush(session, kForced);
  session.lent = true;
}

void TakeBack(Session& session) {
  session.lent = false;
  session.was_lent = true;
  if (session.failed.load()) return;
  if (!TakeCupti(session)) return session.failed.store(true);  // the gap lasts
  if (session.recording && !SwitchKinds(session, true)) return;
  WriteGap(session, false, recording::GapReason::kLent, recording::ReadTicks(g_runtime.clock));
}

void ApplyLending(Session& session) {
  const bool wanted = CuptiIsWanted();
  if (wanted != session.lent) wanted ? Lend(session) : TakeBack(session);
  AnswerLending(session.lent);
}

}  // namespace

void WriteGap(Session& session, bool begins, recording::GapReason reason, uint64_t ticks) {
  Locked lock(session.writer_lock);
  session.writer->Gap(begins, reason, ticks);
}

ScheduleInput PresentInput() {
  return {MonotonicNs(), g_runtime.state->steps_begun.load(), WindowIsOpen()};
}

bool SwitchRecording(Session& session, bool on) {
  const uint64_t before = recording::ReadTicks(g_runtime.clock);
  if (!on) WriteGap(session, true, recording::GapReason::kDevice, before);
  if (!SwitchKinds(session, on)) return false;
  session.recording = on;
  if (on) {
    WriteGap(session, false, recording::GapReason::kDevice, recording::ReadTicks(g_runtime.clock));
  }
  return true;
}

void RunControl() {
  Session& session = *TheSession();
  ProcessState& state = *g_runtime.state;
  int64_t next_flush = MonotonicNs() + kFlushEveryNs;
  while (session.ending.load(std::memory_order_acquire) == 0) {
    const uint32_t signal = state.step_signal.load(std::memory_order_acquire);
    ApplyLending(session);
    if (!session.lent) ApplySchedule(session);
    if (MonotonicNs() >= next_flush) {
      if (!session.lent) Flush(session, 0);
      next_flush = MonotonicNs() + kFlushEveryNs;
    }
    const uint64_t next_step = session.schedule.NextStep();
    const bool step_came = next_step != 0 && state.steps_begun.load() == next_step;
    if (step_came && !session.lent) continue;  // meanwhile
    if (session.ending.load() == 0)
      SleepWhile(&state.step_signal, signal, next_flush - MonotonicNs());
  }
  StopAnswering();
  if (!session.lent) Flush(session, kForced);
  session.control_done.store(1, std::memory_order_release);
  Wake(&session.control_done);
}

}  // namespace trainprof::collectors
