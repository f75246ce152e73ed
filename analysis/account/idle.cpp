// The law of idle.h, one function a clause.
#include "analysis/account/idle.h"

#include <algorithm>

#include "trace/base/cancel.h"

namespace trainprof {
namespace {

using Out = std::vector<Segment<DeviceClass>>;

void Emit(Out& out, const Interval& interval, DeviceClass c) {
  if (interval.Empty()) return;
  if (!out.empty() && out.back().value == c && out.back().interval.end == interval.begin) {
    out.back().interval.end = interval.end;
  } else {
    out.push_back({interval, c});
  }
}

// What a long enough stretch of an activity stands for; `rest` for what explains nothing.
DeviceClass ClassOf(HostActivity activity, Duration stretch, DeviceClass rest) {
  switch (activity) {
    case HostActivity::kInputWait:
      return DeviceClass::kIdleInputWait;
    case HostActivity::kAllocate:
      return DeviceClass::kIdleAllocation;
    case HostActivity::kIo:
      return DeviceClass::kIdleIo;
    case HostActivity::kPython:
      return stretch >= kPythonStretch ? DeviceClass::kIdlePython : rest;
    case HostActivity::kNothing:
      return stretch >= kSilentStretch ? DeviceClass::kIdleUnknown : rest;
    case HostActivity::kSync:
      // A sync returns soon after its device went idle. A longer wait on an idle device is for
      // something that is not in the trace.
      return stretch <= kSyncReturn ? rest : DeviceClass::kIdleUnknown;
    case HostActivity::kSetup:
      return DeviceClass::kIdleUnknown;
    case HostActivity::kWork:
      break;
  }
  return rest;
}

// How long after its call began a copy may start on the device while the host still prepares it.
Duration Staging(const Trace& trace, Row op) {
  const size_t i = Index(op);
  if (trace.device_ops.direction[i] != CopyDirection::kHostToDevice) return {};
  const int64_t bytes = std::min(trace.device_ops.bytes[i], kStagingBytes);
  return Microseconds(bytes / kStagingBytesPerMicrosecond);
}

}  // namespace

IdleSplitter::IdleSplitter(const Trace& trace, const Steps& steps,
                           const std::vector<bool>& blocking_calls)
    : trace_(trace), steps_(steps), blocking_(blocking_calls), missing_(trace) {}

const Timeline<HostActivity>& IdleSplitter::TimelineOf(TrackId thread) const {
  const auto [it, is_new] = timelines_.try_emplace(static_cast<uint32_t>(thread));
  if (is_new) it->second = ActivityTimeline(trace_, thread, blocking_);
  return it->second;
}

std::vector<Segment<DeviceClass>> IdleSplitter::Split(DeviceId device,
                                                      std::span<const uint32_t> ops,
                                                      const IntervalSet& busy) const {
  size_t asked = 0;
  Interval extent = trace_.extent;
  for (const Interval& part : steps_.device_window.intervals()) {
    extent = {std::min(extent.begin, part.begin), std::max(extent.end, part.end)};
  }
  const IntervalSet idle =
      busy.Complement(extent).Minus(DeviceGaps(trace_).Minus(steps_.device_window));
  Out out;
  auto op = ops.begin();
  const std::vector<MissingWork::Period>& missing = missing_.On(device);
  auto period = missing.begin();
  for (const Interval& interval : idle.intervals()) {
    CancelPoint(++asked);
    while (op != ops.end() && trace_.device_ops.begin[*op] < interval.end) ++op;
    Gap gap{interval, kNoRow};
    // Of several operations that begin together, the first whose launch is known.
    for (auto same = op; same != ops.end() && trace_.device_ops.begin[*same] == interval.end;
         ++same) {
      if (trace_.device_ops.end[*same] == trace_.device_ops.begin[*same]) continue;
      const Row row{*same};
      if (gap.op == kNoRow || trace_.device_ops.launch[Index(gap.op)] == kNoRow) gap.op = row;
    }
    while (period != missing.end() && period->interval.end <= interval.begin) ++period;
    auto behind = period;
    while (behind != missing.end() && behind->interval.begin < interval.end) ++behind;
    if (behind == period) {
      SplitGap(gap, out);
    } else {
      SplitAround(gap, {period, behind}, out);
    }
  }
  return out;
}

void IdleSplitter::SplitAround(const Gap& gap, Periods missing, Out& out) const {
  const Row launch = gap.op == kNoRow ? kNoRow : trace_.device_ops.launch[Index(gap.op)];
  TrackId thread = gap.op == kNoRow ? steps_.thread : kNoTrack;
  TraceTime issue = gap.interval.end;
  DeviceClass rest = DeviceClass::kIdleUnknown;
  if (launch != kNoRow) {
    thread = trace_.api.track[Index(launch)];
    issue = std::clamp(trace_.api.begin[Index(launch)], gap.interval.begin, gap.interval.end);
    if (trace_.api.end[Index(launch)] <= gap.interval.begin) rest = DeviceClass::kIdleUnrecorded;
  }
  const bool one_thread =
      thread != kNoTrack && rest == DeviceClass::kIdleUnknown &&
      std::all_of(missing.begin(), missing.end(),
                  [&](const MissingWork::Period& period) { return period.thread == thread; });
  const auto outside = [&](const Interval& part) {
    const Interval before = Intersect(part, {gap.interval.begin, issue});
    if (!one_thread || before.Empty()) return Emit(out, part, rest);
    SplitHostTime(before, thread, rest, out);
    Emit(out, {before.end, part.end}, rest);
  };
  TraceTime at = gap.interval.begin;
  for (const MissingWork::Period& period : missing) {
    const Interval part = Intersect(period.interval, gap.interval);
    outside({at, part.begin});
    Emit(out, part, DeviceClass::kIdleUnrecorded);
    at = part.end;
  }
  outside({at, gap.interval.end});
}

void IdleSplitter::SplitGap(const Gap& gap, Out& out) const {
  if (gap.op == kNoRow) return SplitStepping(gap.interval, DeviceClass::kIdleUnknown, out);
  const Row launch = trace_.device_ops.launch[Index(gap.op)];
  if (launch == kNoRow) return Emit(out, gap.interval, DeviceClass::kIdleUnknown);
  if (trace_.api.end[Index(launch)] <= gap.interval.begin) {
    const bool hand_over = gap.interval.Length() <= kHandOver;
    return Emit(out, gap.interval,
                hand_over ? DeviceClass::kIdleDependency : DeviceClass::kIdleUnrecorded);
  }
  SplitLate(gap.interval, gap.op, out);
}

void IdleSplitter::SplitLate(const Interval& gap, Row op, Out& out) const {
  const size_t call = Index(trace_.device_ops.launch[Index(op)]);
  const TrackId thread = trace_.api.track[call];
  const DeviceClass rest =
      DrainAt(gap.begin, thread) ? DeviceClass::kIdleSyncDrain : DeviceClass::kIdleLaunchBound;
  const TraceTime issue = std::clamp(trace_.api.begin[call], gap.begin, gap.end);
  Out before_launch;
  SplitHostTime({gap.begin, issue}, thread, rest, before_launch);
  const auto names_no_cause = [](DeviceClass c) {
    return c == DeviceClass::kIdleLaunchBound || c == DeviceClass::kIdleUnknown;
  };
  Duration unexplained;
  for (const auto& [part, why] : before_launch) {
    if (names_no_cause(why)) unexplained += part.Length();
  }
  const bool paused = unexplained >= kLaunchStretch;
  for (const auto& [part, why] : before_launch) {
    Emit(out, part, paused && names_no_cause(why) ? DeviceClass::kIdleUnknown : why);
  }
  // A copy's call may last until the copy is done, so only its staging is the host's part.
  TraceTime issued = trace_.device_ops.kind[Index(op)] == DeviceOpKind::kCopy
                         ? issue + Staging(trace_, op)
                         : trace_.api.end[call];
  issued = std::clamp(issued + kHandOver, issue, gap.end);
  const bool sets_up =
      trace_.device_ops.kind[Index(op)] != DeviceOpKind::kCopy &&
      trace_.api.interval(trace_.device_ops.launch[Index(op)]).Length() >= kSetupCall;
  Emit(out, {issue, issued},
       sets_up && rest == DeviceClass::kIdleLaunchBound ? DeviceClass::kIdleUnknown : rest);
  // Issued before the device ran dry, and still held back: work is missing. Else nobody knows; so
  // with copies to the device, whose call may be slow on the host's side.
  const bool queued = trace_.api.begin[call] < gap.begin &&
                      trace_.device_ops.direction[Index(op)] != CopyDirection::kHostToDevice;
  Emit(out, {issued, gap.end}, queued ? DeviceClass::kIdleUnrecorded : DeviceClass::kIdleUnknown);
}

void IdleSplitter::SplitHostTime(const Interval& part, TrackId thread, DeviceClass rest,
                                 Out& out) const {
  VisitWithin(TimelineOf(thread), part, [&](const Interval& piece, HostActivity activity) {
    if (activity == HostActivity::kNothing && thread != steps_.thread) {
      SplitStepping(piece, rest, out);
    } else {
      Emit(out, piece, ClassOf(activity, piece.Length(), rest));
    }
  });
}

void IdleSplitter::SplitStepping(const Interval& part, DeviceClass rest, Out& out) const {
  if (steps_.thread == kNoTrack) return Emit(out, part, DeviceClass::kIdleUnknown);
  VisitWithin(TimelineOf(steps_.thread), part, [&](const Interval& piece, HostActivity activity) {
    Emit(out, piece, ClassOf(activity, piece.Length(), rest));
  });
}

bool IdleSplitter::DrainAt(TraceTime t, TrackId thread) const {
  const auto waits = [&](TrackId track) {
    bool waiting = false;
    VisitWithin(TimelineOf(track), {t - kRounding - Nanoseconds(1), t},
                [&](const Interval&, HostActivity activity) {
                  waiting |= activity == HostActivity::kSync;
                });
    return waiting;
  };
  return waits(thread) || (steps_.thread != kNoTrack && waits(steps_.thread));
}

}  // namespace trainprof
