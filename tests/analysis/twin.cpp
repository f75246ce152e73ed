// See twin.h. Plain loops on purpose: each function is the sentence of the law that stands above
// it.
#include "tests/analysis/twin.h"

#include <algorithm>

#include "tests/analysis/twin_host.h"
#include "tests/analysis/twin_missing.h"
#include "tests/analysis/twin_steps.h"
#include "trace/base/kernel_names.h"

namespace trainprof {
namespace {

struct Piece {
  int64_t begin = 0;
  int64_t end = 0;
  HostActivity activity = HostActivity::kNothing;
};

struct Verdict {
  int64_t begin = 0;
  int64_t end = 0;
  DeviceClass why{};
};

class Twin {
 public:
  Twin(const Trace& trace, TrackId stepping, const std::vector<Interval>& step_ranges,
       bool on_device);
  TwinAccounts Account() const;

 private:
  // Preparation.
  void FindWindows(const std::vector<Interval>& step_ranges, bool on_device);
  void CutIntoCells();
  bool IsBlocking(size_t call) const;
  HostActivity ActivityAt(TrackId thread, int64_t moment) const;

  // One device.
  bool OnDevice(size_t op, DeviceId device) const;
  bool BusyAt(DeviceId device, int64_t moment) const;
  DeviceClass BusyClassAt(DeviceId device, int64_t moment) const;
  size_t OperationAfter(DeviceId device, int64_t moment) const;  // kNone when none
  void ExplainGap(DeviceId device, int64_t g0, int64_t g1, std::vector<Verdict>& out) const;
  void ExplainAround(size_t op, int64_t g0, int64_t g1, const std::vector<Unseen>& unseen,
                     std::vector<Verdict>& out) const;
  void ExplainHost(int64_t begin, int64_t end, TrackId thread, DeviceClass rest,
                   std::vector<Verdict>& out) const;
  std::vector<Piece> PiecesOf(TrackId thread, int64_t begin, int64_t end) const;
  bool SyncBefore(TrackId thread, int64_t moment) const;
  TwinDevice AccountDevice(DeviceId device) const;

