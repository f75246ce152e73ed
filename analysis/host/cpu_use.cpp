#include "analysis/host/cpu_use.h"

#include <algorithm>

#include "trace/base/cancel.h"

namespace trainprof {
namespace {

Interval Between(const CpuTimeTable& looks, uint32_t row) {
  return {looks.begin[row] - Duration{looks.wall_ns[row]}, looks.begin[row]};
}

// Who neither waited nor was interrupted had it all the time: the system's clock ticks coarsely.
bool WasPreempted(const CpuTimeTable& looks, uint32_t row) {
  return looks.waits[row] == 0 && looks.interruptions[row] != 0;
}

// What the thread did not have of the CPU.
Duration Less(const CpuTimeTable& looks, uint32_t row) {
  return Duration{std::max<int64_t>(0, looks.wall_ns[row] - looks.cpu_ns[row])};
}

}  // namespace

Timeline<CpuUse> CpuUseOf(const Trace& trace, TrackId thread,
                          const Timeline<HostMoment>& activity) {
  Timeline<CpuUse> uses;
  const CpuTimeTable& looks = trace.cpu_times;
  const auto [first, last] = looks.rows_of(thread);
  for (uint32_t row = first; row < last; ++row) {
    CancelPoint(row);
    const Duration less = Less(looks, row);
    const Interval between = Between(looks, row);
    CpuUse use{looks.waits[row] != 0 ? less : Duration{},
               WasPreempted(looks, row) ? less : Duration{},
               {}};
    VisitWithin(activity, between, [&](const Interval& piece, const HostMoment& moment) {
      const bool is_silent = moment.activity == HostActivity::kNothing ||
                             moment.activity == HostActivity::kOwnRange ||
                             moment.activity == HostActivity::kPython;
      if (is_silent) use.silent += piece.Length();
    });
    uses.push_back({between, use});
  }
  return uses;
}

const Segment<CpuUse>* UseDuring(const Timeline<CpuUse>& uses, const Interval& time) {
  const auto use = std::partition_point(
      uses.begin(), uses.end(),
      [&](const Segment<CpuUse>& segment) { return segment.interval.end <= time.begin; });
  const bool encloses = use != uses.end() && use->interval.begin <= time.begin + kRounding &&
                        use->interval.end + kRounding >= time.end;
  return encloses ? &*use : nullptr;
}

bool Computed(const CpuUse& use, Duration time) {
  return (use.waited + use.preempted).ns * 2 <= std::max(time, use.silent).ns;
}

Duration PreemptedWithin(const Trace& trace, TrackId thread, const IntervalSet& window) {
  const CpuTimeTable& looks = trace.cpu_times;
  const auto [first, last] = looks.rows_of(thread);
  Duration preempted;
  for (uint32_t row = first; row < last; ++row) {
    CancelPoint(row);
    if (!WasPreempted(looks, row)) continue;
    preempted += std::min(Less(looks, row), window.TotalWithin(Between(looks, row)));
  }
  return preempted;
}

IntervalSet SilenceOf(const Trace& trace, TrackId thread, const Timeline<HostMoment>& activity,
                      Duration least, Duration enclosing) {
  const Timeline<CpuUse> uses = CpuUseOf(trace, thread, activity);
  std::vector<Interval> silence;
  size_t asked = 0;
  VisitWithin(activity, trace.extent, [&](const Interval& piece, const HostMoment& moment) {
    CancelPoint(++asked);
    const bool is_enclosed = moment.activity == HostActivity::kOwnRange &&
                             trace.ranges.interval(moment.range).Length() >= enclosing;
    if (moment.activity != HostActivity::kNothing && !is_enclosed) return;
    if (piece.Length() < least) return;
    const Segment<CpuUse>* const use = UseDuring(uses, piece);
    if (use == nullptr || !Computed(use->value, piece.Length())) silence.push_back(piece);
  });
  return IntervalSet::Union(std::move(silence));
}

}  // namespace trainprof
