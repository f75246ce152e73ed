#include "tests/analysis/twin_activity.h"

#include "tests/analysis/twin_host.h"

namespace trainprof {
namespace {

// A synchronisation call, or one that issued a copy (not device-to-device) and had to wait for it
// (pageable memory, from the device or more than kPageableAsyncBytes) or did not end before it; an asynchronous one of
// memory that is known, where that took more than 20 us from its begin.
bool IsBlocking(const Trace& trace, size_t call) {
  if (trace.api.kind[call] == ApiKind::kSync) return true;
  const std::string_view name = trace.Text(trace.api.name[call]);
  const bool is_async = name.find("Async") != name.npos;
  const DeviceOpTable& ops = trace.device_ops;
  for (size_t op = 0; op < ops.size(); ++op) {
    if (Index(ops.launch[op]) != call || ops.kind[op] != DeviceOpKind::kCopy) continue;
    if (ops.direction[op] == CopyDirection::kDeviceToDevice) continue;
    const bool is_known = ops.Uses(op, MemoryKind::kPageable) || ops.Uses(op, MemoryKind::kPinned);
    const bool took_long = ops.end(op).ns > trace.api.begin[call].ns + 20'000;
    if (trace.api.end(call).ns + kRounding.ns >= ops.end(op).ns) {
      if (took_long || !is_async || !is_known) return true;
    }
    if (!ops.Uses(op, MemoryKind::kPageable)) continue;
    if (ops.direction[op] == CopyDirection::kDeviceToHost) return true;
    if (ops.bytes[op] > kPageableAsyncBytes) return true;
  }
  return false;
}

// Names of saving and of garbage collection that random_trace.cpp draws.
bool SavesOrLogs(std::string_view name) {
  return name == "torch.save" || name == "save_checkpoint" ||
         name.starts_with("torch/serialization.py");
}

// What a range means for its thread; kNothing: nothing.
HostActivity MeaningOf(const Trace& trace, size_t range) {
  const std::string_view name = trace.Text(trace.ranges.name[range]);
  switch (trace.ranges.kind[range]) {
    case RangeKind::kUserAnnotation:
      if (PhaseOfUserName(name) == Phase::kInputWait) {
        return HoldsAStep(trace, range) ? HostActivity::kOwnRange : HostActivity::kInputWait;
      }
      if (PhaseOfUserName(name) == Phase::kRankWait) return HostActivity::kRankWait;
      if (SavesOrLogs(name)) return HostActivity::kIo;
      if (IsStepName(name)) return HostActivity::kNothing;
      return name == "gc.collect" ? HostActivity::kPython : HostActivity::kOwnRange;
    case RangeKind::kCpuOp:
      if (PhaseOfTorchName(name) == Phase::kRankWait) return HostActivity::kRankWait;
      return PhaseOfTorchName(name) == Phase::kInputWait && !HoldsAStep(trace, range)
                 ? HostActivity::kInputWait
                 : HostActivity::kWork;
    case RangeKind::kPythonFunction:
      return SavesOrLogs(name) ? HostActivity::kIo : HostActivity::kPython;
    case RangeKind::kOverhead:
      return HostActivity::kWork;
    default:
      return HostActivity::kNothing;
  }
}

}  // namespace

namespace {

HostMoment CoveringMoment(const Trace& trace, TrackId thread, int64_t moment, bool plain_only) {
  struct Best {
    int64_t begin = INT64_MIN;
    int64_t end = INT64_MAX;
    HostMoment moment;
    void Offer(int64_t b, int64_t e, HostMoment m) {
      if (b < begin || (b == begin && e > end)) return;
      *this = {b, e, m};
    }
  };
  Best plain;
  Best cause;
  bool waits_for_input = false;
  const auto offer = [&](const EventColumns& table, size_t row, HostActivity meaning, bool named) {
    if (meaning == HostActivity::kNothing) return;
    waits_for_input |= meaning == HostActivity::kInputWait;
    const bool is_plain = meaning == HostActivity::kWork || meaning == HostActivity::kPython ||
                          meaning == HostActivity::kOwnRange;
    const Row of = named && is_plain && meaning != HostActivity::kPython
                       ? Row{static_cast<uint32_t>(row)}
                       : kNoRow;
    (is_plain ? plain : cause).Offer(table.begin[row].ns, table.end(row).ns, {meaning, of});
  };
  for (size_t row = 0; row < trace.ranges.size(); ++row) {
    if (trace.ranges.track[row] == thread && Covers(trace.ranges, row, moment)) {
      offer(trace.ranges, row, MeaningOf(trace, row), true);
    }
  }
  for (size_t row = 0; row < trace.api.size(); ++row) {
    if (trace.api.track[row] != thread || !Covers(trace.api, row, moment)) continue;
    const ApiKind kind = trace.api.kind[row];
    const bool allocates = kind == ApiKind::kAllocate || kind == ApiKind::kFree;
    const bool sets_up = (kind == ApiKind::kOther || kind == ApiKind::kLaunch) &&
                         trace.api.end(row).ns - trace.api.begin[row].ns >= kSetupCall.ns;
    offer(trace.api, row,
          IsBlocking(trace, row) ? HostActivity::kSync
          : allocates            ? HostActivity::kAllocate
          : sets_up              ? HostActivity::kSetup
                                 : HostActivity::kWork,
          false);
  }
  if (plain_only) return plain.moment;
  if (waits_for_input) return {HostActivity::kInputWait, kNoRow};
  return cause.moment.activity != HostActivity::kNothing ? cause.moment : plain.moment;
}

// Whether nothing plain covers the moment, but less than kShortPause lies between work before and behind it.
bool IsBetweenWork(const Trace& trace, TrackId thread, int64_t moment) {
  int64_t before = INT64_MIN;
  int64_t behind = INT64_MAX;
  const auto look = [&](const EventColumns& table) {
    for (size_t row = 0; row < table.size(); ++row) {
      if (table.track[row] != thread || table.end(row) == table.begin[row]) continue;
      for (const int64_t at : {table.begin[row].ns, table.end(row).ns - 1}) {
        if (CoveringMoment(trace, thread, at, true).activity == HostActivity::kNothing) continue;
        if (at < moment) before = std::max(before, at);
        if (at > moment) behind = std::min(behind, at);
      }
    }
  };
  look(trace.ranges);
  look(trace.api);
  if (before == INT64_MIN || behind == INT64_MAX || behind - (before + 1) >= kShortPause.ns) {
    return false;
  }
  const auto works = [&](int64_t at) {
    return CoveringMoment(trace, thread, at, true).activity == HostActivity::kWork;
  };
  return works(before) && works(behind);
}

}  // namespace

// In a wait for input nothing else counts. Else the innermost covering event that says why the thread does
// not work; where there is none, the innermost of the others. Events that begin and end together: calls are
// inside ranges, and the later row is inside. A short pause between work and work is work.
HostMoment MomentOf(const Trace& trace, TrackId thread, int64_t moment) {
  const HostMoment found = CoveringMoment(trace, thread, moment, false);
  if (found.activity == HostActivity::kNothing && IsBetweenWork(trace, thread, moment)) {
    return {HostActivity::kWork, kNoRow};
  }
  return found;
}

}  // namespace trainprof
