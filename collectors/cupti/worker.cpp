// The thread that makes rows of what CUPTI has delivered.
#include <stdio.h>
#include <string.h>

#include "collectors/core/process_state.h"
#include "collectors/core/window.h"
#include "collectors/cupti/session.h"
#include "trace/recording/wire/facts.h"
#include "trace/recording/wire/tick_clock.h"

namespace trainprof::collectors {
namespace {

using recording::kNsPerSecond;
using recording::MonotonicNs;

constexpr int64_t kLongCallMs = 100;     // is worth a fact
constexpr int64_t kPollNs = 50'000'000;  // of the user's delay and duration

// Numbers that become facts when they change.
struct Reported {
  uint64_t dropped;
  uint64_t untimed;
  uint64_t in_flight;
  uint64_t under_way;
  uint64_t misdated;
  uint64_t nameless;
  uint64_t reordered;
  uint64_t repeated;
  uint64_t unreadable;
  uint64_t lost_bytes;
  uint64_t refused;
  uint64_t stacks_skipped;
  uint64_t stack_cost_ns;
  uint64_t stacks_scanned;
  uint64_t forks;
  uint64_t largest_age_ms;
  uint64_t longest_call_ms;
};

struct Worker {
  Session& session;
  Reported reported{};
  Converter::Counts seen{};  // a second ago
  int64_t largest_age_ns = 0;
  int64_t former_begin_ns = 0;  // the earliest in the buffer that came last
  uint64_t reordered = 0;       // buffers all of whose rows are older than that
  int64_t next_second = 0;
  int64_t told_of_ns = 0;  // when the call began that takes too long

  void Report(const char* key, uint64_t now, uint64_t* before) {
    if (now == *before) return;
    *before = now;
    WriteFact(session, key, "%llu", static_cast<unsigned long long>(now));
  }

  void NoteDelivery(const Slot& slot) {
    const int64_t first = session.converter.first_begin_ns();
    if (first == INT64_MAX) return;
    const int64_t age = slot.delivered_ns.load() - first;
    if (age > largest_age_ns) largest_age_ns = age;
    if (session.converter.last_begin_ns() < former_begin_ns) ++reordered;
    former_begin_ns = first;
  }

  bool EmptyDelivered() {
    bool any = false;
    while (Slot* slot = session.ring.NextDelivered()) {
      any = true;
      if (session.ending.load(std::memory_order_acquire) != 0) session.converter.ProgramEnds();
      {
        Locked lock(session.writer_lock);
        session.converter.Convert(session.ring.DataOf(slot), slot->valid_bytes.load(),
                                  &slot->done_bytes, 0);
      }
      NoteDelivery(*slot);
      session.ring.Recycle(slot);
      session.ring.KeepAhead();
    }
    return any;
  }

  void ReportNumbers() {
    const Converter::Counts& counts = session.converter.counts();
    Report(fact::kCuptiDropped, session.dropped.load(), &reported.dropped);
    Report(fact::kCuptiUntimed, counts.untimed, &reported.untimed);
    Report(fact::kCuptiInFlight, counts.in_flight, &reported.in_flight);
    Report(fact::kCuptiUnderWay, counts.under_way, &reported.under_way);
    Report(fact::kCuptiMisdated, counts.misdated, &reported.misdated);
    Report(fact::kCuptiNamelessKernels, counts.nameless, &reported.nameless);
    Report(fact::kCuptiReorderedBuffers, reordered, &reported.reordered);
    Report(fact::kCuptiRepeatedCallbacks, session.repeated_callbacks.load(), &reported.repeated);
    Report(fact::kCuptiUnreadableBytes, counts.unreadable, &reported.unreadable);
    Report(fact::kCuptiOverwrittenBytes, session.ring.lost_bytes(), &reported.lost_bytes);
    Report(fact::kCuptiRefusedBuffers, session.ring.refused(), &reported.refused);
    Report(fact::kCuptiStacksSkipped, session.stacks_skipped.load(), &reported.stacks_skipped);
    constexpr uint64_t kRoundNs = 1000;  // so that it seldom changes
    Report(fact::kCuptiStackCostNs,
           (session.stack_cost_ns.load() + kRoundNs - 1) / kRoundNs * kRoundNs,
           &reported.stack_cost_ns);
    Report(fact::kCuptiStacksScanned, session.stacks_scanned.load(), &reported.stacks_scanned);
    Report(fact::kCuptiForks, session.forks.load(), &reported.forks);
    Report(fact::kCuptiLargestUndeliveredMs, static_cast<uint64_t>(largest_age_ns / 1'000'000),
           &reported.largest_age_ms);
    const int64_t longest_call_ms = session.longest_call_ns.load() / 1'000'000;
    if (longest_call_ms >= kLongCallMs) {
      Report(fact::kCuptiLongestCallMs, static_cast<uint64_t>(longest_call_ms),
             &reported.longest_call_ms);
    }
  }

