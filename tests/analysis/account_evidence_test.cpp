// An account must follow its evidence: what is deleted from a trace may only move time to classes
// that say less, and never to a cause that nothing in the trace shows.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "analysis/account/account.h"
#include "tests/support/random_trace.h"
#include "tests/support/sanitized.h"

namespace trainprof {
namespace {

constexpr uint64_t kTraces = testing::Rounds(2'000);

using C = DeviceClass;

constexpr C kBusy[] = {C::kCompute, C::kExposedCommunication, C::kExposedCopy};

bool IsLoader(const RangeEvent& range) {
  switch (range.kind) {
    case RangeKind::kUserAnnotation:
      return PhaseOfUserName(range.name) == Phase::kInputWait;
    case RangeKind::kCpuOp:
      return PhaseOfTorchName(range.name) == Phase::kInputWait;
    default:
      return false;
  }
}

TraceEvents WithoutLoader(TraceEvents events) {
  std::erase_if(events.ranges, IsLoader);
  return events;
}

struct Accounted {
  Steps steps;
  std::vector<DeviceAccount> devices;
};

Accounted Account(const TraceEvents& events) {
  const Trace trace = BuildTrace(events);
  Accounted result{FindSteps(trace), {}};
  result.devices = AccountDevices(trace, result.steps);
  return result;
}

// Accounts with steps that were found elsewhere.
std::vector<DeviceAccount> AccountWith(const TraceEvents& events, const Steps& steps) {
  return AccountDevices(BuildTrace(events), steps);
}

// Two accounts of one device, before and after a deletion.
struct BeforeAndAfter {
  const DeviceAccount& before;
  const DeviceAccount& after;
  int64_t Growth(C c) const { return after.Of(c).ns - before.Of(c).ns; }
};

// Draws traces, deletes, and gives each device's change to `check`. `remove(events, random)`.
template <class Remove, class Check>
void ForEachChange(uint64_t first_seed, const RandomTraceOptions& options, Remove remove,
                   Check check) {
  for (uint64_t seed = first_seed; seed < first_seed + kTraces; ++seed) {
    TraceEvents events = DrawTrace(seed, options);
    // Those without a length end no gap, and others may have waited for them.
    std::erase_if(events.ops, [](const OpEvent& op) { return op.interval.Empty(); });
    Random random(seed);
    const TraceEvents less = remove(events, random);
    const Accounted before = Account(events);
    const std::vector<DeviceAccount> after = AccountWith(less, before.steps);
    ASSERT_LE(after.size(), before.devices.size());
    if (after.size() < before.devices.size()) continue;  // a device lost all it did
    for (size_t d = 0; d < after.size(); ++d) {
      SCOPED_TRACE(fmt::format("seed {}, device {}", seed, d));
      check(BeforeAndAfter{before.devices[d], after[d]});
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST(AccountEvidence, WithoutTheLoaderNoInputWaitAndWhatNeedsNoHostStays) {
  int64_t moved_ns = 0;
  ForEachChange(
      1, {.least_steps = 1},
      [](const TraceEvents& events, Random&) { return WithoutLoader(events); },
      [&](const BeforeAndAfter& change) {
        const int64_t lost = change.before.Of(C::kIdleInputWait).ns;
        moved_ns += lost;
        EXPECT_EQ(change.after.Of(C::kIdleInputWait).ns, 0);
        for (C c : kBusy) EXPECT_EQ(change.Growth(c), 0) << Name(c);
        for (C c : {C::kIdleDependency, C::kIdleUnrecorded}) EXPECT_EQ(change.Growth(c), 0);
        // Reasons that enclose the loader, or the stepping thread's own behind a launching thread
        // that waited, may now show.
        for (C c : {C::kIdleAllocation, C::kIdleIo}) {
          EXPECT_GE(change.Growth(c), 0) << Name(c);
          EXPECT_LE(change.Growth(c), lost) << Name(c);
        }
      });
  EXPECT_GT(moved_ns, 0);
}

TEST(AccountEvidence, WithoutTheLoaderNoOtherReasonOfOneThreadGrows) {
  ForEachChange(
      10'000, {.most_threads = 1, .least_steps = 1, .python = false},
      [](const TraceEvents& events, Random&) { return WithoutLoader(events); },
      [&](const BeforeAndAfter& change) {
        EXPECT_EQ(change.Growth(C::kIdlePython), 0);
        // A wait for input holds what is called within.
        EXPECT_LE(change.Growth(C::kIdleAllocation), change.before.Of(C::kIdleInputWait).ns);
      });
}

bool Overlap(const Interval& a, const Interval& b) { return !Intersect(a, b).Empty(); }

// Nothing but steps, the loader's ranges and calls on the host.
TraceEvents OnlyStepsLoaderAndCalls(TraceEvents events) {
  std::erase_if(events.ranges, [](const RangeEvent& range) {
    return !IsLoader(range) && !IsStepName(range.name);
  });
  return events;
}

TEST(AccountEvidence, LongLoaderWaitsBecomeUnknownWithoutTheLoader) {
  int waits = 0;
  for (uint64_t seed = 20'000; seed < 20'000 + kTraces; ++seed) {
    const TraceEvents events = OnlyStepsLoaderAndCalls(DrawTrace(seed, {.most_threads = 1}));
    const Trace trace = BuildTrace(events);
    Steps steps;  // none: one window over all, one thread
    steps.thread = TrackId{0};
    steps.window = IntervalSet::Union({trace.extent});
    steps.device_window = steps.window;
    const std::vector<DeviceAccount> before = AccountDevices(trace, steps);
    const std::vector<DeviceAccount> after = AccountWith(WithoutLoader(events), steps);
    for (size_t d = 0; d < before.size(); ++d) {
      for (const Segment<C>& wait : before[d].idle) {
        if (wait.value != C::kIdleInputWait || wait.interval.Length() < kSilentStretch) continue;
        const bool quiet = std::none_of(
            events.calls.begin(), events.calls.end(),
            [&](const CallEvent& call) { return Overlap(call.interval, wait.interval); });
        if (!quiet) continue;
        ++waits;
        for (const Segment<C>& now : after[d].idle) {
          if (!Overlap(now.interval, wait.interval)) continue;
          ASSERT_EQ(Name(now.value), Name(C::kIdleUnknown)) << "seed " << seed;
        }
      }
    }
  }
  EXPECT_GT(waits, 50);
}

// Of each thread one operation per stream stays, so that it is known where the thread works.
class KeepsOne {
 public:
  explicit KeepsOne(const TraceEvents& events) {
    for (const CallEvent& call : events.calls) thread_of_[call.correlation] = call.thread;
    for (const OpEvent& op : events.ops) ++left_[PlaceOf(op)];
  }
  bool MayGo(const OpEvent& op) { return left_[PlaceOf(op)] > 1; }
  void Goes(const OpEvent& op) { --left_[PlaceOf(op)]; }

 private:
  std::tuple<int, int, int> PlaceOf(const OpEvent& op) {
    const auto thread = thread_of_.find(op.correlation);
    return {thread == thread_of_.end() ? -1 : thread->second, op.device, op.stream};
  }
  std::map<int64_t, int> thread_of_;
  std::map<std::tuple<int, int, int>, int> left_;
};

// Whether it began after what was launched behind it on its stream. No device does that; who sees
// it knows that order proves nothing there, and who loses its link does not.
bool ShowsDisorder(const OpEvent& op, const TraceEvents& events,
                   const std::map<int64_t, TraceTime>& launched) {
  const auto own = launched.find(op.correlation);
  if (own == launched.end()) return false;
  return std::any_of(events.ops.begin(), events.ops.end(), [&](const OpEvent& other) {
    const auto others = launched.find(other.correlation);
    return other.device == op.device && other.stream == op.stream && others != launched.end() &&
           own->second < others->second && other.interval.begin < op.interval.begin;
  });
}

// Kernels (some, by chance) lose the call that launched them, all that begin together at once, so
// that none takes another's place at the end of a gap.
TraceEvents WithoutSomeLinks(TraceEvents events, Random& random) {
  std::map<int64_t, bool> lose;  // by begin
  for (const OpEvent& op : events.ops) lose.try_emplace(op.interval.begin.ns, random.Chance(40));
  std::map<int64_t, TraceTime> launched;
  for (const CallEvent& call : events.calls) launched[call.correlation] = call.interval.begin;
  for (const OpEvent& op : events.ops) {
    if (op.kind != DeviceOpKind::kKernel || ShowsDisorder(op, events, launched)) {
      lose[op.interval.begin.ns] = false;
    }
  }
  KeepsOne keeps(events);
  for (const OpEvent& op : events.ops) {
    if (!keeps.MayGo(op)) lose[op.interval.begin.ns] = false;
    if (lose[op.interval.begin.ns]) keeps.Goes(op);
  }
  for (OpEvent& op : events.ops) {
    if (lose[op.interval.begin.ns]) op.correlation = kNoCorrelation;
  }
  return events;
}

// Launches that seem to have no row any more leave open what the device did.
bool SaysLess(C c) { return c == C::kIdleUnknown || c == C::kIdleUnrecorded; }

// What a call waits for on another device follows from when that was launched.
TEST(AccountEvidence, LostLaunchesOnlyAddToUnknownAndUnrecorded) {
  int64_t moved_ns = 0;
  ForEachChange(30'000, {.least_steps = 1, .most_devices = 1}, WithoutSomeLinks,
                [&](const BeforeAndAfter& change) {
                  moved_ns += change.Growth(C::kIdleUnknown) + change.Growth(C::kIdleUnrecorded);
                  for (C c : kBusy) EXPECT_EQ(change.Growth(c), 0) << Name(c);
                  for (size_t i = 0; i < kDeviceClasses; ++i) {
                    const C c = static_cast<C>(i);
                    if (!IsIdle(c) || SaysLess(c)) continue;
                    EXPECT_LE(change.Growth(c), 0) << Name(c);
                  }
                });
  EXPECT_GT(moved_ns, 0);
}

// Launch calls deleted whole, apart from those whose operation begins together with another, and
// from those without one, which show that rows are missing.
TraceEvents WithoutSomeLaunchCalls(TraceEvents events, Random& random) {
  std::map<int64_t, int> begins;
  std::set<int64_t> shared;  // correlations
  std::set<int64_t> answered;
  KeepsOne keeps(events);
  for (const OpEvent& op : events.ops) ++begins[op.interval.begin.ns];
  for (const OpEvent& op : events.ops) {
    if (begins[op.interval.begin.ns] > 1) shared.insert(op.correlation);
    if (keeps.MayGo(op)) answered.insert(op.correlation);
    keeps.Goes(op);
  }
  std::erase_if(events.calls, [&](const CallEvent& call) {
    return call.name == "cudaLaunchKernel" && answered.contains(call.correlation) &&
           !shared.contains(call.correlation) && random.Chance(40);
  });
  return events;
}

TEST(AccountEvidence, DeletedLaunchCallsOfOneThreadOnlyAddToUnknownAndUnrecorded) {
  ForEachChange(
      40'000,
      {.most_threads = 1, .least_steps = 1, .python = false, .most_devices = 1, .in_order = true},
      WithoutSomeLaunchCalls, [&](const BeforeAndAfter& change) {
        // Which of a range's times are its own, and whether the host was ahead of the device since
        // a sync, launches tell.
        constexpr C kHost[] = {C::kIdleLaunchBound, C::kIdleSyncDrain, C::kIdleHostWork};
        EXPECT_LE(change.Growth(C::kIdleLaunchBound) + change.Growth(C::kIdleSyncDrain), 0);
        for (size_t i = 0; i < kDeviceClasses; ++i) {
          const C c = static_cast<C>(i);
          if (SaysLess(c) || std::count(kHost, std::end(kHost), c) != 0) continue;
          EXPECT_LE(change.Growth(c), 0) << Name(c);
        }
      });
}

// The gaps between a device's operations, each with its parts.
std::map<Interval, std::vector<Segment<C>>> GapsOf(const DeviceAccount& account) {
  std::map<Interval, std::vector<Segment<C>>> gaps;
  std::vector<Segment<C>> parts;
  for (size_t i = 0; i < account.idle.size(); ++i) {
    parts.push_back(account.idle[i]);
    const bool last = i + 1 == account.idle.size() ||
                      account.idle[i + 1].interval.begin != account.idle[i].interval.end;
    if (!last) continue;
    gaps[{parts.front().interval.begin, parts.back().interval.end}] = parts;
    parts.clear();
  }
  return gaps;
}

// Every moment has the same class, or one that says less. How much later the host came for a sync it had
// waited in is a question of what the device did since.
bool SameOrLess(const std::vector<Segment<C>>& now, const std::vector<Segment<C>>& before) {
  const auto is_rest = [](C c) {
    return c == C::kIdleSyncDrain || c == C::kIdleLaunchBound || c == C::kIdleDependency;
  };
  return std::all_of(now.begin(), now.end(), [&](const Segment<C>& part) {
    return SaysLess(part.value) ||
           std::all_of(before.begin(), before.end(), [&](const Segment<C>& was) {
             return Intersect(was.interval, part.interval).Empty() || was.value == part.value ||
                    (is_rest(was.value) && is_rest(part.value));
           });
  });
}

// Of one thread: that others go on behind it is seen in their times alone.
TEST(AccountEvidence, DeletedKernelsNameNoCauseInGapsThatStay) {
  int same_gaps = 0;
  std::set<int64_t> deleted;  // begins
  ForEachChange(
      50'000, {.most_threads = 1, .least_steps = 1, .disorder = false, .most_devices = 1},
      [&](TraceEvents events, Random& random) {
        deleted.clear();
        KeepsOne keeps(events);
        std::erase_if(events.ops, [&](const OpEvent& op) {
          const bool gone =
              op.kind == DeviceOpKind::kKernel && random.Chance(20) && keeps.MayGo(op);
          if (gone) keeps.Goes(op);
          if (gone) deleted.insert(op.interval.begin.ns);
          return gone;
        });
        return events;
      },
      [&](const BeforeAndAfter& change) {
        const auto before = GapsOf(change.before);
        for (const auto& [gap, parts] : GapsOf(change.after)) {
          const auto same = before.find(gap);
          if (same == before.end() || deleted.contains(gap.end.ns)) continue;
          ++same_gaps;
          EXPECT_TRUE(SameOrLess(parts, same->second)) << gap.begin.ns << " " << gap.end.ns;
        }
      });
  EXPECT_GT(same_gaps, 1'000);
}

// What a cause needs: every moment of it must be covered by an event that shows it.
struct EvidenceCase {
  IntervalSet input, allocation, io, python;
};

bool ShowsIo(const RangeEvent& range) {
  return range.name == "torch.save" || range.name == "save_checkpoint" ||
         range.name.starts_with("torch/serialization.py");
}

EvidenceCase EvidenceIn(const TraceEvents& events) {
  std::vector<Interval> input, allocation, io, python;
  for (const RangeEvent& range : events.ranges) {
    if (IsLoader(range)) input.push_back(range.interval);
    if (ShowsIo(range)) io.push_back(range.interval);
    if (range.kind == RangeKind::kPythonFunction || range.name == "gc.collect") {
      python.push_back(range.interval);
    }
  }
  for (const CallEvent& call : events.calls) {
    const ApiKind kind = ApiKindOf(call.name);
    if (kind == ApiKind::kAllocate || kind == ApiKind::kFree) allocation.push_back(call.interval);
  }
  return {IntervalSet::Union(input), IntervalSet::Union(allocation), IntervalSet::Union(io),
          IntervalSet::Union(python)};
}

// Deletes each event with a chance that is itself drawn, kind by kind.
TraceEvents WithoutAnything(TraceEvents events, Random& random) {
  const auto thin = [&](auto& list) {
    const int percent = static_cast<int>(random.Between(0, 100));
    std::erase_if(list, [&](const auto&) { return random.Chance(percent); });
  };
  thin(events.ranges);
  thin(events.calls);
  thin(events.ops);
  return events;
}

void ExpectShown(const DeviceAccount& account, const EvidenceCase& evidence, bool can_wait,
                 bool launches) {
  for (const Segment<C>& part : account.idle) {
    const auto expect_covered = [&](const IntervalSet& shown) {
      EXPECT_EQ(shown.TotalWithin(part.interval), part.interval.Length()) << Name(part.value);
    };
    if (part.value == C::kIdleInputWait) expect_covered(evidence.input);
    if (part.value == C::kIdleAllocation) expect_covered(evidence.allocation);
    if (part.value == C::kIdleIo) expect_covered(evidence.io);
    if (part.value == C::kIdlePython) expect_covered(evidence.python);
    if (part.value == C::kIdleSyncDrain) {
      EXPECT_TRUE(can_wait);
    }
    if (part.value == C::kIdleLaunchBound || part.value == C::kIdleDependency) {
      EXPECT_TRUE(launches);
    }
  }
}

TEST(AccountEvidence, NoCauseWithoutAnEventThatShowsIt) {
  for (uint64_t seed = 60'000; seed < 60'000 + kTraces; ++seed) {
    Random random(seed);
    const TraceEvents events = WithoutAnything(DrawTrace(seed), random);
    const EvidenceCase evidence = EvidenceIn(events);
    const bool can_wait =
        std::any_of(events.calls.begin(), events.calls.end(), [](const CallEvent& call) {
          const ApiKind kind = ApiKindOf(call.name);
          return kind == ApiKind::kSync || kind == ApiKind::kCopy || kind == ApiKind::kFree;
        });
    SCOPED_TRACE(fmt::format("seed {}", seed));
    for (const DeviceAccount& account : Account(events).devices) {
      ExpectShown(account, evidence, can_wait, !events.calls.empty());
    }
    ASSERT_FALSE(HasFailure());
  }
}

// A step a graph: the loader, a launch that returns before the first node, the nodes one after
// another, and a sync.
TraceEvents DrawGraphTrace(Random& random) {
  TraceEvents events;
  int64_t at = 0;
  for (int64_t step = 1; step <= 5; ++step) {
    const int64_t begin = at;
    const int64_t loaded = at + random.Between(0, 2'500'000);
    events.ranges.push_back({0, {{at}, {loaded}}, RangeKind::kUserAnnotation, "data_wait"});
    const int64_t launched = loaded + random.Between(1'000, 60'000);
    events.calls.push_back({0, {{loaded}, {launched}}, "cudaGraphLaunch", step});
    at = launched + random.Between(0, 40'000);
    for (int64_t node = random.Between(3, 40); node > 0; --node) {
      const int64_t end = at + random.Between(500, 15'000);
      events.ops.push_back({.interval = {{at}, {end}}, .name = "gemm", .correlation = step});
      at = end + random.Between(0, 3'000);
    }
    events.calls.push_back(
        {0, {{launched}, {at + 5'000}}, "cudaStreamSynchronize", kNoCorrelation});
    at += random.Between(5'000, 300'000);
    events.ranges.push_back({0, {{begin}, {at}}, RangeKind::kUserAnnotation, "step"});
  }
  return events;
}

// Half of the nodes of each graph, never its first or last.
TraceEvents WithoutHalfTheNodes(TraceEvents events, Random& random) {
  std::vector<OpEvent> left;
  for (size_t i = 0; i < events.ops.size(); ++i) {
    const int64_t graph = events.ops[i].correlation;
    const bool inner = i > 0 && i + 1 < events.ops.size() &&
                       events.ops[i - 1].correlation == graph &&
                       events.ops[i + 1].correlation == graph;
    if (!inner || random.Chance(50)) left.push_back(events.ops[i]);
  }
  events.ops = std::move(left);
  return events;
}

TEST(AccountEvidence, MissingGraphNodesAreUnrecordedOrAHandOver) {
  int64_t unrecorded_ns = 0;
  for (uint64_t seed = 70'000; seed < 70'000 + kTraces; ++seed) {
    Random random(seed);
    const TraceEvents events = DrawGraphTrace(random);
    const Accounted before = Account(events);
    const Accounted after = Account(WithoutHalfTheNodes(events, random));
    const BeforeAndAfter change{before.devices[0], after.devices[0]};
    for (size_t i = 0; i < kDeviceClasses; ++i) {
      const C c = static_cast<C>(i);
      if (c == C::kCompute || c == C::kIdleDependency || c == C::kIdleUnrecorded) continue;
      ASSERT_EQ(change.Growth(c), 0) << Name(c) << ", seed " << seed;
    }
    ASSERT_LE(change.Growth(C::kCompute), 0);
    ASSERT_GE(change.Growth(C::kIdleUnrecorded), 0);
    ASSERT_EQ(change.Growth(C::kIdleUnrecorded) + change.Growth(C::kIdleDependency),
              -change.Growth(C::kCompute));
    unrecorded_ns += change.Growth(C::kIdleUnrecorded);
  }
  EXPECT_GT(unrecorded_ns, 0);
}

}  // namespace
}  // namespace trainprof
