// See twin.h. Plain loops on purpose: each function is the sentence of the law that stands above
// it.
#include "tests/analysis/twin.h"

#include <algorithm>

#include "analysis/account/idle.h"
#include "tests/analysis/twin_activity.h"
#include "tests/analysis/twin_collectives.h"
#include "tests/analysis/twin_host.h"
#include "tests/analysis/twin_missing.h"
#include "tests/analysis/twin_steps.h"
#include "tests/analysis/twin_waits.h"

namespace trainprof {
namespace {

struct Piece {
  int64_t begin = 0;
  int64_t end = 0;
  HostMoment moment;
  TrackId thread = kNoTrack;
};

struct Explanation {
  int64_t begin = 0;
  int64_t end = 0;
  DeviceClass why{};
  bool is_rest = false;
  bool is_of_host = false;
  Row wait = kNoRow;
};

class Twin {
 public:
  Twin(const Trace& trace, const Graph& graph, TrackId stepping,
       const std::vector<Interval>& step_ranges, bool on_device);
  TwinAccounts Account() const;

 private:
  // Preparation.
  void FindWindows(const std::vector<Interval>& step_ranges, bool on_device);
  void CutIntoCells();

  // One device.
  bool OnDevice(size_t op, DeviceId device) const;
  bool BusyAt(DeviceId device, int64_t moment) const;
  size_t OperationAfter(DeviceId device, int64_t moment) const;  // kNone when none
  size_t NeededFrom(DeviceId device, int64_t moment) const;      // kNone when none
  void ExplainGap(DeviceId device, int64_t g0, int64_t g1, std::vector<Explanation>& out) const;
  std::vector<Explanation> PartsOf(size_t op, int64_t g0, int64_t g1) const;
  void ExplainAround(size_t op, int64_t g0, int64_t g1, const std::vector<Unseen>& unseen,
                     std::vector<Explanation>& out) const;
  void ExplainHost(const Held& held, int64_t g0, int64_t g1, std::vector<Explanation>& out) const;
  int64_t StretchOf(const Piece& piece) const;
  Explanation ExplanationOf(const Piece& piece, const Held& held, int64_t g0, int64_t g1) const;
  void ExplainRest(DeviceId device, const Explanation& rest, std::vector<Explanation>& out) const;
  std::vector<Piece> PiecesOf(TrackId thread, int64_t begin, int64_t end) const;
  TwinDevice AccountDevice(DeviceId device) const;