  // `ending`: the process does not wait any longer.
  void WatchCalls(bool ending) {
    const int64_t since = session.call_since_ns.load(std::memory_order_acquire);
    if (told_of_ns != 0 && since != told_of_ns) {
      told_of_ns = 0;
      const char* state = session.taken.load() ? fact::kGpuTaken : fact::kGpuRecording;
      if (!session.failed.load()) WriteFact(session, fact::kCuptiState, "%s", state);
    }
    if (since == 0 || told_of_ns != 0 || (MonotonicNs() - since < kCallLimitNs && !ending)) return;
    told_of_ns = since;
    const int64_t last = session.converter.last_end_ns();
    WriteFact(session, fact::kCuptiState,
              "%s exceeded %lld s; leaving it. Last event %.1f s ago; data saved.",
              session.call.load(), static_cast<long long>(kCallLimitNs / kNsPerSecond),
              last == 0 ? 0.0 : static_cast<double>(MonotonicNs() - last) / 1e9);
  }

  // The user's delay and duration run in programs without NVTX, too.
  void WatchWindow() {
    const WindowChange change = CheckTime().change;
    const bool initial = g_runtime.state->initial_gap.exchange(0) != 0;
    if (change == WindowChange::kNone && !initial) return;
    {
      Locked lock(session.writer_lock);
      if (initial && g_runtime.state->segment != nullptr) {
        session.writer->Gap(true, recording::GapReason::kWindow,
                            g_runtime.state->segment->opened.ticks);
      }
      if (change != WindowChange::kNone) {
        session.writer->Gap(change == WindowChange::kClosed, recording::GapReason::kWindow,
                            recording::ReadTicks(g_runtime.clock));
      }
    }
    SignalFollowers();
  }

  // CUPTI stamps no more, or in the wrong order, where its buffers on the device are used up, which it
  // does not say. Work that a window's end cut off is none of it.
  void WatchTimes() {
    constexpr uint64_t kFew = 50;
    constexpr int64_t kOnTheirWayNs = 3 * kNsPerSecond;
    const Converter::Counts& counts = session.converter.counts();
    const uint64_t lost = counts.untimed - seen.untimed;
    const uint64_t untimed = lost + counts.reversed - seen.reversed;
    const uint64_t all = lost + counts.rows - seen.rows;
    seen = counts;
    const int64_t cut_off_ns = session.cut_off_ns.load(std::memory_order_relaxed);
    if (cut_off_ns != 0 && MonotonicNs() - cut_off_ns < kOnTheirWayNs) return;
    if (untimed <= kFew || untimed * 100 <= all || session.failed.exchange(true)) return;
    WriteFact(
        session, fact::kCuptiState,
        "%llu of %llu records of a second have no times, or impossible ones: CUPTI ran out of buffers on the device",
        static_cast<unsigned long long>(untimed), static_cast<unsigned long long>(all));
  }

  void EachSecond() {
    if (MonotonicNs() < next_second) return;
    next_second = MonotonicNs() + kNsPerSecond;
    session.ring.header()->alive_ns.store(MonotonicNs(), std::memory_order_relaxed);
    {
      Locked lock(session.writer_lock);
      session.writer->Clock();
    }
    ReportNumbers();
    WatchTimes();
    WatchCalls(false);
  }

  void Run() {
    for (;;) {
      const uint32_t work = session.work.load(std::memory_order_acquire);
      const bool last = session.ending.load(std::memory_order_acquire) == 2;
      session.ring.KeepAhead();
      const bool any = EmptyDelivered();
      if (last) break;
      WatchWindow();
      EachSecond();
      if (any) continue;
      session.worker_sleeps.store(1);
      SleepWhile(&session.work, work, g_runtime.options.HasWindow() ? kPollNs : kNsPerSecond);
      session.worker_sleeps.store(0);
    }
    session.converter.Settle();
    {
      Locked lock(session.writer_lock);
      session.converter.WriteWaiting();
      session.converter.EndOpenCalls(MonotonicNs());
    }
    ReportNumbers();
    WatchCalls(true);
  }
};

}  // namespace

void WakeWorker(Session& session) {
  session.work.fetch_add(1);
  if (session.worker_sleeps.load() != 0) Wake(&session.work);
}

void RunWorker() {
  Session& session = *TheSession();
  Worker{session}.Run();
  session.worker_done.store(1, std::memory_order_release);
  Wake(&session.worker_done);
}

}  // namespace trainprof::collectors
