// The time accounts against the brute-force twin (twin.h), and the invariant that they add up.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "analysis/account/account.h"
#include "analysis/graph/build.h"
#include "tests/analysis/twin.h"
#include "tests/support/random_trace.h"
#include "tests/support/sanitized.h"
#include "trace/formats/importer.h"

namespace trainprof {
namespace {

constexpr uint64_t kTwinTraces = testing::Rounds(5'000);
constexpr uint64_t kTwinTracesInNanoseconds = testing::Rounds(3'000);
constexpr uint64_t kCrossingTwinTraces = testing::Rounds(3'000);
constexpr uint64_t kSumTraces = testing::Rounds(10'000);

std::string CompareDevice(const DeviceAccount& account, const TwinDevice& twin,
                          const Steps& steps) {
  std::string text;
  if (account.device != twin.device) text += "another device\n";
  for (size_t c = 0; c < kDeviceClasses; ++c) {
    if (account.total[c].ns == twin.class_ns[c]) continue;
    text += fmt::format("device {} {}: {} ns, twin {} ns\n", Index(twin.device),
                        Name(static_cast<DeviceClass>(c)), account.total[c].ns, twin.class_ns[c]);
  }
  const int64_t busy_ns = account.BusyWithin(steps.device_window).ns;
  if (busy_ns != twin.busy_ns) {
    text += fmt::format("busy: {} ns, twin {} ns\n", busy_ns, twin.busy_ns);
  }
  int64_t idle_ns = 0;
  for (const Segment<DeviceClass>& segment : account.idle) {
    idle_ns += steps.device_window.TotalWithin(segment.interval).ns;
  }
  if (idle_ns != twin.idle_ns) {
    text += fmt::format("idle segments: {} ns, twin {} ns\n", idle_ns, twin.idle_ns);
  }
  return text;
}

// The explicit steps that a drawn trace has: one inside another is none.
std::vector<Interval> StepRanges(const TraceEvents& events) {
  std::vector<Interval> ranges;
  for (const RangeEvent& range : events.ranges) {
    if (!IsStepName(range.name)) continue;
    if (!ranges.empty() && range.interval.end <= ranges.back().end) continue;
    ranges.push_back(range.interval);
  }
  return ranges;
}

bool InDeviceTime(const Steps& steps) {
  return std::all_of(steps.steps.begin(), steps.steps.end(),
                     [](const Step& step) { return step.device == step.span; });
}

// What differs, in words; empty when nothing does.
std::string CompareWithTwin(const TraceEvents& events) {
  const Trace trace = BuildTrace(events);
  const Steps steps = FindSteps(trace);
  std::vector<Interval> ranges = StepRanges(events);
  std::string text;
  if ((steps.source == StepSource::kExplicit) != !ranges.empty()) text += "explicit steps\n";
  if (ranges.empty()) {  // the analysis may have inferred some: only their spans are compared
    for (const Step& step : steps.steps) ranges.push_back(step.range);
  } else if (steps.count() != ranges.size()) {
    text += fmt::format("{} steps, drawn {}\n", steps.count(), ranges.size());
  }
  // Inferred ones may be in the device's time.
  const bool on_device = steps.source == StepSource::kInferred && InDeviceTime(steps);
  const Graph graph = BuildGraph(trace, steps, FindBlockingCalls(trace));
  const TwinAccounts twin = AccountByBruteForce(trace, graph, steps.thread, ranges, on_device);
  if (steps.device_window.Total().ns != twin.device_window_ns) {
    text += fmt::format("device window: {} ns, twin {} ns\n", steps.device_window.Total().ns,
                        twin.device_window_ns);
  }
  if (steps.window.Total().ns != twin.window_ns) {
    text += fmt::format("window: {} ns, twin {} ns\n", steps.window.Total().ns, twin.window_ns);
  }
  const std::vector<DeviceAccount> devices = AccountDevices(trace, steps);
  if (devices.size() != twin.devices.size()) return text + "number of devices\n";
  for (size_t d = 0; d < devices.size(); ++d) {
    text += CompareDevice(devices[d], twin.devices[d], steps);
  }
  const HostAccount host = AccountHost(trace, steps);
  for (size_t c = 0; c < kHostClasses; ++c) {
    if (host.total[c].ns == twin.host_ns[c]) continue;
    text += fmt::format("host {}: {} ns, twin {} ns\n", Name(static_cast<HostClass>(c)),
                        host.total[c].ns, twin.host_ns[c]);
  }
  return text;
}

void ExpectTwinAgrees(uint64_t first_seed, uint64_t count, const RandomTraceOptions& options) {
  for (uint64_t seed = first_seed; seed < first_seed + count; ++seed) {
    const TraceEvents events = DrawTrace(seed, options);
    if (CompareWithTwin(events).empty()) continue;
    const TraceEvents least =
        Shrink(events, [](const TraceEvents& e) { return !CompareWithTwin(e).empty(); });
    FAIL() << "seed " << seed << ", shrunk to\n" << ToText(least) << CompareWithTwin(least);
  }
}

// Else the twin would agree on nothing.
TEST(AccountTwin, MeetsEveryClass) {
  std::array<int64_t, kDeviceClasses> traces_with{};
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    const Trace trace = BuildTrace(DrawTrace(seed));
    std::array<bool, kDeviceClasses> has{};
    for (const DeviceAccount& account : AccountDevices(trace, FindSteps(trace))) {
      for (size_t c = 0; c < kDeviceClasses; ++c) has[c] = has[c] || account.total[c].ns > 0;
    }
    for (size_t c = 0; c < kDeviceClasses; ++c) traces_with[c] += has[c] ? 1 : 0;
  }
  for (size_t c = 0; c < kDeviceClasses; ++c) {
    // Functions of the host and looks at the CPU are not drawn.
    const auto of = static_cast<DeviceClass>(c);
    if (of == DeviceClass::kIdleHostFunction || of == DeviceClass::kIdlePreempted) continue;
    EXPECT_GE(traces_with[c], 5) << Name(of);
  }
}

TEST(AccountTwin, AgreesOnWholeMicroseconds) { ExpectTwinAgrees(1, kTwinTraces, {}); }

TEST(AccountTwin, AgreesOnNanoseconds) {
  ExpectTwinAgrees(500'000, kTwinTracesInNanoseconds, {.whole_microseconds = false});
}

// At each moment only what covers it counts, also where events overlap without nesting.
TEST(AccountTwin, AgreesWhereHostEventsCross) {
  ExpectTwinAgrees(600'000, kCrossingTwinTraces, {.nested = false});
}

// Empty when the classes of every account sum to the window.
std::string FailureOfSums(const Trace& trace) {
  const Steps steps = FindSteps(trace);
  const int64_t window_ns = steps.device_window.Total().ns;
  std::string text;
  for (const DeviceAccount& account : AccountDevices(trace, steps)) {
    int64_t sum = 0;
    int64_t idle = 0;
    for (size_t c = 0; c < kDeviceClasses; ++c) {
      if (account.total[c].ns < 0) text += "negative class\n";
      sum += account.total[c].ns;
      if (IsIdle(static_cast<DeviceClass>(c))) idle += account.total[c].ns;
    }
    if (sum != window_ns) text += fmt::format("device: {} of {} ns\n", sum, window_ns);
    const int64_t busy = account.BusyWithin(steps.device_window).ns;
    if (busy + idle != window_ns) {
      text += fmt::format("busy {} + idle {} of {} ns\n", busy, idle, window_ns);
    }
  }
  int64_t sum = 0;
  for (const Duration& duration : AccountHost(trace, steps).total) sum += duration.ns;
  if (sum != steps.window.Total().ns) {
    text += fmt::format("host: {} of {} ns\n", sum, steps.window.Total().ns);
  }
  return text;
}

TEST(AccountSum, ClassesSumToTheWindowOnRandomTraces) {
  const RandomTraceOptions options{
      .most_events = 600, .whole_microseconds = false, .nested = false, .most_steps = 20};
  const auto fails = [](const TraceEvents& e) { return !FailureOfSums(BuildTrace(e)).empty(); };
  for (uint64_t seed = 1'000'000; seed < 1'000'000 + kSumTraces; ++seed) {
    const TraceEvents events = DrawTrace(seed, options);
    if (!fails(events)) continue;
    const TraceEvents least = Shrink(events, fails);
    FAIL() << "seed " << seed << ", shrunk to\n"
           << ToText(least) << FailureOfSums(BuildTrace(least));
  }
}

TEST(AccountSum, ClassesSumToTheWindowOnTheCorpus) {
  const std::filesystem::path corpus = TRAINPROF_CORPUS;
  if (corpus.empty() || !std::filesystem::is_directory(corpus)) {
    GTEST_SKIP() << "no corpus folder: set TRAINPROF_CORPUS";
  }
  int traces = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(corpus)) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(".json.gz") || name.starts_with("not_a_trace")) continue;
    const Result<Trace> trace = ImportTrace(entry.path().string());
    ASSERT_TRUE(trace.ok()) << trace.error();
    EXPECT_EQ(FailureOfSums(trace.value()), "") << entry.path();
    ++traces;
  }
  EXPECT_GT(traces, 0) << "no traces below " << corpus;
}

}  // namespace
}  // namespace trainprof
