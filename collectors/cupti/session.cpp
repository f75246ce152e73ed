#include "collectors/cupti/session.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/core/lending.h"
#include "collectors/core/own_thread.h"
#include "collectors/core/process_state.h"
#include "collectors/cupti/hw_trace.h"
#include "collectors/cupti/messages.h"
#include "collectors/cupti/slot_place.h"
#include "collectors/cupti/stacks.h"
#include "collectors/cupti/takeover.h"
#include "trace/recording/wire/facts.h"
#include "trace/recording/wire/tick_clock.h"

namespace trainprof::collectors {
namespace {

// CUPTI's callbacks carry no context. Set once; what it points to is zeroed in forked children.
constinit std::atomic<Session*> g_session{nullptr};

constexpr ActivityKind kLastingKinds[] = {kDeviceActivity, kContextActivity, kStreamActivity};

constexpr int kSystemThreadIds = 1;  // CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM

uint64_t TimestampNow() { return static_cast<uint64_t>(recording::MonotonicNs()); }

Session* Active() {
  Session* session = g_session.load(std::memory_order_acquire);
  if (session == nullptr || session->active.load(std::memory_order_acquire) == 0) return nullptr;
  return session;
}

void CUPTIAPI BufferRequested(uint8_t** buffer, size_t* size, size_t* most_records) {
  *most_records = 0;  // as many as fit
  Session* session = Active();
  char* data = nullptr;
  if (session != nullptr) {
    session->requested.store(1, std::memory_order_relaxed);
    data = session->ring.Take(MayRefuseBuffers(session->library.api.version));
    if (session->ring.RunsLow()) WantFlush(*session);
  }
  *buffer = reinterpret_cast<uint8_t*>(data);
  *size = data == nullptr ? 0 : kSlotBytes;
}

void CUPTIAPI BufferCompleted(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid_bytes) {
  Session* session = Active();
  if (session == nullptr) return;
  session->ring.Deliver(reinterpret_cast<char*>(buffer), static_cast<uint32_t>(valid_bytes));
  WakeWorker(*session);
}

const char* NameOfCall(recording::CallDomain domain, uint32_t cbid) {
  const char* name = nullptr;
  const auto cupti_domain = domain == recording::CallDomain::kDriver ? CUPTI_CB_DOMAIN_DRIVER_API
                                                                     : CUPTI_CB_DOMAIN_RUNTIME_API;
  const CuptiApi& api = TheSession()->library.api;
  return api.get_callback_name(cupti_domain, cbid, &name) == CUPTI_SUCCESS ? name : nullptr;
}

void SetState(Session& session, CUptiResult result, const char* call, const char* holder) {
  char text[768];
  DescribeFailure(session.library, result, call, holder, text, sizeof text);
  WriteFact(session, fact::kCuptiState, "%s", text);
}

// The clock comes first: records of kinds enabled before it would keep CUPTI's own.
void SetClock(Session& session) {
  const CuptiClient& client = session.client;
  int64_t& offset = session.ring.header()->time_offset_ns;
  if (client.shares || client.api->register_timestamp != nullptr) {
    const CUptiResult result = Watched(session, "cuptiActivityRegisterTimestampCallback",
                                       [&] { return client.SetClock(TimestampNow); });
    session.has_own_clock = result == CUPTI_SUCCESS;
    offset = 0;
    if (session.has_own_clock) return;
    NoteRefusal(session, result, "cuptiActivityRegisterTimestampCallback");
  }
  uint64_t theirs = 0;
  const CUptiResult told =
      Watched(session, "cuptiGetTimestamp", [&] { return client.GetTimestamp(&theirs); });
  if (told != CUPTI_SUCCESS) return;
  offset = static_cast<int64_t>(TimestampNow() - theirs);
  WriteFact(session, fact::kCuptiClock, "CUPTI's own, shifted once");
}

CUptiResult Subscribe(Session& session, char (&holder)[kHolderBytes]) {
  bool unnamed = false;
  CuptiClient& client = session.client;
  const CUptiResult result = Watched(session, "cuptiSubscribe", [&] {
    return SubscribeTo(*client.api, &client.subscriber, OnCall, &session, client.shares, holder,
                       &unnamed);
  });
  if (unnamed) NoteRefusal(session, CUPTI_ERROR_API_NOT_IMPLEMENTED, "cuptiSubscribe_v2");
  return result;
}

// Calls are switched on by their number, or where CUPTI is too old for it as a whole. Numbers count
// no longer, either, when another tool has switched all calls on and off.
void DecideCalls(Session& session, bool after_another) {
  // cudaDeviceReset stays on: CUPTI records no calls at all when it traced none by the time of the
  // first context, as in a window that opens later.
  constexpr uint32_t kDeviceReset = 164;
  const CuptiClient& client = session.client;
  bool by_number = client.HasSingleCalls();
  const char* why = "CUPTI before 12.5";
  if (by_number && after_another) {
    by_number = false;
    why = "torch.profiler has switched them";
  }
  if (by_number) {
    const CUptiResult result = Watched(session, "cuptiActivityEnableRuntimeApi",
                                       [&] { return client.EnableRuntimeApi(kDeviceReset, true); });
    NoteRefusal(session, result, "cuptiActivityEnableRuntimeApi");
    by_number = result == CUPTI_SUCCESS;
  }
  session.ring.header()->whole_kinds = by_number ? 0 : 1;
  if (by_number) return WriteFact(session, fact::kCuptiCalls, "those that matter");
  WriteFact(session, fact::kCuptiCalls, "all are traced and then sifted, at some 100 ns each: %s",
            why);
}

// CUpti_ActivityAttribute: older headers lack some.
constexpr int kDeviceBufferBytes = 0;
constexpr int kDeviceBufferLimit = 2;
constexpr int kZeroedBuffers = 5;
constexpr int kDeviceBuffersAhead = 6;
constexpr int kPinnedBuffers = 8;
constexpr int kAllSyncRecords = 16;

// Of 3.2 MB, for some 100,000 operations each that have not been flushed.
constexpr size_t kMostDeviceBuffers = 32;

template <class Value>
bool SetAttribute(Session& session, int attribute, Value value) {
  size_t bytes = sizeof value;
  const CUptiResult result = Watched(session, "cuptiActivitySetAttribute", [&] {
    return session.client.SetAttribute(attribute, &bytes, &value);
  });
  // What an older version does not know it does not need.
  if (result != CUPTI_ERROR_INVALID_PARAMETER) {
    NoteRefusal(session, result, "cuptiActivitySetAttribute");
  }
  return result == CUPTI_SUCCESS;
}

// Of what was asked for CUPTI says what it keeps to; its manual adds that buffers may be somewhat larger.
void TellDeviceMemory(Session& session) {
  const auto ask = [&session](int attribute, auto* value) {
    size_t bytes = sizeof *value;
    const CUptiResult result = Watched(session, "cuptiActivityGetAttribute", [&] {
      return session.client.GetAttribute(attribute, &bytes, value);
    });
    return result == CUPTI_SUCCESS;
  };
  size_t bytes = 0;
  size_t most = 0;
  size_t ahead = 0;
  if (!ask(kDeviceBufferBytes, &bytes) || !ask(kDeviceBufferLimit, &most) ||
      !ask(kDeviceBuffersAhead, &ahead)) {
    return;
  }
  uint8_t pinned = 0;  // an older version does not know it
  const bool on_host = ask(kPinnedBuffers, &pinned) && pinned != 0;
  const double each = static_cast<double>(bytes) / 1e6;
  WriteFact(session, fact::kCuptiDeviceMemory,
            "up to %.0f MB of %s a context: %zu buffers of %.1f MB, %zu at once",
            each * static_cast<double>(most), on_host ? "pinned memory" : "GPU memory", most, each,
            ahead);
}

// What newer versions can be asked for; a version that lacks a function does without.
void SetHabits(Session& session) {
  const CuptiClient& client = session.client;
  NoteRefusal(session,
              Watched(session, "cuptiSetThreadIdType",
                      [&] { return client.SetThreadIdType(kSystemThreadIds); }),
              "cuptiSetThreadIdType");
  SetAttribute<uint8_t>(session, kZeroedBuffers, 1);
  // From 12.3 on, where it is the default from 13.0 on: else one lock is all launching threads'.
  session.has_own_buffers = SetAttribute<uint8_t>(session, kBuffersPerThread, 1);
  // Of the device's memory, which a training job fills to the last: CUPTI would take 10 to 800 MB a context.
  SetAttribute<size_t>(session, kDeviceBufferLimit, kMostDeviceBuffers);
  SetAttribute<size_t>(session, kDeviceBuffersAhead, 1);
  if (!session.was_away) TellDeviceMemory(session);
  // Queries that found a stream or event busy are no waits: without them a polling loop is silent.
  const auto all_sync_records = client.api->enable_all_sync_records;
  if (client.shares) {
    SetAttribute<uint8_t>(session, kAllSyncRecords, 0);
  } else if (all_sync_records != nullptr) {
    NoteRefusal(
        session,
        Watched(session, "cuptiActivityEnableAllSyncRecords", [&] { return all_sync_records(0); }),
        "cuptiActivityEnableAllSyncRecords");
  }
}

// What CUPTI refuses, and who has it.
struct Failure {
  CUptiResult result;
  const char* call;
  char holder[kHolderBytes];
};

void Unsubscribe(Session& session) {
  CuptiClient& client = session.client;
  if (client.subscriber != nullptr) {
    Watched(session, "cuptiUnsubscribe",
            [&] { return client.api->unsubscribe(client.subscriber); });
  }
  client.subscriber = nullptr;
}

// Another client is there that records beside others.
bool IsOfOthersScope(CUptiResult result) {
  return result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED ||
         result == CUPTI_ERROR_NOT_COMPATIBLE;
}

// As session.client.shares has it. False: *failure, where there is one, tells why not.
bool Take(Session& session, Failure* failure) {
  CuptiClient& client = session.client;
  Failure found = {};
  // Who holds CUPTI keeps its clock and its buffers: nothing is set before we are subscribed. A tool
  // that has handed it over may stay subscribed; then there are no stacks of calls.
  found.call = "cuptiSubscribe";
  if (client.subscriber == nullptr) found.result = Subscribe(session, found.holder);
  if (found.result != CUPTI_SUCCESS) client.subscriber = nullptr;
  if (session.was_away && !client.shares) {
    NoteRefusal(session, found.result, "cuptiSubscribe after torch.profiler");
    found.result = CUPTI_SUCCESS;
  }
  if (found.result == CUPTI_SUCCESS) {
    SetClock(session);
    SetHabits(session);
    NoteWhatIsOurs(session);
    found.call = "cuptiActivityRegisterCallbacks";
    found.result = Watched(session, found.call, [&] {
      return client.SetBuffers({BufferRequested, BufferCompleted});
    });
  }
  if (found.result != CUPTI_SUCCESS) {
    Unsubscribe(session);
    if (failure != nullptr) *failure = found;
    return false;
  }
  session.ours_until_ticks = recording::ReadTicks(g_runtime.clock);
  DecideCalls(session, session.was_away);
  for (const ActivityKind kind : kLastingKinds) {
    constexpr char kCall[] = "cuptiActivityEnable(devices, contexts, streams)";
    const CUptiResult enabled = Watched(
        session, kCall, [&] { return client.Enable(static_cast<CUpti_ActivityKind>(kind)); });
    NoteRefusal(session, enabled, kCall);
  }
  if (client.shares) WriteFact(session, fact::kCuptiScope, "subscriber");
  return true;
}

void WriteFacts(Session& session) {
  const CuptiLibrary& library = session.library;
  const int version = library.cuda_version;
  WriteFact(session, fact::kCuptiVersion, "%d.%d (%u)", version / 1000, version % 1000 / 10,
            library.api.version);
  WriteFact(session, fact::kCuptiPath, "%s", library.path);
  WriteFact(session, fact::kCuptiAnswerUs, "%lld",
            static_cast<long long>(library.answers_ns / 1000));
  if (library.driver_version != 0) {
    WriteFact(session, fact::kDriverVersion, "%d.%d", library.driver_version / 1000,
              library.driver_version % 1000 / 10);
  }
  if (!MayDisableKernels(library.api.version)) {
    WriteFact(session, fact::kCuptiKeptOn,
              "CUPTI 13.0.0 may hang where kernels are switched off under load");
  }
  if (!HasTrueNames(library.api.version)) {
    WriteFact(
        session, fact::kCuptiNames,
        "may be a former kernel's where a module is loaded again (CUPTI before 13.4 update 1)");
  }
  char hw_trace[256];
  if (DescribeHwTrace(library.api.version, hw_trace, sizeof hw_trace)) {
    WriteFact(session, fact::kCuptiHwTrace, "%s", hw_trace);
  }
  WriteFact(session, fact::kCuptiGraphs, "%s", g_runtime.options.whole_graphs ? "graph" : "node");
}

// Where the buffers are not beside the segment, or should not be.
void TellPlace(Session& session, const SlotPlace& place, int slot_error) {
  if (!session.ring.is_file()) {
    WriteFact(session, fact::kCuptiBuffers, "in memory (%s): a crash may lose 1 s",
              DescribeError(slot_error));
  } else if (session.ring.header()->beside_segment[0] != 0) {
    WriteFact(session, fact::kCuptiBuffers, "in %s: %s", place.folder, place.why);
  } else if (place.folder[0] != 0) {
    WriteFact(session, fact::kCuptiBuffers, "beside the recording: no file could be made in %s",
              place.folder);
  } else if (place.why[0] != 0) {
    WriteFact(session, fact::kCuptiBuffers, "beside the recording: %s", place.why);
  }
}

// The ring and the rows' writer.
bool OpenOutput(Session& session) {
  const char* const segment = g_runtime.state->segment_path;
  const SlotPlace place = ChooseSlotPlace(segment, g_runtime.options.buffers);
  int error = 0;
  if (!PrepareStacks() || !session.ring.Open(segment, place.folder, &error)) {
    WriteFact(session, fact::kCuptiState, "no memory for CUPTI's buffers");
    return false;
  }
  SlotFileHeader& header = *session.ring.header();
  header.writer = session.writer->number();
  header.segment_identity = g_runtime.state->segment->identity;
  if (!MeasureRecords(session.library.api, header.record_bytes)) {
    WriteFact(session, fact::kCuptiState, "libcupti at %s does not tell how large its records are",
              session.library.path);
    return false;
  }
  session.client.api = &session.library.api;
  session.converter.Init(session.writer, &header, true, NameOfCall);
  header.magic.store(kSlotFileMagic, std::memory_order_release);
  TellPlace(session, place, error);
  return true;
}

void StartSchedule(Session& session) {
  const Options& options = g_runtime.options;
  const Schedule::Plan plan = {options.full || options.HasWindow(), options.has_steps,
                               options.first_step, options.pause_ns};
  session.schedule.Start(plan, PresentInput());
}

void CountFork() {
  if (Session* session = Active()) session->forks.fetch_add(1, std::memory_order_relaxed);
}

// As the schedule has it, and unless CUPTI is lent. False: kCuptiState tells why not.
bool StartRecording(Session& session) {
  const uint64_t opened = g_runtime.state->segment->opened.ticks;
  session.lent = CuptiIsWanted();
  if (session.lent) WriteGap(session, true, recording::GapReason::kLent, opened);
  if (!session.lent && !TakeCupti(session)) return false;
  StartSchedule(session);
  const bool wanted = session.schedule.Want(PresentInput());
  if (!wanted) WriteGap(session, true, recording::GapReason::kDevice, opened);
  if (session.lent) session.recording = wanted;
  return !wanted || session.lent || BeginRecording(session);
}

// Records from here on, or kCuptiState says why not.
void Begin(Session& session) {
  LoadCupti(&session.library);
  if (!session.library.found) {
    WriteFact(session, fact::kCuptiState, "%s", session.library.why_not);
    return;
  }
  if (!OpenOutput(session)) return;
  WriteFacts(session);
  session.active.store(1, std::memory_order_release);
  if (!StartRecording(session)) return session.active.store(0);
  AnswerLending(session.lent);  // the thread that goes on with it is on its way
  if (!StartOwnThread("trainprof", RunWorker) || !StartOwnThread("trainprof-cupti", RunControl)) {
    StopAnswering();
    WriteFact(session, fact::kCuptiState, "no thread could be started");
    return session.active.store(0);
  }
  atexit(FinishSession);
  pthread_atfork(nullptr, CountFork, nullptr);
  g_runtime.in_child.store(TellChild, std::memory_order_release);
  WriteFact(session, fact::kCuptiState, "%s", fact::kGpuRecording);
}

// The program waited for us. Steps that this falls into are set aside as warm-up, so it is a row,
// too.
void NoteSetup(Session& session, int64_t begin_ns, int64_t end_ns) {
  WriteFact(session, fact::kCuptiSetupUs, "%lld",
            static_cast<long long>((end_ns - begin_ns) / 1000));
  if (session.active.load() == 0) return;
  recording::DeviceRow row;
  memset(static_cast<void*>(&row), 0, sizeof row);
  row.type = recording::DeviceRowType::kOverhead;
  row.begin_ns = begin_ns;
  row.end_ns = end_ns;
  row.detail = recording::kSetupOverhead;
  row.overhead.object_kind = recording::kThreadObject;
  row.overhead.object = static_cast<uint32_t>(ThreadId());
  Locked lock(session.writer_lock);
  session.writer->Write(row);
}

}  // namespace

Session* TheSession() { return g_session.load(std::memory_order_acquire); }

void WriteFact(Session& session, const char* key, const char* format, ...) {
  char text[1536];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  Locked lock(session.writer_lock);
  session.writer->Fact(key, text);
}

bool TakeCupti(Session& session) {
  const bool can = CanShare(session.library) && !g_runtime.options.whole_graphs;
  const bool first = can && PrefersToShare();
  if (first) {
    session.client.shares = true;
    if (Take(session, nullptr)) return true;
  }
  Failure failure = {};
  session.client.shares = false;
  if (Take(session, &failure)) return true;
  session.client.shares = can && !first && IsOfOthersScope(failure.result);
  if (session.client.shares && Take(session, nullptr)) return true;
  SetState(session, failure.result, failure.call, failure.holder);
  return false;
}

void GiveUpCupti(Session& session) {
  CuptiClient& client = session.client;
  for (const ActivityKind kind : kLastingKinds) {
    Watched(session, "cuptiActivityDisable",
            [&] { return client.Disable(static_cast<CUpti_ActivityKind>(kind)); });
  }
  Unsubscribe(session);
}

void NoteRefusal(Session& session, CUptiResult result, const char* call) {
  if (result == CUPTI_SUCCESS || strstr(session.refusals, call) != nullptr) return;
  const size_t length = strlen(session.refusals);
  if (length + 1 >= sizeof session.refusals)
    return;  // full: each later one would be told again and again
  snprintf(session.refusals + length, sizeof session.refusals - length, "%s%s gives %s",
           length == 0 ? "" : "; ", call, ResultName(session.library.api, result));
  WriteFact(session, fact::kCuptiRefused, "%s", session.refusals);
}

void StartSession() {
  static constinit std::atomic<uint32_t> started{0};
  if (started.exchange(1) != 0 || !InstallRuntime()) return;
  if (g_runtime.state->generation.load() == 0 && !StartProcess()) return;
  if (g_runtime.state->segment == nullptr) return;  // the cause is in RunControl
  auto* session = static_cast<Session*>(AllocatePagesWipedInChild(sizeof(Session)));
  RowWriter* writer = RowWriter::Make();
  if (session == nullptr || writer == nullptr) return;
  session->writer = writer;
  g_session.store(session, std::memory_order_release);
  const int64_t before = recording::MonotonicNs();
  if (g_runtime.options.gpu_off) {
    WriteFact(*session, fact::kCuptiState, "%s--no-gpu", fact::kGpuOff);
  } else {
    Begin(*session);
  }
  NoteSetup(*session, before, recording::MonotonicNs());
}

}  // namespace trainprof::collectors
