// Step detection, from the surest evidence down: explicit ranges, optimizer steps, loader nexts,
// periodicity of the device's work.
#include "analysis/steps/steps.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <optional>

#include "analysis/steps/device_rows.h"
#include "analysis/steps/device_time.h"
#include "analysis/steps/periods.h"
#include "analysis/steps/step_names.h"
#include "trace/base/cancel.h"

namespace trainprof {
namespace {

// The number at the end of a name; -1 where there is none.
int64_t CounterOf(std::string_view name) {
  const std::string_view digits = name.substr(name.find_last_not_of("0123456789") + 1);
  int64_t number = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return error == std::errc() ? number : -1;
}

// Ranges of one name on one thread, or one stream.
struct Group {
  TrackId track = kNoTrack;
  std::vector<Interval> ranges;
  std::vector<int64_t> numbers;  // in the names of the ranges, -1: none
  int rank = 0;                  // of several groups the one of the highest is taken
};

// How a range may stand for a step: its group's rank, 0 for not at all; and what its group is
// called.
struct Membership {
  int rank = 0;
  std::string_view base{};
};

// Groups the ranges on tracks of that kind by (track, base), as `membership(kind, name)`
// says; nested ones of the same group are left out. Chooses by rank, then the largest, then the
// earliest.
template <class Of>
Group LargestGroup(const Trace& trace, TrackKind on, Of membership) {
  std::map<std::pair<TrackId, std::string_view>, Group> groups;
  const auto add = [&](uint32_t row) {
    const RangeKind kind = trace.ranges.kind[row];
    if ((kind == RangeKind::kGpuAnnotation) != (on == TrackKind::kStream)) return;
    const StringId id = trace.ranges.name[row];
    const Membership member = membership(kind, id);
    if (member.rank == 0) return;
    Group& group = groups[{trace.ranges.track[row], member.base}];
    group.track = trace.ranges.track[row];
    group.rank = std::max(group.rank, member.rank);
    const Interval range = trace.ranges.interval(Row{row});
    if (!group.ranges.empty() && range.end <= group.ranges.back().end) return;
    group.ranges.push_back(range);
    group.numbers.push_back(CounterOf(trace.Text(id)));
  };
  for (uint32_t track = 0; track < trace.tracks.size(); ++track) {
    if (trace.tracks[track].kind != on) continue;
    const auto [first, last] = trace.ranges.rows_of(TrackId{track});
    for (uint32_t row = first; row < last; ++row) {
      CancelPoint(row);
      add(row);
    }
  }
  Group best;
  for (auto& [key, group] : groups) {
    const auto order = [](const Group& g) { return std::pair(g.rank, g.ranges.size()); };
    const bool better =
        best.ranges.empty() || order(group) > order(best) ||
        (order(group) == order(best) && group.ranges.front().begin < best.ranges.front().begin);
    if (better) best = group;
  }
  return best;
}

// What names say of being a step, each looked at once.
class StepNames {
 public:
  explicit StepNames(const Trace& trace) : trace_(trace), known_(trace.strings.size(), kNotAsked) {}

  StepKind KindOf(StringId name) {
    uint8_t& known = known_[Index(name)];
    if (known == kNotAsked) known = static_cast<uint8_t>(Of(name).kind);
    return static_cast<StepKind>(known);
  }
  StepName Of(StringId name) const { return StepNameOf(trace_.Text(name)); }

