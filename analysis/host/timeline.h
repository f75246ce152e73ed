// What a thread was doing at each moment, flattened from its nested events: at every nanosecond the
// innermost event that means something counts. The time accounts are built from these.
#pragma once

#include <utility>
#include <vector>

#include "trace/base/cancel.h"
#include "trace/base/near.h"
#include "trace/tables/trace.h"

namespace trainprof {

// Why a device had nothing to do, as far as one host thread's events tell.
enum class HostActivity : uint8_t {
  kNothing,   // no event covers this moment
  kWork,      // inside operators, launches: it was getting on with the step
  kOwnRange,  // inside a range of the user's (no step), which says what it did if it began just then
  kPython,    // inside Python functions only
  kInputWait,  // waiting for the data loader
  kSync,       // inside a call that waits for the device
  kAllocate,   // inside cudaMalloc, cudaFree, ...
  kIo,         // saving, logging
  kRankWait,   // inside a collective: for other ranks
  kSetup,      // inside a call that sets something up: the context, a module, a stream
};

struct HostMoment {
  HostActivity activity = HostActivity::kNothing;
  // Of kOwnRange, and of kWork where an operator issues nothing for kOperatorStretch.
  Row range = kNoRow;

  bool operator==(const HostMoment&) const = default;
};

// Kineto rounds to 1 us in files before 2023, so that a call and its copy may seem to end 1 us
// apart.
inline constexpr Duration kRounding = Microseconds(1);

// A runtime call that neither copies nor waits nor allocates, and takes this long, sets something up
// once, or loads it: creating the context took 30 s in one cudaDeviceGetStreamPriorityRange of a
// cold-started AlexNet.
inline constexpr Duration kSetupCall = Milliseconds(1);

// An operator that issues nothing for this long computes on the host, or sets something up: of the stretches
// that operators are silent for, 99.9 % are below 0.25 ms in traces of V100, A100 and H100, 1.4 ms where a
// loader works in the loop.
inline constexpr Duration kOperatorStretch = Milliseconds(3);

// A thread that pauses for less than that between two operators or calls is getting on with its work: Python's
// own time between two launches is 5 to 20 us.
inline constexpr Duration kShortPause = Microseconds(20);

template <class Value>
struct Segment {
  Interval interval;
  Value value{};
};

// One thread's timeline: sorted, disjoint segments; what no segment covers has the value {}.
template <class Value>
using Timeline = std::vector<Segment<Value>>;

// A nested event of a thread with the value it stands for.
template <class Value>
struct Labelled {
  Interval interval;
  Value value{};
};

// Flattens events, sorted by (begin, longer first): at each moment the last event that began and
// has not ended. Events that overlap without nesting are taken as they come. Calls
// visit(Interval, const Value&) for each piece, in time order. What stands within an event of the same value is of that
// one's piece. O(1) an event, memory as deep as they nest.
template <class Value, class Visitor>
class Flattener {
 public:
  explicit Flattener(Visitor visit) : visit_(std::move(visit)) {}

  void Add(const Interval& interval, const Value& value) {
    if (interval.Empty()) return;
    if (!open_.empty() && interval.end <= open_.back().interval.end && value == open_.back().value)
      return;
    VisitUntil(interval.begin);
    if (at_ < interval.begin) at_ = interval.begin;
    while (!open_.empty() && open_.back().interval.end <= at_) open_.pop_back();
    open_.push_back({interval, value});
  }
  void Finish() { VisitUntil(TraceTime{INT64_MAX}); }

 private:
  void VisitUntil(TraceTime until) {
    while (!open_.empty() && at_ < until) {
      const TraceTime stop = open_.back().interval.end < until ? open_.back().interval.end : until;
      if (at_ < stop) {
        visit_(Interval{at_, stop}, open_.back().value);
        at_ = stop;
      }
      if (open_.back().interval.end <= at_) open_.pop_back();
    }
  }

