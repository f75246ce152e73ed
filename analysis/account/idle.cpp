// The law of idle.h, one function a clause.
#include "analysis/account/idle.h"

#include <algorithm>
#include <functional>
#include <unordered_map>

#include "trace/base/cancel.h"
#include "trace/base/near.h"
#include "trace/base/parallel.h"

namespace trainprof {
namespace {

using C = DeviceClass;

// Gaps between the work of a device: so many that a thread is worth its start.
constexpr size_t kGapsAtOnce = size_t{1} << 15;
// Room for so many parts of each, as a rule: it costs nothing where there are fewer.
constexpr size_t kPartsOfGap = 4;

}  // namespace

IdleSplitter::IdleSplitter(const Trace& trace, const Steps& steps,
                           const ThreadActivities& activities, const Graph& graph,
                           const std::vector<Row>& missing)
    : trace_(trace),
      steps_(steps),
      activities_(activities),
      missing_(trace, missing),
      waited_for_(trace, graph, steps.thread) {
  if (steps.thread == kNoTrack) return;
  std::vector<Interval> waits;
  for (const auto& [interval, moment] : activities.Of(steps.thread).activity) {
    if (moment.activity == HostActivity::kInputWait) waits.push_back(interval);
  }
  input_waits_ = IntervalSet::Union(std::move(waits));
}

// -- One device.

class IdleSplitter::OfDevice {
 public:
  // What comes out goes to the end of `idle` and of `drains`.
  OfDevice(const IdleSplitter& all, std::span<const uint32_t> ops, const DeviceAccount& account,
           PackedTimeline<DeviceClass>& idle, std::vector<Drain>& drains)
      : all_(all),
        trace_(all.trace_),
        steps_(all.steps_),
        ops_(ops),
        missing_(all.missing_.On(account.device)),
        busy_(account.busy),
        extent_(all.trace_.extent),
        off_(DeviceGaps(trace_).Minus(steps_.device_window)),
        idle_(idle),
        drains_(drains),
        period_(missing_.begin()) {
    for (const Interval& part : steps_.device_window.intervals()) {
      extent_ = {std::min(extent_.begin, part.begin), std::max(extent_.end, part.end)};
    }
  }

  // The gaps [first, last), each before the busy time of its number; the last one of all is behind them. Of
  // several calls each is for later ones than the one before.
  void Split(size_t first, size_t last);

 private:
  struct Part {
    Interval interval;
    DeviceClass why = C::kIdleUnknown;
    bool is_rest = false;
    bool is_of_host = false;  // what a thread was doing tells
    Row wait = kNoRow;        // of the rest: the wait before it
  };

  using Periods = std::span<const MissingWork::Period>;

  Row OperationAt(TraceTime begin, size_t first) const;
  Row NeededFrom(size_t first) const;
  void SplitOne(const Interval& gap);
  void SplitGap(const Interval& gap, Row op);
  void SplitAround(const Interval& gap, Row op, Periods missing);
  void PartsOf(const Interval& gap, Row op);
  void AddHost(const Interval& gap, const Held& held);
  void AddMoments(const Interval& gap, const Interval& within, const Held& held);
  void AddMoment(const Interval& gap, const Interval& piece, const HostMoment& moment,
                 const Interval& stretch, const Held& held);
  void AddStepping(const Interval& gap, const Interval& within, const Held& held);
  bool IsNoPhase(Row range) const;
  DeviceClass ClassOfRange(const Interval& gap, Row range, const Held& held) const;
  DeviceClass WithCpu(TrackId thread, const Interval& piece, const Interval& stretch,
                      bool is_silent, DeviceClass c);
  const ThreadActivities::Thread& ActivitiesOf(TrackId thread);
  void Emit(const Interval& interval, DeviceClass c);
  void EmitRest(const Part& part);
  TraceTime RanDry(TraceTime wait_end);
  Duration BusyBetween(TraceTime begin, TraceTime end);
  bool MayHaveWorked(const Interval& interval) const;