 private:
  static constexpr uint8_t kNotAsked = 255;
  const Trace& trace_;
  std::vector<uint8_t> known_;  // by name its kind
};

// Iterations by their names. One range is a step for want of others: where it holds iterations of
// another name, these are the steps.
Group Iterations(const Trace& trace, StepNames& names, TrackKind on) {
  const auto of_kind = [&](StepKind least, StepKind most) {
    return LargestGroup(trace, on, [&](RangeKind, StringId id) {
      const StepKind kind = names.KindOf(id);
      if (kind < least || kind > most) return Membership{};
      return Membership{static_cast<int>(kind), names.Of(id).base};
    });
  };
  Group best = of_kind(StepKind::kIteration, StepKind::kProfiler);
  if (best.ranges.size() != 1 || best.rank != static_cast<int>(StepKind::kProfiler)) return best;
  Group inner = of_kind(StepKind::kIteration, StepKind::kIteration);
  return inner.ranges.size() > 1 ? inner : best;
}

// Ranges that are a part of an iteration each, or iterations of another loop than training.
Group Parts(const Trace& trace, StepNames& names, TrackKind on) {
  return LargestGroup(trace, on, [&](RangeKind, StringId id) {
    if (names.KindOf(id) != StepKind::kPart) return Membership{};
    return Membership{1, names.Of(id).base};
  });
}

// Of XLA's compiled programs a step calls the one that takes longest once, however often it calls the small ones.
Group XlaPrograms(const Trace& trace) {
  struct Program {
    Group group;
    Duration total;
  };
  std::map<std::pair<TrackId, StringId>, Program> programs;
  for (uint32_t row = 0; row < trace.ranges.size(); ++row) {
    CancelPoint(row);
    const StringId name = trace.ranges.name[row];
    if (!IsXlaProgram(trace.Text(name))) continue;
    Program& program = programs[{trace.ranges.track[row], name}];
    program.group.track = trace.ranges.track[row];
    program.group.ranges.push_back(trace.ranges.interval(Row{row}));
    program.total += program.group.ranges.back().Length();
  }
  const auto longest = std::ranges::max_element(
      programs, {}, [](const auto& program) { return program.second.total; });
  return longest == programs.end() ? Group{} : std::move(longest->second.group);
}

Membership MemberOf(const Trace& trace, StringId id, bool is_member, bool is_preferred) {
  const int rank = is_preferred ? 2 : 1;
  return {is_member ? rank : 0, names_internal::WithoutCounter(trace.Text(id))};
}

Group OptimizerEnds(const Trace& trace) {
  return LargestGroup(trace, TrackKind::kThread, [&](RangeKind kind, StringId id) {
    const NameFacts name = trace.Facts(id);
    const bool is_users = kind == RangeKind::kUserAnnotation;
    const Phase phase = is_users ? name.user_phase : name.torch_phase;
    return MemberOf(trace, id, phase == Phase::kOptimizer && !name.clears_gradients,
                    trace.Text(id).starts_with("Optimizer.step#"));
  });
}

// Whether a CUDA graph does the work of most steps: it was captured when the optimizer had stepped some times for warming
// up, and runs without the calls that it holds.
bool StepsInGraphs(const Trace& trace, const Group& optimizer) {
  const TraceTime last = optimizer.ranges.back().end;
  size_t launches = 0;
  for (uint32_t call = 0; call < trace.api.size(); ++call) {
    CancelPoint(call);
    if (trace.api.kind[call] == ApiKind::kGraphLaunch && trace.api.begin[call] >= last) ++launches;
  }
  return launches > 2 * optimizer.ranges.size();
}

Group LoaderNexts(const Trace& trace) {
  return LargestGroup(trace, TrackKind::kThread, [&](RangeKind kind, StringId id) {
    const NameFacts name = trace.Facts(id);
    const bool is_users = kind == RangeKind::kUserAnnotation;
    const Phase phase = is_users ? name.user_phase : name.torch_phase;
    return MemberOf(trace, id, phase == Phase::kInputWait, name.torch_phase == Phase::kInputWait);
  });
}

// Boundaries -> the intervals between them.
std::vector<Interval> Between(const std::vector<TraceTime>& boundaries) {
  std::vector<Interval> intervals;
  for (size_t i = 0; i + 1 < boundaries.size(); ++i) {
    intervals.push_back({boundaries[i], boundaries[i + 1]});
  }
  return intervals;
}

struct Boundaries {
  std::vector<TraceTime> at;
  bool are_hosts = false;  // when these operations were launched; else when they began
};

// By the host's clock, as all steps, where it tells these operations apart.
Boundaries BoundariesAt(const Trace& trace, const std::vector<Row>& ops) {
  Boundaries launches{{}, true};
  Boundaries begins;
  for (const Row op : ops) {
    begins.at.push_back(trace.device_ops.begin[Index(op)]);
    const Row call = trace.device_ops.launch[Index(op)];
    if (call != kNoRow) launches.at.push_back(trace.api.begin[Index(call)]);
  }
  const bool are_apart = std::adjacent_find(launches.at.begin(), launches.at.end(),
                                            std::greater_equal<>()) == launches.at.end();
  return are_apart && launches.at.size() == ops.size() ? launches : begins;
}

// In a gap of the devices alone the host's steps go on.
bool GapBetween(const Trace& trace, TraceTime from, TraceTime to) {
  return std::any_of(trace.gaps.begin(), trace.gaps.end(), [&](const Gap& gap) {
    return gap.kind == GapKind::kAll && gap.interval.begin < to && from < gap.interval.end;
  });
}

// A step that was open when the recording ended (the program was killed, or still runs) was closed
// at the last time seen: it is no whole step.
void DropUnfinished(const Trace& trace, std::vector<Interval>& ranges) {
  if (trace.quality.CountOf("open_range_at_end") == 0) return;
  if (!ranges.empty() && ranges.back().end == trace.extent.end) ranges.pop_back();
}

// When the profiler did what that name says.
IntervalSet OverheadTimes(const Trace& trace, std::string_view what) {
  const StringId name = trace.strings.Find(what);
  std::vector<Interval> times;
  for (uint32_t row = 0; name != kEmptyString && row < trace.ranges.size(); ++row) {
    const bool is_it =
        trace.ranges.name[row] == name && trace.ranges.kind[row] == RangeKind::kOverhead;
    if (is_it) times.push_back(trace.ranges.interval(Row{row}));
  }
  return IntervalSet::Union(std::move(times));
}

// The steps that these times fall into are none to measure. How many they were.
int DropSteps(const IntervalSet& times, Steps& steps) {
  const auto is_hit = [&](const Step& step) { return times.TotalWithin(step.span).ns > 0; };
  const auto hit = std::count_if(steps.steps.begin(), steps.steps.end(), is_hit);
  if (static_cast<size_t>(hit) == steps.steps.size()) return 0;  // better one such step than none
  std::erase_if(steps.steps, is_hit);
  return static_cast<int>(hit);
}

// Whether they tell one step from another: all there, and growing.
bool AreNumbers(const std::vector<int64_t>& numbers) {
  if (numbers.empty() || numbers.front() < 0) return false;
  return std::adjacent_find(numbers.begin(), numbers.end(), std::greater_equal<>()) ==
         numbers.end();
}

// `numbers` of the ranges, or none. `are_hosts`: the ranges are in the host's time, not a device's.
void SetSteps(Steps& steps, const Trace& trace, DeviceRows& rows, std::vector<Interval> ranges,
              const std::vector<int64_t>& numbers, bool are_hosts,
              std::optional<int> warmup_steps) {
  DropUnfinished(trace, ranges);
  const bool are_numbered = AreNumbers(numbers);
  for (size_t i = 0; i < ranges.size(); ++i) {
    Step step{ranges[i], ranges[i], ranges[i],
              true,      true,      are_numbered ? numbers[i] : static_cast<int64_t>(i)};
    if (i + 1 < ranges.size() && !GapBetween(trace, ranges[i].end, ranges[i + 1].begin)) {
      step.span.end = ranges[i + 1].begin;
    }
    steps.steps.push_back(step);
  }
  for (Step& step : steps.steps) step.device = step.span;
  const bool by_device = !are_hosts || SetDeviceTimes(trace, rows, steps.steps);
  steps.clock = by_device ? StepClock::kDevice : StepClock::kHost;
  if (trace.source == SourceKind::kRecording) {
    const auto all = static_cast<int>(steps.steps.size());
    steps.warmup_steps = warmup_steps ? std::min(*warmup_steps, std::max(0, all - 1))
                                      : std::min(kMaxWarmupSteps, all / 4);
    steps.steps.erase(steps.steps.begin(), steps.steps.begin() + steps.warmup_steps);
    steps.warmup_steps += DropSteps(OverheadTimes(trace, kCuptiSetup), steps);
    steps.searched_steps = DropSteps(OverheadTimes(trace, kMemorySearch), steps);
  }
}

// Where no step names a thread: the host thread with most recorded events.
TrackId BusiestThread(const Trace& trace) {
  TrackId best = kNoTrack;
  size_t most = 0;
  for (uint32_t t = 0; t < trace.tracks.size(); ++t) {
    if (trace.tracks[t].kind != TrackKind::kThread) continue;
    const auto [r0, r1] = trace.ranges.rows_of(TrackId{t});
    const auto [a0, a1] = trace.api.rows_of(TrackId{t});
    const size_t events = (r1 - r0) + (a1 - a0);
    if (events > most) {
      most = events;
      best = TrackId{t};
    }
  }
  return best;
}

}  // namespace

std::string_view Name(StepSource source) {
  switch (source) {
    case StepSource::kNone:
      return "none";
    case StepSource::kExplicit:
      return "explicit";
    case StepSource::kOptimizer:
      return "optimizer";
    case StepSource::kLoader:
      return "loader";
    case StepSource::kInferred:
      return "inferred";
  }
  return "none";
}

std::string_view Name(StepClock clock) { return clock == StepClock::kDevice ? "device" : "host"; }

std::optional<size_t> Steps::Find(int64_t number) const {
  const auto step = std::partition_point(steps.begin(), steps.end(),
                                         [&](const Step& s) { return s.number < number; });
  if (step == steps.end() || step->number != number) return std::nullopt;
  return static_cast<size_t>(step - steps.begin());
}

const Step* Steps::At(TraceTime at) const {
  const auto step = std::partition_point(steps.begin(), steps.end(),
                                         [&](const Step& s) { return s.span.end <= at; });
  return step == steps.end() || at < step->span.begin ? nullptr : &*step;
}

const Step* Steps::OnDeviceAt(TraceTime at) const {
  const auto step = std::partition_point(steps.begin(), steps.end(),
                                         [&](const Step& s) { return s.device.end <= at; });
  return step == steps.end() || at < step->device.begin ? nullptr : &*step;
}

Duration Steps::Quantile(double share) const {
  if (steps.empty()) return {};
  std::vector<int64_t> lengths;
  for (const Step& step : steps) {
    lengths.push_back((clock == StepClock::kDevice ? step.device : step.range).Length().ns);
  }
  std::sort(lengths.begin(), lengths.end());
  // Between the two next to it by distance, rounded down to whole nanoseconds.
  const double place = share * static_cast<double>(lengths.size() - 1);
  const auto below = static_cast<size_t>(place);
  const int64_t apart = lengths[std::min(below + 1, lengths.size() - 1)] - lengths[below];
  const double part = place - static_cast<double>(below);
  return Nanoseconds(lengths[below] + static_cast<int64_t>(part * static_cast<double>(apart)));
}

double Steps::MeanMilliseconds() const {
  Duration timed = device_window.Total();
  if (first_timed() > 0) timed -= device_window.TotalWithin(steps.front().device);
  return timed.ToMilliseconds() /
         static_cast<double>(divisor() - static_cast<int64_t>(first_timed()));
}

Duration Steps::LagAtBegin() const {
  return steps.empty() ? Duration{} : steps.front().device.begin - steps.front().span.begin;
}

Duration Steps::LagAtEnd() const {
  return steps.empty() ? Duration{} : steps.back().device.end - steps.back().span.end;
}

void Steps::Cover() {
  std::vector<Interval> spans;
  std::vector<Interval> devices;
  for (const Step& step : steps) {
    spans.push_back(step.span);
    devices.push_back(step.device);
  }
  window = IntervalSet::Union(std::move(spans));
  device_window = IntervalSet::Union(std::move(devices));
}

namespace {

Steps FindSteps(const Trace& trace, DeviceRows& rows, bool infers,
                std::optional<int> warmup_steps) {
  Steps steps;
  const auto take = [&](StepSource source, TrackId thread, const std::vector<Interval>& ranges,
                        const std::vector<int64_t>& numbers = {}, bool are_hosts = true) {
    steps.source = source;
    steps.thread = thread;
    SetSteps(steps, trace, rows, ranges, numbers, are_hosts, warmup_steps);
  };
  StepNames names(trace);
  const auto on_device = [&](const Group& group) {
    take(StepSource::kExplicit, kNoTrack, group.ranges, group.numbers, false);
  };
  if (const Group group = Iterations(trace, names, TrackKind::kThread); !group.ranges.empty()) {
    take(StepSource::kExplicit, group.track, group.ranges, group.numbers);
  } else if (const Group marked = Iterations(trace, names, TrackKind::kStream);
             marked.ranges.size() >= 2) {
    on_device(marked);
  } else if (const Group optimizer = OptimizerEnds(trace);
             optimizer.ranges.size() >= 2 && !StepsInGraphs(trace, optimizer)) {
    std::vector<TraceTime> ends;
    for (const Interval& range : optimizer.ranges) ends.push_back(range.end);
    take(StepSource::kOptimizer, optimizer.track, Between(ends));
  } else if (const Group loader = LoaderNexts(trace); loader.ranges.size() >= 2) {
    std::vector<TraceTime> begins;
    for (const Interval& range : loader.ranges) begins.push_back(range.begin);
    take(StepSource::kLoader, loader.track, Between(begins));
  } else if (const Group programs = XlaPrograms(trace); programs.ranges.size() >= 2) {
    take(StepSource::kExplicit, programs.track, programs.ranges);
  } else if (const Group parts = Parts(trace, names, TrackKind::kThread);
             parts.ranges.size() >= 2) {
    take(StepSource::kExplicit, parts.track, parts.ranges, parts.numbers);
  } else if (const Group marked_parts = Parts(trace, names, TrackKind::kStream);
             marked_parts.ranges.size() >= 2) {
    on_device(marked_parts);
  } else if (const auto ops = infers ? PeriodicOps(trace, rows) : std::vector<Row>();
             !ops.empty()) {
    const Boundaries boundaries = BoundariesAt(trace, ops);
    take(StepSource::kInferred, kNoTrack, Between(boundaries.at), {}, boundaries.are_hosts);
  }
  if (steps.thread == kNoTrack) steps.thread = BusiestThread(trace);
  if (!steps.steps.empty()) {
    steps.Cover();
    return steps;
  }
  const IntervalSet setup = OverheadTimes(trace, kCuptiSetup);
  steps.window = IntervalSet::Union({trace.extent}).Minus(setup);
  const Interval extent = DeviceExtent(trace, rows);
  if (!extent.Empty()) steps.clock = StepClock::kDevice;
  steps.device_window = extent.Empty() ? steps.window : IntervalSet::Union({extent}).Minus(setup);
  return steps;
}

}  // namespace

Steps FindSteps(const Trace& trace, DeviceRows& rows, std::optional<int> warmup_steps) {
  return FindSteps(trace, rows, true, warmup_steps);
}
Steps FindSteps(const Trace& trace) {
  DeviceRows rows(trace);
  return FindSteps(trace, rows);
}
Steps FindNamedSteps(const Trace& trace) {
  DeviceRows rows(trace);
  return FindSteps(trace, rows, false, std::nullopt);
}

IntervalSet DeviceGaps(const Trace& trace) {
  std::vector<bool> drives(trace.processes.size(), false);
  for (const Track& track : trace.tracks) {
    if (track.kind == TrackKind::kStream) drives[Index(track.process)] = true;
  }
  std::vector<Interval> gaps;
  for (const Gap& gap : trace.gaps) {
    if (drives[Index(gap.process)]) gaps.push_back(gap.interval);
  }
  return IntervalSet::Union(std::move(gaps));
}

Steps ByHost(Steps steps) {
  for (Step& step : steps.steps) step.device = step.span;
  steps.clock = StepClock::kHost;
  steps.device_window = steps.window;
  if (!steps.steps.empty()) steps.Cover();
  return steps;
}

Steps WithDeviceDetail(const Steps& steps, const IntervalSet& gaps) {
  Steps detail = steps;
  std::erase_if(detail.steps, [&](const Step& step) { return gaps.TotalWithin(step.span).ns > 0; });
  if (steps.steps.empty()) {
    detail.window = steps.window.Minus(gaps);
    detail.device_window = steps.device_window.Minus(gaps);
    return detail;
  }
  std::vector<Step>& left = detail.steps;
  const auto is_known = [](const Step& step) { return step.begin_is_known; };
  if (std::any_of(left.begin(), left.end(), is_known)) std::erase_if(left, std::not_fn(is_known));
  const auto has_end = [](const Step& step) { return step.end_is_known; };
  if (!left.empty() && std::none_of(left.begin(), left.end(), has_end)) {
    return ByHost(std::move(detail));
  }
  std::erase_if(left, std::not_fn(has_end));
  detail.Cover();
  return detail;
}

Steps WithoutDeviceDetail(const Steps& steps, const IntervalSet& gaps) {
  Steps others = steps;
  std::erase_if(others.steps, [&](const Step& step) {
    return gaps.TotalWithin(step.span) != step.span.Length();
  });
  others.Cover();
  return others;
}

}  // namespace trainprof