  static constexpr size_t kNone = SIZE_MAX;
  const Trace& trace_;
  TwinWaits waits_;
  TrackId stepping_;
  bool has_steps_ = false;
  std::vector<Interval> window_;  // may touch, never overlap
  std::vector<Interval> device_window_;
  std::vector<int64_t> cuts_;                      // cell i is [cuts_[i], cuts_[i + 1])
  std::vector<std::vector<HostMoment>> activity_;  // by track, by cell
  std::vector<std::vector<size_t>> order_;         // by device: its operations
};

Twin::Twin(const Trace& trace, const Graph& graph, TrackId stepping,
           const std::vector<Interval>& step_ranges, bool on_device)
    : trace_(trace),
      waits_(trace, graph, stepping),
      stepping_(stepping),
      has_steps_(!step_ranges.empty()) {
  FindWindows(step_ranges, on_device);
  CutIntoCells();
  for (uint32_t device = 0; device < trace_.devices.size(); ++device) {
    order_.push_back(OpsInOrderByBruteForce(trace_, DeviceId{device}));
  }
  activity_.resize(trace_.tracks.size());
  for (size_t t = 0; t < trace_.tracks.size(); ++t) {
    for (size_t c = 0; c + 1 < cuts_.size(); ++c) {
      activity_[t].push_back(MomentOf(trace_, TrackId{static_cast<uint32_t>(t)}, cuts_[c]));
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
      cuts_.push_back(table->end(row).ns);
    }
  }
  for (const std::vector<Interval>* window : {&window_, &device_window_}) {
    for (const Interval& part : *window) {
      cuts_.push_back(part.begin.ns);
      cuts_.push_back(part.end.ns);
    }
  }
  for (const int64_t cut : waits_.Cuts()) cuts_.push_back(cut);
  for (const TraceTime end : {trace_.extent.begin, trace_.extent.end}) cuts_.push_back(end.ns);
  std::sort(cuts_.begin(), cuts_.end());
  cuts_.erase(std::unique(cuts_.begin(), cuts_.end()), cuts_.end());
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

// The operation that ends a gap at `moment`: one that takes time and begins there; of several, the
// first whose launch is known.
size_t Twin::OperationAfter(DeviceId device, int64_t moment) const {
  const DeviceOpTable& ops = trace_.device_ops;
  size_t found = kNone;
  for (const size_t op : order_[Index(device)]) {
    if (ops.begin[op].ns != moment || ops.end(op) == ops.begin[op]) continue;
    if (ops.launch[op] != kNoRow) return op;
    if (found == kNone) found = op;
  }
  return found;
}

// The first that takes time and begins there or later, and for which somebody waits; of the next so many.
size_t Twin::NeededFrom(DeviceId device, int64_t moment) const {
  const DeviceOpTable& ops = trace_.device_ops;
  size_t next = 0;
  for (const size_t op : order_[Index(device)]) {
    if (ops.begin[op].ns < moment) continue;
    if (++next > IdleSplitter::kMostSkipped) break;
    if (ops.end(op) != ops.begin[op] && waits_.IsNeeded(op)) return op;
  }
  return kNone;
}

// Maximal stretches of one activity within [begin, end).
std::vector<Piece> Twin::PiecesOf(TrackId thread, int64_t begin, int64_t end) const {
  std::vector<Piece> pieces;
  for (size_t c = 0; c + 1 < cuts_.size(); ++c) {
    const int64_t from = std::max(begin, cuts_[c]);
    const int64_t to = std::min(end, cuts_[c + 1]);
    if (from >= to) continue;
    const HostMoment moment = thread == kNoTrack ? HostMoment{} : activity_[Index(thread)][c];
    if (!pieces.empty() && pieces.back().moment == moment) {
      pieces.back().end = to;
    } else {
      pieces.push_back({from, to, moment, thread});
    }
  }
  return pieces;
}

// How long the thread was at that, before and behind the piece as well.
int64_t Twin::StretchOf(const Piece& piece) const {
  if (piece.thread == kNoTrack) return piece.end - piece.begin;
  for (const Piece& all : PiecesOf(piece.thread, cuts_.front(), cuts_.back())) {
    if (all.begin <= piece.begin && piece.end <= all.end) return all.end - all.begin;
  }
  return 0;
}

Explanation Twin::ExplanationOf(const Piece& piece, const Held& held, int64_t g0,
                                int64_t g1) const {
  const int64_t length = piece.end - piece.begin;
  Explanation explanation{piece.begin, piece.end, DeviceClass::kIdleUnknown, false, true};
  switch (piece.moment.activity) {
    case HostActivity::kInputWait:
      explanation.why = DeviceClass::kIdleInputWait;
      break;
    case HostActivity::kAllocate:
      explanation.why = DeviceClass::kIdleAllocation;
      break;
    case HostActivity::kIo:
      explanation.why = DeviceClass::kIdleIo;
      break;
    case HostActivity::kRankWait:
      explanation.why = DeviceClass::kIdleCollective;
      explanation.is_rest = length < kRankPause.ns;
      break;
    case HostActivity::kSetup:
      break;
    case HostActivity::kPython:
      explanation.why = DeviceClass::kIdlePython;
      explanation.is_rest = StretchOf(piece) < kPythonStretch.ns;
      break;
    case HostActivity::kNothing:
      explanation.is_rest = StretchOf(piece) < kSilentStretch.ns;
      break;
    case HostActivity::kSync:
      explanation.is_rest = length <= kSyncReturn.ns;
      break;
    case HostActivity::kWork:
      explanation.why = DeviceClass::kIdleHostWork;
      explanation.is_rest = piece.moment.range == kNoRow || StretchOf(piece) < kOperatorStretch.ns;
      break;
    case HostActivity::kOwnRange: {
      const size_t range = Index(piece.moment.range);
      const int64_t begin = trace_.ranges.begin[range].ns;
      int64_t limit = g1;  // or the end of the step that it begins in
      for (const Interval& step : window_) {
        if (has_steps_ && step.begin.ns <= begin && begin < step.end.ns) {
          limit = std::max(limit, step.end.ns);
        }
      }
      const bool is_new = begin + kRounding.ns >= std::min(held.since.ns, g0);
      if (is_new && trace_.ranges.end(range).ns <= limit + kRounding.ns) {
        explanation.why = DeviceClass::kIdleHostWork;
      }
      const bool names_work =
          explanation.why == DeviceClass::kIdleHostWork &&
          PhaseOfUserName(trace_.Text(trace_.ranges.name[range])) == Phase::kNone;
      explanation.is_rest = StretchOf(piece) < (names_work ? kHostPause.ns : kSilentStretch.ns);
    }
  }
  return explanation;
}

// Waits for input of the stepping thread come first. Then each stretch by the thread's activity; where it
// has none, by the stepping thread's.
void Twin::ExplainHost(const Held& held, int64_t g0, int64_t g1,
                       std::vector<Explanation>& out) const {
  int64_t at = held.interval.begin.ns;
  const auto explain_stepping = [&](int64_t from, int64_t to) {
    for (const Piece& piece : PiecesOf(stepping_, from, to)) {
      out.push_back(ExplanationOf(piece, held, g0, g1));
    }
  };
  const auto explain_until = [&](int64_t end) {
    if (held.thread == kNoTrack) return explain_stepping(at, end);
    for (const Piece& piece : PiecesOf(held.thread, at, end)) {
      const bool tells = piece.moment.activity != HostActivity::kNothing;
      if (tells || held.thread == stepping_) {
        out.push_back(ExplanationOf(piece, held, g0, g1));
      } else {
        explain_stepping(piece.begin, piece.end);
      }
    }
  };
  if (held.thread != kNoTrack) {
    for (const Piece& piece : PiecesOf(stepping_, at, held.interval.end.ns)) {
      if (piece.moment.activity != HostActivity::kInputWait) continue;
      explain_until(piece.begin);
      out.push_back(ExplanationOf(piece, held, g0, g1));
      at = piece.end;
    }
  }
  explain_until(held.interval.end.ns);
}

// By what the operation waited for in each cell; of the host, what touches is one.
std::vector<Explanation> Twin::PartsOf(size_t op, int64_t g0, int64_t g1) const {
  std::vector<Explanation> parts;
  Held host;
  const auto end_host = [&] {
    const size_t first = parts.size();
    if (host.by == Holder::kHost) ExplainHost(host, g0, g1, parts);
    for (size_t i = first; i < parts.size(); ++i) {
      parts[i].wait = waits_.At(op, g0, parts[i].begin).wait;
    }
    host = {};
  };
  for (size_t c = 0; c + 1 < cuts_.size(); ++c) {
    const int64_t from = std::max(g0, cuts_[c]);
    const int64_t to = std::min(g1, cuts_[c + 1]);
    if (from >= to) continue;
    Held held = waits_.At(op, g0, from);
    held.interval = {TraceTime{from}, TraceTime{to}};
    if (host.by == Holder::kHost && held.by == Holder::kHost && host.thread == held.thread) {
      host.interval.end = held.interval.end;
      host.since = std::min(host.since, held.since);
      continue;
    }
    end_host();
    switch (held.by) {
      case Holder::kHost:
        host = held;
        break;
      case Holder::kIssue:
        parts.push_back(
            {from, to, DeviceClass::kIdleUnknown, !held.is_long_call, false, held.wait});
        break;
      case Holder::kOtherDevice:
        parts.push_back({from, to, DeviceClass::kIdleOtherDevice});
        break;
      case Holder::kHostFunction:
        parts.push_back({from, to, DeviceClass::kIdleHostFunction});
        break;
      case Holder::kHandOver:
        parts.push_back({from, to, DeviceClass::kIdleDependency});
        break;
      case Holder::kUnrecorded:
        parts.push_back({from, to, DeviceClass::kIdleUnrecorded});
        break;
      case Holder::kUnknown:
        parts.push_back({from, to, DeviceClass::kIdleUnknown});
        break;
    }
  }
  end_host();
  return parts;
}

// A wait of length B lets the host come that much later: the drain, until the device was idle for so long.
void Twin::ExplainRest(DeviceId device, const Explanation& rest,
                       std::vector<Explanation>& out) const {
  if (rest.wait == kNoRow) {
    return out.push_back({rest.begin, rest.end, DeviceClass::kIdleLaunchBound});
  }
  const int64_t wait_begin = trace_.api.begin[Index(rest.wait)].ns;
  const int64_t wait_end = trace_.api.end(Index(rest.wait)).ns;
  int64_t dry = std::min(wait_end, trace_.extent.begin.ns);
  for (size_t c = 0; c + 1 < cuts_.size() && cuts_[c] < wait_end; ++c) {
    if (!BusyAt(device, cuts_[c])) continue;
    dry = std::min(wait_end, cuts_[c + 1]);
    // Busy all the way.
    if (cuts_[c + 1] >= wait_end) dry = wait_end;
  }
  dry = std::min(dry, rest.begin);
  for (const Unseen& unseen : UnseenOn(trace_, device)) {
    if (unseen.end > dry && unseen.begin < rest.end) {
      return out.push_back({rest.begin, rest.end, DeviceClass::kIdleUnknown});
    }
  }
  int64_t idle = 0;
  for (size_t c = 0; c + 1 < cuts_.size(); ++c) {
    const int64_t from = std::max(dry, cuts_[c]);
    const int64_t to = std::min(rest.begin, cuts_[c + 1]);
    if (from < to && !BusyAt(device, cuts_[c])) idle += to - from;
  }
  const int64_t until =
      std::clamp(rest.begin + (wait_end - wait_begin) - idle, rest.begin, rest.end);
  out.push_back({rest.begin, until, DeviceClass::kIdleSyncDrain});
  out.push_back({until, rest.end, DeviceClass::kIdleLaunchBound});
}

// A gap that some of it meets: unrecorded there. Before the call that ended the gap the reasons
// that its thread had, if all of it is that thread's; else unknown, or unrecorded where that call
// had returned before.
void Twin::ExplainAround(size_t op, int64_t g0, int64_t g1, const std::vector<Unseen>& unseen,
                         std::vector<Explanation>& out) const {
  const Row launch = op == kNone ? kNoRow : trace_.device_ops.launch[op];
  bool queued = false;
  TrackId thread = op == kNone ? stepping_ : kNoTrack;
  int64_t issue = g1;
  if (launch != kNoRow) {
    thread = trace_.api.track[Index(launch)];
    issue = std::clamp(trace_.api.begin[Index(launch)].ns, g0, g1);
    queued = trace_.api.end(Index(launch)).ns <= g0;
  }
  for (const Unseen& part : unseen) {
    if (part.thread != thread) thread = kNoTrack;
  }
  std::vector<Explanation> parts;
  if (thread != kNoTrack && !queued) {
    if (op == kNone) {
      ExplainHost({.interval = {TraceTime{g0}, TraceTime{g1}}, .since = TraceTime{g0}}, g0, g1,
                  parts);
    } else {
      parts = PartsOf(op, g0, g1);
    }
  }
  const auto reason_at = [&](int64_t moment) {
    for (const Unseen& part : unseen) {
      if (part.begin <= moment && moment < part.end) return DeviceClass::kIdleUnrecorded;
    }
    for (const Explanation& part : parts) {
      if (part.begin <= moment && moment < part.end && moment < issue && part.is_of_host &&
          !part.is_rest) {
        return part.why;
      }
    }
    return queued ? DeviceClass::kIdleUnrecorded : DeviceClass::kIdleUnknown;
  };
  std::vector<int64_t> cuts = {g0, g1, issue};
  for (const Unseen& part : unseen) {
    cuts.push_back(std::clamp(part.begin, g0, g1));
    cuts.push_back(std::clamp(part.end, g0, g1));
  }
  for (const Explanation& part : parts) {
    cuts.push_back(part.begin);
    cuts.push_back(part.end);
  }
  std::sort(cuts.begin(), cuts.end());
  for (size_t c = 0; c + 1 < cuts.size(); ++c) {
    if (cuts[c] < cuts[c + 1]) out.push_back({cuts[c], cuts[c + 1], reason_at(cuts[c])});
  }
}

void Twin::ExplainGap(DeviceId device, int64_t g0, int64_t g1,
                      std::vector<Explanation>& out) const {
  const size_t op = OperationAfter(device, g1);
  std::vector<Unseen> unseen = UnseenOn(trace_, device);
  std::erase_if(unseen, [&](const Unseen& u) { return u.end <= g0 || u.begin >= g1; });
  if (!unseen.empty()) return ExplainAround(op, g0, g1, unseen, out);
  std::vector<Explanation> parts;
  if (op == kNone) {
    ExplainHost({.interval = {TraceTime{g0}, TraceTime{g1}}, .since = TraceTime{g0}}, g0, g1,
                parts);
    for (Explanation& part : parts) {
      if (part.is_rest) part.why = DeviceClass::kIdleUnknown;
      out.push_back(part);
    }
    return;
  }
  size_t waited = op;
  if (!waits_.IsNeeded(op)) waited = NeededFrom(device, g1);
  parts = PartsOf(waited == kNone ? op : waited, g0, g1);
  for (const Explanation& part : parts) {
    if (part.is_rest) {
      ExplainRest(device, part, out);
    } else {
      out.push_back(part);
    }
  }
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
  std::vector<Explanation> explanations;
  for (size_t c = 0; c + 1 < cuts_.size(); ++c) {
    if (BusyAt(device, cuts_[c])) {
      explanations.push_back({cuts_[c], cuts_[c + 1], BusyClassAt(trace_, device, cuts_[c])});
      continue;
    }
    const size_t first = c;
    while (c + 2 < cuts_.size() && !BusyAt(device, cuts_[c + 1])) ++c;
    ExplainGap(device, cuts_[first], cuts_[c + 1], explanations);
  }
  for (const Explanation& explanation : explanations) {
    const int64_t ns = Within(device_window_, explanation.begin, explanation.end);
    account.class_ns[static_cast<size_t>(explanation.why)] += ns;
    (IsIdle(explanation.why) ? account.idle_ns : account.busy_ns) += ns;
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

TwinAccounts AccountByBruteForce(const Trace& trace, const Graph& graph, TrackId stepping,
                                 const std::vector<Interval>& step_ranges, bool on_device) {
  return Twin(trace, graph, stepping, step_ranges, on_device).Account();
}

}  // namespace trainprof