  const IdleSplitter& all_;
  const Trace& trace_;
  const Steps& steps_;
  const std::span<const uint32_t> ops_;
  const std::vector<MissingWork::Period>& missing_;
  const IntervalSet& busy_;
  IntervalReader busy_before_{busy_};  // a wait
  IntervalReader busy_behind_{busy_};
  Interval extent_;  // of the trace and of the window
  const IntervalSet off_;
  PackedTimeline<DeviceClass>& idle_;
  std::vector<Drain>& drains_;
  size_t next_ = 0;  // of ops_: the first that does not begin before the gap at hand ends
  std::vector<MissingWork::Period>::const_iterator period_;  // of missing_, the same
  std::vector<Held> held_;                                   // of the gap at hand
  std::vector<Part> parts_;                                  // the same
  TrackId thread_ = kNoTrack;                                // that was asked for last
  const ThreadActivities::Thread* activities_ = nullptr;     // its
  size_t near_moment_ = 0;                                   // of these, what was found last
  size_t near_stepping_ = 0;  // the same of the stepping thread's, and of its waits for input
  size_t near_wait_ = 0;
  std::unordered_map<const void*, Duration> preempted_;  // what is taken already
  struct Busy {
    TraceTime since;
    TraceTime until;
    Duration total;
  };
  std::unordered_map<int64_t, Busy> busy_since_;  // by the begin that was asked for
  Busy* last_busy_ = nullptr;                     // of these, that was asked for last
};

// Of several operations that begin together, the first whose launch is known.
Row IdleSplitter::OfDevice::OperationAt(TraceTime begin, size_t first) const {
  Row found = kNoRow;
  for (size_t i = first; i < ops_.size() && trace_.device_ops.begin[ops_[i]] == begin; ++i) {
    const Row row{ops_[i]};
    if (trace_.device_ops.interval(row).Empty()) continue;
    if (trace_.device_ops.launch[Index(row)] != kNoRow) return row;
    if (found == kNoRow) found = row;
  }
  return found;
}

// The first from there on for which somebody waits; kNoRow where that is none of the next.
Row IdleSplitter::OfDevice::NeededFrom(size_t first) const {
  for (size_t i = first; i < std::min(ops_.size(), first + kMostSkipped); ++i) {
    const Row row{ops_[i]};
    if (!trace_.device_ops.interval(row).Empty() && all_.waited_for_.IsNeeded(row)) return row;
  }
  return kNoRow;
}

void IdleSplitter::OfDevice::Split(size_t first, size_t last) {
  const auto busy = busy_.intervals();
  for (size_t i = first; i < last; ++i) {
    CancelPoint(i);
    const Interval gap{i == 0 ? extent_.begin : std::max(extent_.begin, busy[i - 1].end),
                       i == busy.size() ? extent_.end : std::min(extent_.end, busy[i].begin)};
    if (gap.Empty()) continue;
    if (off_.TotalWithin(gap).ns == 0) {
      SplitOne(gap);
      continue;
    }
    const IntervalSet on = IntervalSet::Union({gap}).Minus(off_);
    for (const Interval& part : on.intervals()) SplitOne(part);
  }
}

// In the order of the gaps.
void IdleSplitter::OfDevice::SplitOne(const Interval& gap) {
  while (next_ < ops_.size() && trace_.device_ops.begin[ops_[next_]] < gap.end) ++next_;
  const Row op = OperationAt(gap.end, next_);
  while (period_ != missing_.end() && period_->interval.end <= gap.begin) ++period_;
  auto behind = period_;
  while (behind != missing_.end() && behind->interval.begin < gap.end) ++behind;
  if (behind != period_) return SplitAround(gap, op, {period_, behind});
  Row waited = op;
  if (op != kNoRow && !all_.waited_for_.IsNeeded(op)) {
    waited = NeededFrom(next_);
    if (waited == kNoRow) waited = op;
  }
  SplitGap(gap, waited);
}

void IdleSplitter::OfDevice::SplitGap(const Interval& gap, Row op) {
  PartsOf(gap, op);
  for (const Part& part : parts_) {
    if (part.is_rest && op != kNoRow) {
      EmitRest(part);
    } else {
      Emit(part.interval, part.is_rest ? C::kIdleUnknown : part.why);
    }
  }
}

void IdleSplitter::OfDevice::SplitAround(const Interval& gap, Row op, Periods missing) {
  const Row launch = op == kNoRow ? kNoRow : trace_.device_ops.launch[Index(op)];
  TrackId thread = op == kNoRow ? steps_.thread : kNoTrack;
  TraceTime issue = gap.end;
  DeviceClass rest = C::kIdleUnknown;
  if (launch != kNoRow) {
    thread = trace_.api.track[Index(launch)];
    issue = std::clamp(trace_.api.begin[Index(launch)], gap.begin, gap.end);
    if (trace_.api.end(Index(launch)) <= gap.begin) rest = C::kIdleUnrecorded;
  }
  const bool one_thread =
      thread != kNoTrack && rest == C::kIdleUnknown &&
      std::all_of(missing.begin(), missing.end(),
                  [&](const MissingWork::Period& period) { return period.thread == thread; });
  parts_.clear();
  if (one_thread) PartsOf(gap, op);
  auto next = parts_.begin();
  const auto outside = [&](const Interval& within) {
    TraceTime at = within.begin;
    for (; next != parts_.end() && next->interval.begin < within.end; ++next) {
      const Interval part = Intersect(next->interval, {at, std::min(within.end, issue)});
      const bool is_named = next->is_of_host && !next->is_rest && !part.Empty();
      if (is_named) {
        Emit({at, part.begin}, rest);
        Emit(part, next->why);
        at = part.end;
      }
      if (next->interval.end > within.end) break;
    }
    Emit({at, within.end}, rest);
  };
  TraceTime at = gap.begin;
  for (const MissingWork::Period& period : missing) {
    const Interval part = Intersect(period.interval, gap);
    if (at < part.begin) outside({at, part.begin});
    Emit(part, C::kIdleUnrecorded);
    at = part.end;
  }
  if (at < gap.end) outside({at, gap.end});
}

// -- The parts of a gap.

void IdleSplitter::OfDevice::PartsOf(const Interval& gap, Row op) {
  parts_.clear();
  if (op == kNoRow) {
    return AddStepping(gap, gap, {.since = gap.begin});
  }
  all_.waited_for_.Find(op, gap.begin, held_);
  for (size_t i = 0; i < held_.size(); ++i) {
    Held held = held_[i];
    held.interval = Intersect(held.interval, gap);
    if (held.interval.Empty()) continue;
    switch (held.by) {
      case Holder::kHost: {
        // One stretch, whatever nodes it is of.
        auto of_part = held_.cbegin() + static_cast<ptrdiff_t>(i);
        while (i + 1 < held_.size() && held_[i + 1].by == Holder::kHost &&
               held_[i + 1].thread == held.thread) {
          held.interval.end = std::min(held_[++i].interval.end, gap.end);
        }
        const auto first = static_cast<ptrdiff_t>(parts_.size());
        AddHost(gap, held);
        for (auto part = parts_.begin() + first; part != parts_.end(); ++part) {
          while (of_part->interval.end <= part->interval.begin) ++of_part;
          part->wait = of_part->wait;
        }
        break;
      }
      case Holder::kIssue:
        parts_.push_back({held.interval, C::kIdleUnknown, !held.is_long_call, false, held.wait});
        break;
      case Holder::kOtherDevice:
        parts_.push_back({held.interval, C::kIdleOtherDevice});
        break;
      case Holder::kHostFunction:
        parts_.push_back({held.interval, C::kIdleHostFunction});
        break;
      case Holder::kHandOver:
        parts_.push_back({held.interval, C::kIdleDependency});
        break;
      case Holder::kUnrecorded:
        parts_.push_back({held.interval, C::kIdleUnrecorded});
        break;
      case Holder::kUnknown:
        parts_.push_back({held.interval});
        break;
    }
  }
}

// While the stepping thread waits for input nothing else counts.
void IdleSplitter::OfDevice::AddHost(const Interval& gap, const Held& held) {
  const Interval& within = held.interval;
  TraceTime at = within.begin;
  const auto waits = all_.input_waits_.intervals();
  auto wait =
      PartitionNear(waits.begin(), waits.end(), waits.begin() + static_cast<ptrdiff_t>(near_wait_),
                    [&](const Interval& interval) { return interval.end <= within.begin; });
  near_wait_ = static_cast<size_t>(wait - waits.begin());
  for (; wait != waits.end() && wait->begin < within.end; ++wait) {
    const Interval part = Intersect(*wait, within);
    if (at < part.begin) AddMoments(gap, {at, part.begin}, held);
    parts_.push_back({part, C::kIdleInputWait, false, true});
    at = part.end;
  }
  if (at < within.end) AddMoments(gap, {at, within.end}, held);
}

void IdleSplitter::OfDevice::AddMoments(const Interval& gap, const Interval& within,
                                        const Held& held) {
  VisitWholeWithin(
      ActivitiesOf(held.thread).activity, within,
      held.thread == steps_.thread ? near_stepping_ : near_moment_,
      [&](const Interval& piece, const HostMoment& moment, const Interval& stretch) {
        if (moment.activity == HostActivity::kNothing && held.thread != steps_.thread) {
          return AddStepping(gap, piece, held);
        }
        AddMoment(gap, piece, moment, stretch, held);
      });
}

void IdleSplitter::OfDevice::AddStepping(const Interval& gap, const Interval& within,
                                         const Held& held) {
  if (steps_.thread == kNoTrack) {
    return AddMoment(gap, within, {}, within, held);
  }
  Held stepping = held;
  stepping.thread = steps_.thread;
  VisitWholeWithin(ActivitiesOf(steps_.thread).activity, within, near_stepping_,
                   [&](const Interval& piece, const HostMoment& moment, const Interval& stretch) {
                     AddMoment(gap, piece, moment, stretch, stepping);
                   });
}

// `piece`, within the gap, is of a stretch of that moment, of which what lies in the trace counts.
void IdleSplitter::OfDevice::AddMoment(const Interval& gap, const Interval& piece,
                                       const HostMoment& moment, const Interval& stretch,
                                       const Held& held) {
  const Interval whole = Intersect(stretch, extent_);
  const Duration length = whole.Length();
  Part part{piece, C::kIdleUnknown, false, true};
  switch (moment.activity) {
    case HostActivity::kInputWait:
      part.why = C::kIdleInputWait;
      break;
    case HostActivity::kAllocate:
      part.why = C::kIdleAllocation;
      break;
    case HostActivity::kIo:
      part.why = C::kIdleIo;
      break;
    case HostActivity::kRankWait:
      part.is_rest = piece.Length() < kRankPause;
      part.why = C::kIdleCollective;
      break;
    case HostActivity::kPython:
      part.is_rest = length < kPythonStretch;
      part.why = C::kIdlePython;
      break;
    case HostActivity::kOwnRange:
      part.why = ClassOfRange(gap, moment.range, held);
      part.is_rest =
          length <
          (part.why == C::kIdleHostWork && IsNoPhase(moment.range) ? kHostPause : kSilentStretch);
      break;
    case HostActivity::kNothing:
      part.is_rest = length < kSilentStretch;
      break;
    case HostActivity::kSync:
      // A sync returns soon after its device went idle. A longer wait on an idle device is for
      // something that is not in the trace.
      part.is_rest = piece.Length() <= kSyncReturn;
      break;
    case HostActivity::kSetup:
      break;
    case HostActivity::kWork:
      part.is_rest = moment.range == kNoRow;
      part.why = C::kIdleHostWork;
      break;
  }
  const bool is_silent = part.why == C::kIdleUnknown && moment.activity != HostActivity::kSync;
  const bool is_own = is_silent || part.why == C::kIdlePython || part.why == C::kIdleHostWork;
  if (!part.is_rest && is_own) {
    part.why = WithCpu(held.thread, piece, whole, is_silent, part.why);
  }
  parts_.push_back(part);
}

bool IdleSplitter::OfDevice::IsNoPhase(Row range) const {
  return PhaseOf(trace_, range) == Phase::kNone;
}

// A range that encloses what is asked for says nothing of it.
DeviceClass IdleSplitter::OfDevice::ClassOfRange(const Interval& gap, Row range,
                                                 const Held& held) const {
  const Interval times = trace_.ranges.interval(range);
  if (times.begin + kRounding < std::min(held.since, gap.begin)) return C::kIdleUnknown;
  const Step* const step = steps_.At(times.begin);
  const TraceTime end = step == nullptr ? gap.end : std::max(step->span.end, gap.end);
  return times.end <= end + kRounding ? C::kIdleHostWork : C::kIdleUnknown;
}

// The same class, where looks at the thread's use of the CPU say no more.
DeviceClass IdleSplitter::OfDevice::WithCpu(TrackId thread, const Interval& piece,
                                            const Interval& stretch, bool is_silent,
                                            DeviceClass c) {
  if (thread == kNoTrack || stretch.Length() < kSilentStretch) return c;
  const std::span uses = UseDuring(ActivitiesOf(thread).cpu, stretch);
  if (uses.empty()) return c;
  // What one piece was preempted for no other was.
  Duration left;
  for (const Segment<CpuUse>& use : uses) left += use.value.preempted - preempted_[&use];
  if (left.ns * 2 > stretch.Length().ns) {
    left = piece.Length();
    for (const Segment<CpuUse>& use : uses) {
      Duration& taken = preempted_[&use];
      const Duration part = std::min(left, use.value.preempted - taken);
      taken += part;
      left = left - part;
    }
    return C::kIdlePreempted;
  }
  return is_silent && Computed(SumOf(uses), stretch.Length()) ? C::kIdleHostWork : c;
}

const ThreadActivities::Thread& IdleSplitter::OfDevice::ActivitiesOf(TrackId thread) {
  if (activities_ == nullptr || thread != thread_) {
    thread_ = thread;
    activities_ = &all_.activities_.Of(thread);
    near_moment_ = 0;
  }
  return *activities_;
}

// -- What comes out.

void IdleSplitter::OfDevice::Emit(const Interval& interval, DeviceClass c) {
  if (!interval.Empty()) idle_.Add(interval, c);
}

void IdleSplitter::OfDevice::EmitRest(const Part& part) {
  if (part.wait == kNoRow) return Emit(part.interval, C::kIdleLaunchBound);
  const Interval wait = trace_.api.interval(part.wait);
  const TraceTime dry = std::min(RanDry(wait.end), part.interval.begin);
  if (MayHaveWorked({dry, part.interval.end})) return Emit(part.interval, C::kIdleUnknown);
  const Duration idle = (part.interval.begin - dry) - BusyBetween(dry, part.interval.begin);
  const TraceTime until = std::clamp(part.interval.begin + (wait.Length() - idle),
                                     part.interval.begin, part.interval.end);
  const Interval drain{part.interval.begin, until};
  if (!drain.Empty()) drains_.push_back({drain, part.wait});
  Emit(drain, C::kIdleSyncDrain);
  Emit({until, part.interval.end}, C::kIdleLaunchBound);
}

// Of the time before `wait_end`, when the device ran out of work for the last time.
TraceTime IdleSplitter::OfDevice::RanDry(TraceTime wait_end) {
  const Interval* const last = busy_before_.LastBefore(wait_end);
  return std::min(wait_end, last == nullptr ? trace_.extent.begin : last->end);
}

// Behind one wait millions of gaps may come, each later than the one before: none counts what another one did.
Duration IdleSplitter::OfDevice::BusyBetween(TraceTime begin, TraceTime end) {
  if (last_busy_ == nullptr || begin != last_busy_->since) {
    last_busy_ = &busy_since_.try_emplace(begin.ns, Busy{begin, begin, {}}).first->second;
  }
  Busy& busy = *last_busy_;
  if (end < busy.until) return busy_.TotalWithin({begin, end});
  busy.total += busy_behind_.TotalWithin({busy.until, end});
  busy.until = end;
  return busy.total;
}

bool IdleSplitter::OfDevice::MayHaveWorked(const Interval& interval) const {
  const auto period = std::partition_point(
      missing_.begin(), missing_.end(),
      [&](const MissingWork::Period& p) { return p.interval.end <= interval.begin; });
  return period != missing_.end() && period->interval.begin < interval.end;
}

void IdleSplitter::Split(std::span<const uint32_t> ops, DeviceAccount& account) const {
  const size_t gaps = account.busy.intervals().size() + 1;
  account.idle.Reserve(kPartsOfGap * gaps);
  OfDevice splitter(*this, ops, account, account.idle, account.drains);
  // What a look at the CPU tells is shared out among gaps in their order.
  if (trace_.cpu_times.size() > 0) return splitter.Split(0, gaps);
  PackedTimeline<DeviceClass> idle;
  std::vector<Drain> drains;
  OfDevice other(*this, ops, account, idle, drains);
  for (size_t at = 0; at < gaps; at += 2 * kGapsAtOnce) {
    const size_t end = std::min(gaps, at + 2 * kGapsAtOnce);
    const size_t middle = at + (end - at + 1) / 2;
    const std::function<void()> halves[] = {[&] { splitter.Split(at, middle); },
                                            [&] { other.Split(middle, end); }};
    RunAll(std::span(halves).first(middle < end ? 2 : 1));
    account.idle.Append(idle);
    account.drains.insert(account.drains.end(), drains.begin(), drains.end());
    idle.Clear();
    drains.clear();
  }
}

}  // namespace trainprof
