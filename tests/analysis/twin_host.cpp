#include "tests/analysis/twin_host.h"

#include <algorithm>

namespace trainprof {

bool Covers(const EventColumns& table, size_t row, int64_t moment) {
  return table.begin[row].ns <= moment && moment < table.end(row).ns;
}

bool HoldsAStep(const Trace& trace, size_t range) {
  for (size_t step = range + 1; step < trace.ranges.size(); ++step) {
    if (trace.ranges.kind[step] != RangeKind::kUserAnnotation) continue;
    if (!IsStepName(trace.Text(trace.ranges.name[step]))) continue;
    for (Row row = trace.ranges.parent[step]; row != kNoRow;
         row = trace.ranges.parent[Index(row)]) {
      if (Index(row) == range) return true;
    }
  }
  return false;
}

namespace {

Phase PhaseOfRow(const Trace& trace, size_t row) {
  const RangeTable& ranges = trace.ranges;
  const std::string_view name = trace.Text(ranges.name[row]);
  if (ranges.kind[row] == RangeKind::kCpuOp) return PhaseOfTorchName(name);
  if (ranges.kind[row] == RangeKind::kUserAnnotation) return PhaseOfUserName(name);
  const bool is_module =
      ranges.kind[row] == RangeKind::kPythonFunction && name.starts_with("nn.Module: ");
  return is_module ? Phase::kForward : Phase::kNone;
}

// Whether it lies between torch's loader and the backward pass that comes before the loader is asked again,
// in none of the user's ranges that began there, and nothing names the forward pass.
bool IsForwardBetween(const Trace& trace, TrackId stepping, int64_t moment) {
  const RangeTable& ranges = trace.ranges;
  int64_t from = INT64_MIN;
  int64_t asked = INT64_MAX;
  int64_t backward = INT64_MAX;
  const auto is_loader = [&](size_t row) {
    return ranges.track[row] == stepping && PhaseOfRow(trace, row) == Phase::kInputWait &&
           PhaseOfTorchName(trace.Text(ranges.name[row])) == Phase::kInputWait &&
           !HoldsAStep(trace, row);
  };
  for (size_t row = 0; row < ranges.size(); ++row) {
    if (ranges.track[row] == stepping && PhaseOfRow(trace, row) == Phase::kForward &&
        ranges.begin[row] < ranges.end(row)) {
      return false;
    }
    if (!is_loader(row) || ranges.begin[row] == ranges.end(row)) continue;
    if (ranges.end(row).ns <= moment) from = std::max(from, ranges.end(row).ns);
    if (ranges.begin[row].ns > moment) asked = std::min(asked, ranges.begin[row].ns);
    if (Covers(ranges, row, moment)) return false;
  }
  if (from == INT64_MIN) return false;
  for (size_t row = 0; row < ranges.size(); ++row) {
    const int64_t begin = ranges.begin[row].ns;
    const bool is_own = ranges.track[row] == stepping;
    if (is_own && begin >= from && Covers(ranges, row, moment) &&
        ranges.kind[row] == RangeKind::kUserAnnotation && PhaseOfRow(trace, row) == Phase::kNone &&
        !IsStepName(trace.Text(ranges.name[row]))) {
      return false;
    }
    if (!is_own && ranges.kind[row] != RangeKind::kCpuOp) continue;
    if (begin >= from && PhaseOfRow(trace, row) == Phase::kBackward)
      backward = std::min(backward, begin);
  }
  return moment < backward && backward != INT64_MAX && backward <= asked;
}

}  // namespace

HostClass HostClassAt(const Trace& trace, TrackId stepping, int64_t moment) {
  constexpr HostClass kClassOf[] = {
      HostClass::kOther,    HostClass::kInputWait, HostClass::kCopy,    HostClass::kForward,
      HostClass::kBackward, HostClass::kOptimizer, HostClass::kRankWait};
  Phase phase = Phase::kNone;
  int64_t begin = INT64_MIN;
  int64_t end = INT64_MAX;
  bool autograd = false;
  const RangeTable& ranges = trace.ranges;
  for (size_t row = 0; row < ranges.size(); ++row) {
    if (!Covers(ranges, row, moment)) continue;
    const bool is_op = ranges.kind[row] == RangeKind::kCpuOp;
    const Phase own = PhaseOfRow(trace, row);
    if (own == Phase::kNone || (own == Phase::kInputWait && HoldsAStep(trace, row))) continue;
    if (ranges.track[row] != stepping) {
      autograd = autograd || (is_op && own == Phase::kBackward);
    } else if (ranges.begin[row].ns > begin ||
               (ranges.begin[row].ns == begin && ranges.end(row).ns <= end)) {
      phase = own;
      begin = ranges.begin[row].ns;
      end = ranges.end(row).ns;
    }
  }
  if (phase != Phase::kNone) return kClassOf[static_cast<size_t>(phase)];
  for (size_t op = 0; op < trace.device_ops.size(); ++op) {
    const Row launch = trace.device_ops.launch[op];
    if (launch != kNoRow && trace.device_ops.direction[op] == CopyDirection::kHostToDevice &&
        trace.api.track[Index(launch)] == stepping && Covers(trace.api, Index(launch), moment)) {
      return HostClass::kCopy;
    }
  }
  if (autograd) return HostClass::kBackward;
  return IsForwardBetween(trace, stepping, moment) ? HostClass::kForward : HostClass::kOther;
}

}  // namespace trainprof