  Visitor visit_;
  std::vector<Labelled<Value>> open_;
  TraceTime at_{INT64_MIN};
};

// Adds a piece to the end of a timeline; one that goes on with the same value is the same segment.
template <class Value>
void Append(Timeline<Value>& timeline, const Interval& piece, const Value& value) {
  if (!timeline.empty() && timeline.back().interval.end == piece.begin &&
      timeline.back().value == value) {
    timeline.back().interval.end = piece.end;
  } else {
    timeline.push_back({piece, value});
  }
}

template <class Value>
Timeline<Value> Flatten(const std::vector<Labelled<Value>>& events) {
  Timeline<Value> timeline;
  const auto append = [&](const Interval& piece, const Value& value) {
    Append(timeline, piece, value);
  };
  Flattener<Value, decltype(append)> flattener(append);
  for (size_t i = 0; i < events.size(); ++i) {
    CancelPoint(i);
    flattener.Add(events[i].interval, events[i].value);
  }
  flattener.Finish();
  return timeline;
}

// Calls visit(Interval part, Value, Interval whole) for each part of `within`, in order and without holes; what no
// segment covers has the value {}. `whole` is what the part is of, beyond `within` as well: before the first
// segment and behind the last one it has no end. `near`: the segment of the last time, 0 at first; O(log distance +
// parts) from there.
template <class Value, class Visitor>
void VisitWholeWithin(const Timeline<Value>& timeline, const Interval& within, size_t& near,
                      Visitor visit) {
  near = PlaceNear(0, timeline.size(), near,
                   [&](size_t at) { return timeline[at].interval.end <= within.begin; });
  size_t low = near;
  constexpr TraceTime kNoBegin{INT64_MIN / 2};
  constexpr TraceTime kNoEnd{INT64_MAX / 2};
  const auto hole = [&](size_t before) {
    return Interval{before == 0 ? kNoBegin : timeline[before - 1].interval.end,
                    before == timeline.size() ? kNoEnd : timeline[before].interval.begin};
  };
  TraceTime at = within.begin;
  for (; low < timeline.size() && timeline[low].interval.begin < within.end; ++low) {
    const Interval part = Intersect(timeline[low].interval, within);
    if (at < part.begin) visit(Interval{at, part.begin}, Value{}, hole(low));
    visit(part, timeline[low].value, timeline[low].interval);
    at = part.end;
  }
  if (at < within.end) visit(Interval{at, within.end}, Value{}, hole(low));
}

// The same without `whole`. O(log n + parts).
template <class Value, class Visitor>
void VisitWithin(const Timeline<Value>& timeline, const Interval& within, Visitor visit) {
  size_t near = timeline.size() / 2;
  VisitWholeWithin(
      timeline, within, near,
      [&](const Interval& part, const Value& value, const Interval&) { visit(part, value); });
}

// Calls visit(Interval, is_api, row) for ranges and API calls of a thread, by begin, outer first; of a
// range and a call with the same times the range.
template <class Visitor>
void VisitThread(const Trace& trace, TrackId thread, Visitor visit) {
  auto [range, range_end] = trace.ranges.rows_of(thread);
  auto [call, call_end] = trace.api.rows_of(thread);
  while (range < range_end || call < call_end) {
    CancelPoint(size_t{range} + call);
    bool take_range = range < range_end;
    if (take_range && call < call_end) {
      const Interval of_range = trace.ranges.interval(Row{range});
      const Interval of_call = trace.api.interval(Row{call});
      take_range = of_range.begin != of_call.begin ? of_range.begin < of_call.begin
                                                   : of_range.end >= of_call.end;
    }
    const EventColumns& table = take_range ? static_cast<const EventColumns&>(trace.ranges)
                                           : static_cast<const EventColumns&>(trace.api);
    const Row row{take_range ? range++ : call++};
    visit(table.interval(row), !take_range, row);
  }
}

// The phase that range `row` stands for (kNone for most).
[[gnu::always_inline]] inline Phase PhaseOf(const Trace& trace, Row row) {
  const StringId name = trace.ranges.name[Index(row)];
  const RangeKind kind = trace.ranges.kind[Index(row)];
  if (kind == RangeKind::kCpuOp) return trace.Facts(name).torch_phase;
  if (kind == RangeKind::kUserAnnotation) return trace.Facts(name).user_phase;
  if (kind != RangeKind::kPythonFunction) return Phase::kNone;
  // Of torch.profiler's with_modules and with_stack.
  return trace.Text(name).starts_with("nn.Module: ") ? Phase::kForward : Phase::kNone;
}

// Of a thread's ranges, in their order: which are waits for input? Those whose name says so; but a
// range that covers a whole step holds the loop, whatever its name. O(the thread's ranges).
std::vector<bool> FindInputWaits(const Trace& trace, TrackId thread);

Timeline<Phase> PhaseTimeline(const Trace& trace, TrackId thread);
// `is_blocking` tells, per row of trace.api, whether the call waited for the device. A wait for input
// holds all within it: what is called there is the loader's. Of other reasons not to get on with the step
// the innermost counts, before all that is none.
Timeline<HostMoment> ActivityTimeline(const Trace& trace, TrackId thread,
                                      const std::vector<bool>& is_blocking);

// Copies between the device and pageable host memory make their call wait: to the host always, to
// the device above 64 KiB (CUDA runtime API, "API synchronization behavior"). Timestamps need not
// show it: the two clocks of a file of 2021 are some 80 us apart.
inline constexpr int64_t kPageableAsyncBytes = 64 << 10;

// Per row of trace.api: did the call wait for the device? Synchronisation calls do. A copy's call
// does when it must (above), or when it returned (with kRounding) no earlier than its copy ended,
// unless that was done at once and the manual says that such a call does not wait; device-to-device
// copies never do.
std::vector<bool> FindBlockingCalls(const Trace& trace);

}  // namespace trainprof
