// Labels a thread's ranges and calls, merges the two in time order, and flattens them.
#include "analysis/timeline.h"

#include <optional>

namespace trainprof {
namespace {

// Calls visit(Interval, is_api, row) for ranges and API calls of a thread, by begin, outer first.
template <class Visitor>
void VisitThread(const Trace& trace, TrackId thread, Visitor visit) {
  auto [range, range_end] = trace.ranges.rows_of(thread);
  auto [call, call_end] = trace.api.rows_of(thread);
  while (range < range_end || call < call_end) {
    const bool take_range = call == call_end || (range < range_end && trace.ranges.begin[range] <=
                                                                          trace.api.begin[call]);
    const EventColumns& table = take_range ? static_cast<const EventColumns&>(trace.ranges)
                                           : static_cast<const EventColumns&>(trace.api);
    const Row row{take_range ? range++ : call++};
    visit(table.interval(row), !take_range, row);
  }
}

bool IsIoName(std::string_view name) {
  using names_internal::ContainsNoCase;
  return ContainsNoCase(name, "torch/serialization.py") || ContainsNoCase(name, "checkpoint") ||
         name == "torch.save" || ContainsNoCase(name, "json/__init__.py");
}

bool IsGarbageCollection(std::string_view name) {
  using names_internal::ContainsNoCase;
  return ContainsNoCase(name, "built-in method collect") || name == "gc" || name == "gc.collect";
}

std::optional<HostActivity> ActivityOfRange(const Trace& trace, Row row) {
  const size_t i = Index(row);
  const std::string_view name = trace.Text(trace.ranges.name[i]);
  switch (trace.ranges.kind[i]) {
    case RangeKind::kGpuAnnotation:
    case RangeKind::kOther:
      return std::nullopt;
    case RangeKind::kPythonFunction:
      return IsIoName(name) ? HostActivity::kIo : HostActivity::kPython;
    case RangeKind::kUserAnnotation:
    case RangeKind::kCpuOp:
    case RangeKind::kOverhead:
      break;
  }
  if (PhaseOf(trace, row) == Phase::kInputWait) return HostActivity::kInputWait;
  if (trace.ranges.kind[i] == RangeKind::kUserAnnotation) {
    if (IsIoName(name)) return HostActivity::kIo;
    if (IsGarbageCollection(name)) return HostActivity::kPython;
  }
  return HostActivity::kWork;
}

HostActivity ActivityOfCall(const Trace& trace, Row row, bool blocking) {
  if (blocking) return HostActivity::kSync;
  const ApiKind kind = trace.api.kind[Index(row)];
  if (kind == ApiKind::kAllocate || kind == ApiKind::kFree) return HostActivity::kAllocate;
  return HostActivity::kWork;
}

// An operator inside the loader's range is still the loader's wait: plain work and Python do not
// hide what encloses them, unless that is plain too.
bool Hides(HostActivity inner, HostActivity outer) {
  const bool plain = inner == HostActivity::kWork || inner == HostActivity::kPython;
  return !plain || outer == HostActivity::kWork || outer == HostActivity::kPython ||
         outer == HostActivity::kNothing;
}

}  // namespace

Phase PhaseOf(const Trace& trace, Row row) {
  const std::string_view name = trace.Text(trace.ranges.name[Index(row)]);
  switch (trace.ranges.kind[Index(row)]) {
    case RangeKind::kUserAnnotation:
      return PhaseOfUserName(name);
    case RangeKind::kCpuOp:
      return PhaseOfTorchName(name);
    default:
      return Phase::kNone;
  }
}

Timeline<Phase> PhaseTimeline(const Trace& trace, TrackId thread) {
  std::vector<Labelled<Phase>> events;
  VisitThread(trace, thread, [&](const Interval& interval, bool is_api, Row row) {
    if (is_api) return;
    const Phase phase = PhaseOf(trace, row);
    if (phase != Phase::kNone) events.push_back({interval, phase});
  });
  return Flatten(events);
}

Timeline<HostActivity> ActivityTimeline(const Trace& trace, TrackId thread,
                                        const std::vector<bool>& is_blocking) {
  std::vector<Labelled<HostActivity>> events;
  std::vector<Labelled<HostActivity>> open;  // with what each moment inside them really means
  VisitThread(trace, thread, [&](const Interval& interval, bool is_api, Row row) {
    const std::optional<HostActivity> own =
        is_api ? ActivityOfCall(trace, row, is_blocking[Index(row)]) : ActivityOfRange(trace, row);
    if (!own) return;
    while (!open.empty() && open.back().interval.end <= interval.begin) open.pop_back();
    HostActivity activity = *own;
    if (!open.empty() && !Hides(activity, open.back().value)) activity = open.back().value;
    open.push_back({interval, activity});
    events.push_back({interval, activity});
  });
  return Flatten(events);
}

std::vector<bool> FindBlockingCalls(const Trace& trace) {
  std::vector<bool> blocking(trace.api.size(), false);
  for (size_t i = 0; i < trace.api.size(); ++i) {
    blocking[i] = trace.api.kind[i] == ApiKind::kSync;
  }
  const DeviceOpTable& ops = trace.device_ops;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (ops.kind[i] != DeviceOpKind::kCopy || ops.launch[i] == kNoRow) continue;
    if (ops.direction[i] == CopyDirection::kDeviceToDevice) continue;
    const size_t call = Index(ops.launch[i]);
    const bool must_wait =
        IsPageableCopy(trace.Text(ops.name[i])) &&
        (ops.direction[i] == CopyDirection::kDeviceToHost || ops.bytes[i] > kPageableAsyncBytes);
    if (must_wait || trace.api.end[call] + kRounding >= ops.end[i]) blocking[call] = true;
  }
  return blocking;
}

}  // namespace trainprof
