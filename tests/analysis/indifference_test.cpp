// What is no part of a loop's work changes nothing of what a report says about the loop: a range around all of it, a
// thread that writes logs, and how streams are numbered.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "analysis/job/analysis.h"
#include "tests/analysis/random_program.h"
#include "tests/support/random_trace.h"
#include "tests/support/sanitized.h"

namespace trainprof {
namespace {

constexpr uint64_t kTraces = testing::Rounds(2'000);
constexpr uint64_t kPrograms = testing::Rounds(400);

// Devices' accounts, and what findings say: of gains that are the same either may come first.
std::vector<std::string> SaidOf(const Trace& trace) {
  std::vector<std::string> lines;
  const RankAnalysis rank = Analyze(trace);
  for (const DeviceReport& device : rank.devices) {
    std::string line = fmt::format("GPU {}:", device.id);
    for (const AccountLine& of_class : device.account) {
      if (of_class.total.ns != 0) line += fmt::format(" {} {}", of_class.name, of_class.total.ns);
    }
    lines.push_back(line);
  }
  for (const Finding& f : rank.findings) {
    lines.push_back(fmt::format(
        "{} {} \"{}\" count {} cost {} ns, gain {:.6f} to {:.6f}, {:.6f} expected, sure {:.3f}",
        f.code, Name(f.severity), f.title, f.count, f.cost.ns, f.gain.low_ms_per_step,
        f.gain.high_ms_per_step, f.gain.expected_ms_per_step, f.confidence));
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

Interval SpanOf(const TraceEvents& events) {
  Interval span{TraceTime{INT64_MAX}, TraceTime{INT64_MIN}};
  const auto take = [&](const Interval& interval) {
    span.begin = std::min(span.begin, interval.begin);
    span.end = std::max(span.end, interval.end);
  };
  for (const RangeEvent& range : events.ranges) take(range.interval);
  for (const CallEvent& call : events.calls) take(call.interval);
  for (const OpEvent& op : events.ops) take(op.interval);
  return span;
}

// The first that has a range of a step's name.
int SteppingThread(const TraceEvents& events) {
  for (const RangeEvent& range : events.ranges) {
    if (range.name == "step" || range.name.starts_with("ProfilerStep#")) return range.thread;
  }
  return 0;
}

// Where a device did nothing all the time, a range around all of it may as well be what it waited for.
bool DoesWork(const TraceEvents& events) { return !Analyze(BuildTrace(events)).devices.empty(); }

// A program that starts and ends: its trace is as long within a range around all of it.
TraceEvents Program(TraceEvents events) {
  const Interval span = SpanOf(events);
  if (span.Empty()) return events;
  const int thread = SteppingThread(events);
  constexpr Duration kPause = Microseconds(100);
  constexpr Duration kMoment = Microseconds(5);
  const TraceTime starts = span.begin + Duration{-kPause.ns};
  const TraceTime ends = span.end + kPause;
  events.ranges.push_back(
      {thread, {starts, starts + kMoment}, RangeKind::kUserAnnotation, "start"});
  events.ranges.push_back({thread, {ends, ends + kMoment}, RangeKind::kUserAnnotation, "end"});
  return events;
}

TraceEvents WithinAnEpoch(TraceEvents events) {
  const Interval span = SpanOf(events);
  if (!span.Empty()) {
    events.ranges.push_back({SteppingThread(events), span, RangeKind::kUserAnnotation, "epoch"});
  }
  return events;
}

// A thread that writes and looks now and then, whatever the loop does.
TraceEvents WithALogger(TraceEvents events, uint64_t seed) {
  const Interval span = SpanOf(events);
  Random random(seed);
  const int logger = events.threads++;
  if (span.Empty()) return events;
  for (TraceTime at = span.begin;;) {
    const int64_t pause = random.Between(1, 1 + span.Length().ns / 10);
    const int64_t length = random.Between(1, 1 + span.Length().ns / 20);
    const Interval writes{at + Duration{pause}, at + Duration{pause + length}};
    if (writes.end > span.end) return events;
    events.ranges.push_back({logger, writes, RangeKind::kUserAnnotation, "write log"});
    events.calls.push_back({logger, {writes.begin, writes.begin + Duration{1}}, "cudaEventQuery"});
    at = writes.end;
  }
}

// The last stream is the first, and so on.
TraceEvents WithOtherStreams(TraceEvents events) {
  for (OpEvent& op : events.ops) op.stream = events.streams - 1 - op.stream;
  return events;
}

RandomProgram WithOtherStreams(RandomProgram program) {
  for (auto& step : program.steps) {
    for (Action& action : step) {
      action.stream = program.streams - 1 - action.stream;
      action.other = program.streams - 1 - action.other;
    }
  }
  return program;
}

// How many findings all traces have together.
template <class Change>
size_t ExpectSame(Change change) {
  size_t findings = 0;
  for (uint64_t seed = 0; seed < kTraces; ++seed) {
    const TraceEvents events = Program(DrawTrace(seed, {.least_steps = 2}));
    if (!DoesWork(events)) continue;
    const std::vector<std::string> expected = SaidOf(BuildTrace(events));
    const TraceEvents changed = change(events, seed);
    const std::vector<std::string> said = SaidOf(BuildTrace(changed));
    EXPECT_EQ(said, expected) << "seed " << seed << "\n" << ToText(changed);
    if (said != expected) break;
    findings += expected.size();
  }
  return findings;
}

TEST(Findings, AreTheSameWithinAnEpoch) {
  EXPECT_GT(ExpectSame([](const TraceEvents& e, uint64_t) { return WithinAnEpoch(e); }), kTraces);
}

TEST(Findings, AreTheSameBesideALogger) {
  EXPECT_GT(ExpectSame([](const TraceEvents& e, uint64_t seed) { return WithALogger(e, seed); }),
            kTraces);
}

TEST(Findings, AreTheSameOfRenumberedStreams) {
  EXPECT_GT(ExpectSame([](const TraceEvents& e, uint64_t) { return WithOtherStreams(e); }),
            kTraces);
  for (uint64_t seed = 0; seed < kPrograms; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const RandomProgram program = DrawProgram(random);
    ASSERT_EQ(SaidOf(Simulate(WithOtherStreams(program)).trace), SaidOf(Simulate(program).trace));
  }
}

}  // namespace
}  // namespace trainprof