  static constexpr size_t kNone = SIZE_MAX;
  const Trace& trace_;
  TrackId stepping_;
  std::vector<Interval> window_;  // may touch, never overlap
  std::vector<Interval> device_window_;
  std::vector<int64_t> cuts_;                        // cell i is [cuts_[i], cuts_[i + 1])
  std::vector<std::vector<HostActivity>> activity_;  // by track, by cell
};

Twin::Twin(const Trace& trace, TrackId stepping, const std::vector<Interval>& step_ranges,
           bool on_device)
    : trace_(trace), stepping_(stepping) {
  FindWindows(step_ranges, on_device);
  CutIntoCells();
  activity_.resize(trace_.tracks.size());
  for (size_t t = 0; t < trace_.tracks.size(); ++t) {
    for (size_t c = 0; c + 1 < cuts_.size(); ++c) {
      activity_[t].push_back(ActivityAt(TrackId{static_cast<uint32_t>(t)}, cuts_[c]));
    }
  }
}

// From the begin of a step to the begin of the next; the last ends with its range.
void Twin::FindWindows(const std::vector<Interval>& step_ranges, bool on_device) {
  for (size_t s = 0; s < step_ranges.size(); ++s) {
    const bool last = s + 1 == step_ranges.size();
    window_.push_back({step_ranges[s].begin, last ? step_ranges[s].end : step_ranges[s + 1].begin});
  }
  device_window_ = on_device ? window_ : DeviceTimesByBruteForce(trace_, window_);
  if (!step_ranges.empty()) return;
  window_ = {trace_.extent};
  device_window_ = {DeviceExtentByBruteForce(trace_)};
}

void Twin::CutIntoCells() {
  const EventColumns* tables[] = {&trace_.ranges, &trace_.api, &trace_.device_ops};
  for (const EventColumns* table : tables) {
    for (size_t row = 0; row < table->size(); ++row) {
      cuts_.push_back(table->begin[row].ns);
      cuts_.push_back(table->end[row].ns);
    }
  }
  for (const std::vector<Interval>* window : {&window_, &device_window_}) {
    for (const Interval& part : *window) {
      cuts_.push_back(part.begin.ns);
      cuts_.push_back(part.end.ns);
    }
  }
  std::sort(cuts_.begin(), cuts_.end());
  cuts_.erase(std::unique(cuts_.begin(), cuts_.end()), cuts_.end());
}

// A synchronisation call, or one that issued a copy (not device-to-device) and had to wait for it
// (pageable memory, from the device or more than kPageableAsyncBytes) or did not end before it.
bool Twin::IsBlocking(size_t call) const {
  if (trace_.api.kind[call] == ApiKind::kSync) return true;
  const DeviceOpTable& ops = trace_.device_ops;
  for (size_t op = 0; op < ops.size(); ++op) {
    if (Index(ops.launch[op]) != call || ops.kind[op] != DeviceOpKind::kCopy) continue;
    if (ops.direction[op] == CopyDirection::kDeviceToDevice) continue;
    if (trace_.api.end[call].ns + kRounding.ns >= ops.end[op].ns) return true;
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
        return HoldsAStep(trace, range) ? HostActivity::kWork : HostActivity::kInputWait;
      }
      if (SavesOrLogs(name)) return HostActivity::kIo;
      if (IsStepName(name)) return HostActivity::kNothing;
      return name == "gc.collect" ? HostActivity::kPython : HostActivity::kWork;
    case RangeKind::kCpuOp:
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

// The innermost covering event that says why the thread does not work; where there is none, the
// innermost of the others. Events that begin and end together: calls are inside ranges, and the
// later row is inside.
HostActivity Twin::ActivityAt(TrackId thread, int64_t moment) const {
  struct Best {
    int64_t begin = INT64_MIN;
    int64_t end = INT64_MAX;
    HostActivity activity = HostActivity::kNothing;
    void Offer(int64_t b, int64_t e, HostActivity a) {
      if (b < begin || (b == begin && e > end)) return;
      *this = {b, e, a};
    }
  };
  Best plain;
  Best cause;
  const auto offer = [&](const EventColumns& table, size_t row, HostActivity meaning) {
    if (meaning == HostActivity::kNothing) return;
    const bool is_plain = meaning == HostActivity::kWork || meaning == HostActivity::kPython;
    (is_plain ? plain : cause).Offer(table.begin[row].ns, table.end[row].ns, meaning);
  };
  for (size_t row = 0; row < trace_.ranges.size(); ++row) {
    if (trace_.ranges.track[row] == thread && Covers(trace_.ranges, row, moment)) {
      offer(trace_.ranges, row, MeaningOf(trace_, row));
    }
  }
  for (size_t row = 0; row < trace_.api.size(); ++row) {
    if (trace_.api.track[row] != thread || !Covers(trace_.api, row, moment)) continue;
    const ApiKind kind = trace_.api.kind[row];
    const bool allocates = kind == ApiKind::kAllocate || kind == ApiKind::kFree;
    const bool sets_up = kind == ApiKind::kOther &&
                         trace_.api.end[row].ns - trace_.api.begin[row].ns >= kSetupCall.ns;
    offer(trace_.api, row,
          IsBlocking(row) ? HostActivity::kSync
          : allocates     ? HostActivity::kAllocate
          : sets_up       ? HostActivity::kSetup
                          : HostActivity::kWork);
  }
  return cause.activity != HostActivity::kNothing ? cause.activity : plain.activity;
}

bool Twin::OnDevice(size_t op, DeviceId device) const {
  return trace_.tracks[Index(trace_.device_ops.track[op])].device == device;
}

bool Twin::BusyAt(DeviceId device, int64_t moment) const {
  for (size_t op = 0; op < trace_.device_ops.size(); ++op) {
    if (OnDevice(op, device) && Covers(trace_.device_ops, op, moment)) return true;
  }
  return false;
}

DeviceClass Twin::BusyClassAt(DeviceId device, int64_t moment) const {
  bool communicates = false;
  for (size_t op = 0; op < trace_.device_ops.size(); ++op) {
    if (!OnDevice(op, device) || !Covers(trace_.device_ops, op, moment)) continue;
    if (trace_.device_ops.kind[op] != DeviceOpKind::kKernel) continue;
    if (trace_.device_ops.collective[op] == kNoCollective &&
        !IsCommunicationKernel(trace_.Text(trace_.device_ops.name[op]))) {
      return DeviceClass::kCompute;
    }
    communicates = true;
  }
  return communicates ? DeviceClass::kExposedCommunication : DeviceClass::kExposedCopy;
}

// The operation that ends a gap at `moment`: one that takes time and begins there; of several, the
// first whose launch is known.
size_t Twin::OperationAfter(DeviceId device, int64_t moment) const {
  const DeviceOpTable& ops = trace_.device_ops;
  size_t found = kNone;
  for (size_t op = 0; op < ops.size(); ++op) {
    if (!OnDevice(op, device) || ops.begin[op].ns != moment || ops.end[op] == ops.begin[op]) {
      continue;
    }
    if (ops.launch[op] != kNoRow) return op;
    if (found == kNone) found = op;
  }
  return found;
}

// Maximal stretches of one activity within [begin, end).
std::vector<Piece> Twin::PiecesOf(TrackId thread, int64_t begin, int64_t end) const {
  std::vector<Piece> pieces;
  for (size_t c = 0; c + 1 < cuts_.size(); ++c) {
    const int64_t from = std::max(begin, cuts_[c]);
    const int64_t to = std::min(end, cuts_[c + 1]);
    if (from >= to) continue;
    const HostActivity activity =
        thread == kNoTrack ? HostActivity::kNothing : activity_[Index(thread)][c];
    if (!pieces.empty() && pieces.back().activity == activity) {
      pieces.back().end = to;
    } else {
      pieces.push_back({from, to, activity});
    }
  }
  return pieces;
}

DeviceClass ClassOf(const Piece& piece, DeviceClass rest) {
  const int64_t length = piece.end - piece.begin;
  switch (piece.activity) {
    case HostActivity::kInputWait:
      return DeviceClass::kIdleInputWait;
    case HostActivity::kAllocate:
      return DeviceClass::kIdleAllocation;
    case HostActivity::kIo:
      return DeviceClass::kIdleIo;
    case HostActivity::kSetup:
      return DeviceClass::kIdleUnknown;
    case HostActivity::kPython:
      return length >= kPythonStretch.ns ? DeviceClass::kIdlePython : rest;
    case HostActivity::kNothing:
      return length >= kSilentStretch.ns ? DeviceClass::kIdleUnknown : rest;
    case HostActivity::kSync:
      return length <= kSyncReturn.ns ? rest : DeviceClass::kIdleUnknown;
    case HostActivity::kWork:
      return rest;
  }
  return DeviceClass::kIdleUnknown;
}

// Each stretch by the thread's activity; where it has none, by the stepping thread's.
void Twin::ExplainHost(int64_t begin, int64_t end, TrackId thread, DeviceClass rest,
                       std::vector<Verdict>& out) const {
  for (const Piece& piece : PiecesOf(thread, begin, end)) {
    if (piece.activity != HostActivity::kNothing || thread == stepping_) {
      out.push_back({piece.begin, piece.end, ClassOf(piece, rest)});
      continue;
    }
    for (const Piece& inner : PiecesOf(stepping_, piece.begin, piece.end)) {
      out.push_back({inner.begin, inner.end, ClassOf(inner, rest)});
    }
  }
}

// Was the thread in a blocking call just before `moment`: did one begin before it and end no
// earlier than the rounding before it?
bool Twin::SyncBefore(TrackId thread, int64_t moment) const {
  if (thread == kNoTrack) return false;
  for (size_t c = 0; c + 1 < cuts_.size(); ++c) {
    if (activity_[Index(thread)][c] == HostActivity::kSync && cuts_[c] < moment &&
        cuts_[c + 1] + kRounding.ns >= moment) {
      return true;
    }
  }
  return false;
}

// A gap that some of it meets: unrecorded there. Before the call that ended the gap the reasons
// that its thread had, if all of it is that thread's; else unknown, or unrecorded where that call
// had returned before.
void Twin::ExplainAround(size_t op, int64_t g0, int64_t g1, const std::vector<Unseen>& unseen,
                         std::vector<Verdict>& out) const {
  const Row launch = op == kNone ? kNoRow : trace_.device_ops.launch[op];
  bool queued = false;
  TrackId thread = op == kNone ? stepping_ : kNoTrack;
  int64_t issue = g1;
  if (launch != kNoRow) {
    thread = trace_.api.track[Index(launch)];
    issue = std::clamp(trace_.api.begin[Index(launch)].ns, g0, g1);
    queued = trace_.api.end[Index(launch)].ns <= g0;
  }
  for (const Unseen& part : unseen) {
    if (part.thread != thread) thread = kNoTrack;
  }
  const DeviceClass rest = queued ? DeviceClass::kIdleUnrecorded : DeviceClass::kIdleUnknown;
  int64_t at = g0;
  const auto explain_until = [&](int64_t end) {
    const int64_t split = std::clamp(issue, at, std::max(at, end));
    if (thread != kNoTrack && !queued) {
      ExplainHost(at, split, thread, DeviceClass::kIdleUnknown, out);
    } else if (at < split) {
      out.push_back({at, split, rest});
    }
    if (split < end) out.push_back({split, end, rest});
  };
  for (const Unseen& part : unseen) {
    explain_until(part.begin);
    const int64_t from = std::max(part.begin, g0);
    at = std::min(part.end, g1);
    out.push_back({from, at, DeviceClass::kIdleUnrecorded});
  }
  explain_until(g1);
}

void Twin::ExplainGap(DeviceId device, int64_t g0, int64_t g1, std::vector<Verdict>& out) const {
  const DeviceOpTable& ops = trace_.device_ops;
  const size_t op = OperationAfter(device, g1);
  std::vector<Unseen> unseen = UnseenOn(trace_, device);
  std::erase_if(unseen, [&](const Unseen& u) { return u.end <= g0 || u.begin >= g1; });
  if (!unseen.empty()) return ExplainAround(op, g0, g1, unseen, out);
  if (op == kNone) return ExplainHost(g0, g1, stepping_, DeviceClass::kIdleUnknown, out);
  if (ops.launch[op] == kNoRow) return out.push_back({g0, g1, DeviceClass::kIdleUnknown});
  const size_t launch = Index(ops.launch[op]);
  const int64_t launch_begin = trace_.api.begin[launch].ns;
  const int64_t launch_end = trace_.api.end[launch].ns;
  if (launch_end <= g0) {
    out.push_back(
        {g0, g1,
         g1 - g0 <= kHandOver.ns ? DeviceClass::kIdleDependency : DeviceClass::kIdleUnrecorded});
    return;
  }
  const TrackId thread = trace_.api.track[launch];
  const DeviceClass rest = SyncBefore(thread, g0) || SyncBefore(stepping_, g0)
                               ? DeviceClass::kIdleSyncDrain
                               : DeviceClass::kIdleLaunchBound;
  const int64_t issue = std::clamp(launch_begin, g0, g1);
  std::vector<Verdict> before;
  ExplainHost(g0, issue, thread, rest, before);
  const auto is_unexplained = [](const Verdict& part) {
    return part.why == DeviceClass::kIdleLaunchBound || part.why == DeviceClass::kIdleUnknown;
  };
  int64_t unexplained = 0;
  for (const Verdict& part : before) {
    if (is_unexplained(part)) unexplained += part.end - part.begin;
  }
  for (Verdict& part : before) {
    if (is_unexplained(part) && unexplained >= kLaunchStretch.ns) {
      part.why = DeviceClass::kIdleUnknown;
    }
    out.push_back(part);
  }
  const bool to_device = ops.direction[op] == CopyDirection::kHostToDevice;
  int64_t staging = 0;
  if (to_device) {
    staging = std::min(ops.bytes[op], kStagingBytes) / kStagingBytesPerMicrosecond * 1000;
  }
  const bool is_copy = ops.kind[op] == DeviceOpKind::kCopy;
  const int64_t ready = (is_copy ? issue + staging : launch_end) + kHandOver.ns;
  const int64_t issued = std::clamp(ready, issue, g1);
  const bool loads = !is_copy && launch_end - launch_begin >= kSetupCall.ns &&
                     rest == DeviceClass::kIdleLaunchBound;
  out.push_back({issue, issued, loads ? DeviceClass::kIdleUnknown : rest});
  out.push_back(
      {issued, g1,
       launch_begin < g0 && !to_device ? DeviceClass::kIdleUnrecorded : DeviceClass::kIdleUnknown});
}

// How much of [begin, end) is in that window.
int64_t Within(const std::vector<Interval>& window, int64_t begin, int64_t end) {
  int64_t sum = 0;
  for (const Interval& part : window) {
    sum += std::max<int64_t>(0, std::min(end, part.end.ns) - std::max(begin, part.begin.ns));
  }
  return sum;
}

TwinDevice Twin::AccountDevice(DeviceId device) const {
  TwinDevice account{.device = device};
  std::vector<Verdict> verdicts;
  for (size_t c = 0; c + 1 < cuts_.size(); ++c) {
    if (BusyAt(device, cuts_[c])) {
      verdicts.push_back({cuts_[c], cuts_[c + 1], BusyClassAt(device, cuts_[c])});
      continue;
    }
    const size_t first = c;
    while (c + 2 < cuts_.size() && !BusyAt(device, cuts_[c + 1])) ++c;
    ExplainGap(device, cuts_[first], cuts_[c + 1], verdicts);
  }
  for (const Verdict& verdict : verdicts) {
    const int64_t ns = Within(device_window_, verdict.begin, verdict.end);
    account.class_ns[static_cast<size_t>(verdict.why)] += ns;
    (IsIdle(verdict.why) ? account.idle_ns : account.busy_ns) += ns;
  }
  return account;
}

TwinAccounts Twin::Account() const {
  TwinAccounts accounts;
  accounts.window_ns = Within(window_, INT64_MIN, INT64_MAX);
  accounts.device_window_ns = Within(device_window_, INT64_MIN, INT64_MAX);
  for (uint32_t d = 0; d < trace_.devices.size(); ++d) {
    for (size_t op = 0; op < trace_.device_ops.size(); ++op) {
      if (!OnDevice(op, DeviceId{d})) continue;
      accounts.devices.push_back(AccountDevice(DeviceId{d}));
      break;
    }
  }
  for (size_t c = 0; c + 1 < cuts_.size(); ++c) {
    const int64_t ns = Within(window_, cuts_[c], cuts_[c + 1]);
    if (ns > 0)
      accounts.host_ns[static_cast<size_t>(HostClassAt(trace_, stepping_, cuts_[c]))] += ns;
  }
  return accounts;
}

}  // namespace

TwinAccounts AccountByBruteForce(const Trace& trace, TrackId stepping,
                                 const std::vector<Interval>& step_ranges, bool on_device) {
  return Twin(trace, stepping, step_ranges, on_device).Account();
}

}  // namespace trainprof
