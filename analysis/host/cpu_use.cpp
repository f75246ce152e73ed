#include "analysis/host/cpu_use.h"

#include <algorithm>

#include "trace/base/cancel.h"

namespace trainprof {
namespace {

Interval Between(const CpuTimeTable& looks, uint32_t row) {
  return {looks.begin[row] - Duration{looks.wall_ns[row]}, looks.begin[row]};
}

// Who neither waited nor was interrupted had it all the time, whatever is counted.
bool WasPreempted(const CpuTimeTable& looks, uint32_t row) {
  return looks.waits[row] == 0 && looks.interruptions[row] != 0;
}

// Systems count what a thread used when it gives its processor up, and at ticks, which are at most so far apart.
constexpr int64_t kTickNs = 10'000'000;

// A shorter one may be over before the thread gives the CPU up.
constexpr Duration kLongWait = Microseconds(50);

// By look what the thread did not have of the CPU. What was used, and not yet counted at a look, is counted in a later
// one: so what a thread had that never lost its processor is counted less there, and what seems to be more than all of
// the time was had before, where the looks follow each other.
std::vector<Duration> LessOf(const CpuTimeTable& looks, uint32_t first, uint32_t last) {
  std::vector<int64_t> left(last - first);  // below 0: had before
  const auto follows = [&](uint32_t row) {
    return row > first && Between(looks, row).begin <= looks.begin[row - 1] + kRounding;
  };
  int64_t not_counted = 0;
  for (uint32_t row = first; row < last; ++row) {
    CancelPoint(row);
    if (!follows(row)) not_counted = 0;
    const int64_t balance = looks.wall_ns[row] - looks.cpu_ns[row] + not_counted;
    const bool had_all = looks.waits[row] == 0 && looks.interruptions[row] == 0;
    left[row - first] = had_all ? std::min<int64_t>(0, balance) : balance;
    not_counted = had_all ? std::clamp<int64_t>(balance, 0, kTickNs) : 0;
  }
  std::vector<Duration> less(last - first);
  int64_t had_before = 0;
  for (uint32_t row = last; row-- > first;) {
    CancelPoint(row);
    const int64_t here = left[row - first] - had_before;
    less[row - first] = Duration{std::clamp<int64_t>(here, 0, looks.wall_ns[row])};
    had_before = follows(row) ? std::max<int64_t>(0, -here) : 0;
  }
  return less;
}

// What it waited beyond its recorded waits for a device. Such a wait gives the CPU up or takes all of it, as the
// driver likes: where just as much of the CPU was not used as was waited, it gave it up, and did not wait again.
Duration Beyond(Duration recorded, Duration less) {
  const Duration apart = std::max(less, recorded) - std::min(less, recorded);
  return apart.ns * 10 <= recorded.ns ? apart : less;
}

}  // namespace

Timeline<CpuUse> CpuUseOf(const Trace& trace, TrackId thread,
                          const Timeline<HostMoment>& activity) {
  Timeline<CpuUse> uses;
  const CpuTimeTable& looks = trace.cpu_times;
  const auto [first, last] = looks.rows_of(thread);
  const std::vector<Duration> less_of = LessOf(looks, first, last);
  for (uint32_t row = first; row < last; ++row) {
    CancelPoint(row);
    const Duration less = less_of[row - first];
    const Interval between = Between(looks, row);
    CpuUse use{{}, WasPreempted(looks, row) ? less : Duration{}, {}};
    Duration recorded;
    int64_t waits = 0;  // recorded ones that may have given the CPU up, once each
    TraceTime waited_until;
    VisitWithin(activity, between, [&](const Interval& piece, const HostMoment& moment) {
      const bool is_silent = moment.activity == HostActivity::kNothing ||
                             moment.activity == HostActivity::kOwnRange ||
                             moment.activity == HostActivity::kPython;
      if (is_silent) use.silent += piece.Length();
      if (moment.activity != HostActivity::kSync) return;
      recorded += piece.Length();
      if (piece.Length() >= kLongWait && piece.begin != waited_until) ++waits;
      waited_until = piece.end;
    });
    // For longer than it was silent it had no CPU: it gave it up as it waited for a device, and in silence never.
    const bool is_all_recorded = looks.waits[row] <= waits && less > use.silent;
    if (looks.waits[row] != 0 && !is_all_recorded) use.waited = Beyond(recorded, less);
    if (looks.waits[row] != 0 && is_all_recorded && looks.interruptions[row] != 0) {
      use.preempted = std::max(Duration{}, less - recorded);
    }
    uses.push_back({between, use});
  }
  return uses;
}

const ThreadActivities::Thread& ThreadActivities::Of(TrackId thread) const {
  Made* made = nullptr;
  {
    const std::lock_guard lock(mutex_);
    made = &threads_[static_cast<uint32_t>(thread)];
  }
  std::call_once(made->once, [&] {
    made->thread.activity = ActivityTimeline(trace_, thread, blocking_);
    made->thread.cpu = CpuUseOf(trace_, thread, made->thread.activity);
  });
  return made->thread;
}

void ThreadActivities::MakeThoseOfLaunches() const {
  std::vector<bool> launched(trace_.tracks.size(), false);
  for (uint32_t op = 0; op < trace_.device_ops.size(); ++op) {
    CancelPoint(op);
    const Row call = trace_.device_ops.launch[op];
    if (call != kNoRow) launched[Index(trace_.api.track[Index(call)])] = true;
  }
  for (uint32_t track = 0; track < launched.size(); ++track) {
    if (launched[track]) Of(TrackId{track});
  }
}

std::span<const Segment<CpuUse>> UseDuring(const Timeline<CpuUse>& uses, const Interval& time) {
  const auto first = std::partition_point(
      uses.begin(), uses.end(),
      [&](const Segment<CpuUse>& segment) { return segment.interval.end <= time.begin; });
  if (first == uses.end() || first->interval.begin > time.begin + kRounding) return {};
  auto last = first;
  while (last->interval.end + kRounding < time.end) {
    const TraceTime end = last->interval.end;
    if (++last == uses.end() || last->interval.begin > end + kRounding) return {};
  }
  return {first, last + 1};
}

CpuUse SumOf(std::span<const Segment<CpuUse>> uses) {
  CpuUse sum;
  for (const Segment<CpuUse>& use : uses) {
    sum.waited += use.value.waited;
    sum.preempted += use.value.preempted;
    sum.silent += use.value.silent;
  }
  return sum;
}

bool NeverWaited(const CpuTimeTable& looks, TrackId thread, const Interval& time) {
  const auto [first, last] = looks.rows_of(thread);
  const auto behind =
      std::upper_bound(looks.begin.begin() + first, looks.begin.begin() + last, time.begin);
  TraceTime known = time.begin;
  for (auto row = static_cast<uint32_t>(behind - looks.begin.begin()); row < last; ++row) {
    if (Between(looks, row).begin > known + kRounding || looks.waits[row] != 0) return false;
    known = looks.begin[row];
    if (known + kRounding >= time.end) return true;
  }
  return false;
}

bool Computed(const CpuUse& use, Duration time) {
  return (use.waited + use.preempted).ns * 2 <= std::max(time, use.silent).ns;
}

Duration PreemptedWithin(const Trace& trace, TrackId thread, const IntervalSet& window) {
  const CpuTimeTable& looks = trace.cpu_times;
  const auto [first, last] = looks.rows_of(thread);
  const std::vector<Duration> less = LessOf(looks, first, last);
  Duration preempted;
  for (uint32_t row = first; row < last; ++row) {
    CancelPoint(row);
    if (!WasPreempted(looks, row)) continue;
    preempted += std::min(less[row - first], window.TotalWithin(Between(looks, row)));
  }
  return preempted;
}

IntervalSet SilenceOf(const Trace& trace, const ThreadActivities::Thread& thread, Duration least,
                      Duration enclosing) {
  std::vector<Interval> silence;
  size_t asked = 0;
  VisitWithin(thread.activity, trace.extent, [&](const Interval& piece, const HostMoment& moment) {
    CancelPoint(++asked);
    const bool is_enclosed = moment.activity == HostActivity::kOwnRange &&
                             trace.ranges.interval(moment.range).Length() >= enclosing;
    if (moment.activity != HostActivity::kNothing && !is_enclosed) return;
    if (piece.Length() < least) return;
    const auto looks = UseDuring(thread.cpu, piece);
    if (looks.empty() || !Computed(SumOf(looks), piece.Length())) silence.push_back(piece);
  });
  return IntervalSet::Union(std::move(silence));
}

}  // namespace trainprof
