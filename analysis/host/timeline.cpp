// Labels a thread's ranges and calls, merges the two in time order, and flattens them.
#include "analysis/host/timeline.h"

#include <optional>
#include <utility>

#include "trace/base/cancel.h"
#include "trace/base/large_columns.h"

namespace trainprof {
namespace {

std::optional<HostActivity> ActivityOfRange(const Trace& trace, Row row, bool waits_for_input) {
  const size_t i = Index(row);
  const NameFacts name = trace.Facts(trace.ranges.name[i]);
  switch (trace.ranges.kind[i]) {
    case RangeKind::kGpuAnnotation:
    case RangeKind::kDeviceRow:
    case RangeKind::kOther:
      return std::nullopt;
    case RangeKind::kPythonFunction:
      return name.is_io ? HostActivity::kIo : HostActivity::kPython;
    case RangeKind::kUserAnnotation:
    case RangeKind::kCpuOp:
    case RangeKind::kOverhead:
      break;
  }
  if (waits_for_input) return HostActivity::kInputWait;
  const bool is_users = trace.ranges.kind[i] == RangeKind::kUserAnnotation;
  const bool is_op = trace.ranges.kind[i] == RangeKind::kCpuOp;
  if (is_users && name.user_phase == Phase::kRankWait) return HostActivity::kRankWait;
  if (is_op && name.torch_phase == Phase::kRankWait) return HostActivity::kRankWait;
  if (!is_users) return HostActivity::kWork;
  if (name.is_io) return HostActivity::kIo;
  if (name.is_garbage_collection) return HostActivity::kPython;
  // A step's range covers all, also what nothing explains: it is no evidence of work.
  if (name.is_step) return std::nullopt;
  return HostActivity::kOwnRange;
}

HostActivity ActivityOfCall(const Trace& trace, Row row, bool blocking) {
  if (blocking) return HostActivity::kSync;
  const ApiKind kind = trace.api.kind[Index(row)];
  if (kind == ApiKind::kAllocate || kind == ApiKind::kFree) return HostActivity::kAllocate;
  const bool may_set_up = kind == ApiKind::kOther || kind == ApiKind::kLaunch;
  const bool sets_up = may_set_up && trace.api.interval(row).Length() >= kSetupCall;
  return sets_up ? HostActivity::kSetup : HostActivity::kWork;
}

// Getting on with the step, as opposed to a reason not to.
bool IsPlain(HostActivity activity) {
  return activity == HostActivity::kWork || activity == HostActivity::kOwnRange ||
         activity == HostActivity::kPython;
}

// `top` where it covers, else `bottom`. O(n), in the room of `bottom`: from the back, so that nothing is overwritten
// before it was read, since each segment of `top` splits at most one.
Timeline<HostMoment> Overlay(Timeline<HostMoment> bottom, const Timeline<HostMoment>& top) {
  if (top.empty()) return bottom;
  size_t next = bottom.size();  // of `bottom`: what is below is not read yet
  ReserveLarge(bottom, next + 2 * top.size());
  bottom.resize(next + 2 * top.size());
  size_t out = bottom.size();  // what is behind is written
  const auto emit = [&](const Interval& interval, const HostMoment& moment) {
    if (interval.Empty()) return;
    if (out < bottom.size() && bottom[out].interval.begin == interval.end &&
        bottom[out].value == moment) {
      bottom[out].interval.begin = interval.begin;
    } else {
      bottom[--out] = {interval, moment};
    }
  };
  const auto emit_bottom = [&](const Interval& within) {
    for (; next > 0 && within.begin < bottom[next - 1].interval.end; --next) {
      const Segment<HostMoment> segment = bottom[next - 1];
      emit(Intersect(segment.interval, within), segment.value);
      if (segment.interval.begin < within.begin) return;
    }
  };
  TraceTime at{INT64_MAX};
  for (size_t i = top.size(); i-- > 0;) {
    CancelPoint(i);
    emit_bottom({top[i].interval.end, at});
    emit(top[i].interval, top[i].value);
    at = top[i].interval.begin;
  }
  emit_bottom({TraceTime{INT64_MIN}, at});
  bottom.erase(bottom.begin(), bottom.begin() + static_cast<ptrdiff_t>(out));
  return bottom;
}

// A copy that ends so soon behind its call's begin found its stream empty: half of those begin within 7 to 13 us on an
// idle one (latencies.h).
constexpr Duration kDoneAtOnce = Microseconds(20);

}  // namespace

std::vector<bool> FindInputWaits(const Trace& trace, TrackId thread) {
  const RangeTable& ranges = trace.ranges;
  const auto [first, last] = ranges.rows_of(thread);
  std::vector<bool> waits(last - first, false);
  bool any = false;
  for (uint32_t i = first; i < last; ++i) {
    CancelPoint(i);
    if (PhaseOf(trace, Row{i}) == Phase::kInputWait) waits[i - first] = any = true;
    const bool may_be_step = any && ranges.kind[i] == RangeKind::kUserAnnotation;
    if (!may_be_step || !trace.Facts(ranges.name[i]).is_step) continue;
    for (Row row = ranges.parent[i]; row != kNoRow; row = ranges.parent[Index(row)]) {
      waits[Index(row) - first] = false;
    }
  }
  return waits;
}

Timeline<Phase> PhaseTimeline(const Trace& trace, TrackId thread) {
  const std::vector<bool> waits = FindInputWaits(trace, thread);
  const auto [first, last] = trace.ranges.rows_of(thread);
  std::vector<Labelled<Phase>> events;
  for (uint32_t row = first; row < last; ++row) {
    CancelPoint(row);
    const Phase phase = PhaseOf(trace, Row{row});
    const bool holds = phase != Phase::kInputWait || waits[row - first];
    if (phase != Phase::kNone && holds) events.push_back({trace.ranges.interval(Row{row}), phase});
  }
  return Flatten(events);
}

Timeline<HostMoment> ActivityTimeline(const Trace& trace, TrackId thread,
                                      const std::vector<bool>& is_blocking) {
  const std::vector<bool> waits = FindInputWaits(trace, thread);
  const auto [first_range, last_range] = trace.ranges.rows_of(thread);
  const auto [first_call, last_call] = trace.api.rows_of(thread);
  const uint32_t first = first_range;
  Timeline<HostMoment> plain;  // many: flattened as they come
  ReserveLarge(plain, size_t{last_range - first_range} + (last_call - first_call));
  const auto append = [&](const Interval& piece, const HostMoment& moment) {
    if (!plain.empty()) {
      const Interval pause{plain.back().interval.end, piece.begin};
      const bool gets_on = plain.back().value.activity == HostActivity::kWork &&
                           moment.activity == HostActivity::kWork;
      if (gets_on && !pause.Empty() && pause.Length() < kShortPause) {
        Append(plain, pause, {HostActivity::kWork});
      }
    }
    Append(plain, piece, moment);
  };
  Flattener<HostMoment, decltype(append)> plain_events(append);
  std::vector<Labelled<HostMoment>> reasons;
  std::vector<Labelled<HostMoment>> input;
  VisitThread(trace, thread, [&](const Interval& interval, bool is_api, Row row) {
    const std::optional<HostActivity> activity =
        is_api ? ActivityOfCall(trace, row, is_blocking[Index(row)])
               : ActivityOfRange(trace, row, waits[Index(row) - first]);
    if (!activity) return;
    // What has no name is one segment with what stands beside it.
    const bool is_named =
        *activity == HostActivity::kOwnRange ||
        (*activity == HostActivity::kWork && !is_api && interval.Length() >= kOperatorStretch);
    const HostMoment moment{*activity, is_named ? row : kNoRow};
    if (IsPlain(*activity)) return plain_events.Add(interval, moment);
    (*activity == HostActivity::kInputWait ? input : reasons).push_back({interval, moment});
  });
  plain_events.Finish();
  Timeline<HostMoment> all = Overlay(std::move(plain), Overlay(Flatten(reasons), Flatten(input)));
  for (Segment<HostMoment>& segment : all) {
    const bool is_short = segment.interval.Length() < kOperatorStretch;
    if (segment.value.activity == HostActivity::kWork && is_short) segment.value.range = kNoRow;
  }
  return all;
}

std::vector<bool> FindBlockingCalls(const Trace& trace) {
  const ApiTable& api = trace.api;
  std::vector<bool> blocking(api.size(), false);
  std::vector<std::optional<bool>> is_ordered(trace.strings.size());  // by name
  for (size_t i = 0; i < api.size(); ++i) {
    CancelPoint(i);
    blocking[i] = api.kind[i] == ApiKind::kSync;
  }
  const DeviceOpTable& ops = trace.device_ops;
  for (size_t i = 0; i < ops.size(); ++i) {
    CancelPoint(i);
    if (ops.kind[i] != DeviceOpKind::kCopy || ops.launch[i] == kNoRow) continue;
    if (ops.direction[i] == CopyDirection::kDeviceToDevice) continue;
    const size_t call = Index(ops.launch[i]);
    const bool is_pageable = ops.Uses(i, MemoryKind::kPageable);
    const bool must_wait = is_pageable && (ops.direction[i] == CopyDirection::kDeviceToHost ||
                                           ops.bytes[i] > kPageableAsyncBytes);
    if (must_wait) {
      blocking[call] = true;
    } else if (api.end(call) + kRounding >= ops.end(i)) {
      std::optional<bool>& ordered = is_ordered[Index(api.name[call])];
      if (!ordered) ordered = HostWaitOf(trace.Text(api.name[call])) == HostWait::kNone;
      const bool need_not_wait = *ordered && (is_pageable || ops.Uses(i, MemoryKind::kPinned));
      if (!need_not_wait || ops.end(i) - api.begin[call] > kDoneAtOnce) blocking[call] = true;
    }
  }
  return blocking;
}

}  // namespace trainprof
