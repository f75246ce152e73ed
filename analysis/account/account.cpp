// Names of the classes, and the sums. How an idle gap is split stands in idle.cpp.
#include "analysis/account/account.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "analysis/account/collective_waits.h"
#include "analysis/account/idle.h"
#include "analysis/account/sampled_phases.h"
#include "analysis/graph/build.h"
#include "analysis/steps/device_rows.h"
#include "trace/base/cancel.h"
#include "trace/base/large_columns.h"
#include "trace/base/parallel.h"
#include "trace/tables/communication.h"

namespace trainprof {
namespace {

struct Names {
  std::string_view name;
  std::string_view title;
  std::string_view meaning{};
};

constexpr std::array<Names, kDeviceClasses> kDeviceNames{{
    {"compute", "compute"},
    {"exposed_communication", "communication", "not hidden by compute"},
    {"exposed_copy", "copy", "not hidden by compute"},
    {"idle_input_wait", "input wait"},
    {"idle_sync_drain", "sync drain", "the queue refills after a sync"},
    {"idle_allocation", "allocation", "on the host"},
    {"idle_launch_bound", "launch-bound", "the host issues too slowly"},
    {"idle_python", "Python", "host code without operators"},
    {"idle_io", "saving or logging"},
    {"idle_dependency", "hand-over", "between queued operations"},
    {"idle_other_device", "other device", "this one waits for it"},
    {"idle_host_function", "host function", "the stream waits for it"},
    {"idle_host_work", "host work", "it computes something else"},
    {"idle_preempted", "preempted", "another thread had the host's core"},
    {"idle_collective", "other ranks", "nothing runs until they arrive"},
    {"idle_unrecorded", "unrecorded", "device work is missing"},
    {"idle_unknown", "unknown", "nothing recorded says why"},
}};

constexpr std::array<Names, kHostClasses> kHostNames{{
    {"input_wait", "input wait"},
    {"copy", "copy to the device"},
    {"forward", "forward"},
    {"backward", "backward"},
    {"optimizer", "optimizer"},
    {"rank_wait", "wait for other ranks"},
    {"other", "other"},
}};

// Intervals of the device's operations, by what they count as.
struct Work {
  IntervalSet compute;
  IntervalSet communication;
  IntervalSet copy;
  IntervalSet waiting;  // of communication, and nothing else ran
};

// `ops`: in the order in which they began. Counts those in the window as well.
Work WorkOf(const Trace& trace, const Steps& steps, const std::vector<uint32_t>& ops,
            const CollectiveWaits& waits, DeviceAccount& account) {
  IntervalUnion compute;
  IntervalUnion copy;
  std::vector<Interval> communication;
  std::vector<Interval> waiting;
  IntervalReader window(steps.device_window);
  for (size_t i = 0; i < ops.size(); ++i) {
    CancelPoint(i);
    const uint32_t row = ops[i];
    const Interval interval = trace.device_ops.interval(Row{row});
    if (window.TotalWithin(interval).ns > 0) {
      ++account.ops_in_window;
      if (trace.device_ops.launch[row] == kNoRow) ++account.ops_without_launch;
    }
    if (trace.device_ops.kind[row] != DeviceOpKind::kKernel) {
      copy.Add(interval);
      continue;
    }
    if (!Communicates(trace, Row{row})) {
      compute.Add(interval);
      continue;
    }
    const auto wait =
        std::lower_bound(waits.begin(), waits.end(), std::pair{Row{row}, TraceTime{INT64_MIN}});
    const bool waited = wait != waits.end() && wait->first == Row{row};
    const TraceTime until = waited ? std::min(wait->second, interval.end) : interval.begin;
    if (waited) waiting.push_back({interval.begin, until});
    communication.push_back({until, interval.end});
  }
  Work work{std::move(compute).Take(),
            IntervalSet::Union(std::move(communication)),
            std::move(copy).Take(),
            {}};
  if (waiting.empty()) return work;
  const IntervalSet waits_of_any = IntervalSet::Union(std::move(waiting));
  work.waiting = waits_of_any.Minus(work.compute).Minus(work.communication).Minus(work.copy);
  work.communication = std::move(work.communication).UnionWith(waits_of_any);
  return work;
}

// When autograd's own threads ran the backward pass: the stepping thread only waits then.
IntervalSet BackwardElsewhere(const Trace& trace, TrackId stepping) {
  std::vector<Interval> intervals;
  for (uint32_t track = 0; track < trace.tracks.size(); ++track) {
    if (TrackId{track} == stepping) continue;
    const auto [first, last] = trace.ranges.rows_of(TrackId{track});
    for (uint32_t i = first; i < last; ++i) {
      CancelPoint(i);
      if (trace.ranges.kind[i] != RangeKind::kCpuOp) continue;
      if (PhaseOf(trace, Row{i}) == Phase::kBackward) {
        intervals.push_back(trace.ranges.interval(Row{i}));
      }
    }
  }
  return IntervalSet::Union(std::move(intervals));
}

// From each wait of torch's loader to the backward pass that comes before the next one, less the user's
// own ranges that begin there. Nothing where the forward pass has a name.
IntervalSet ForwardBetween(const Trace& trace, TrackId thread) {
  const RangeTable& ranges = trace.ranges;
  const std::vector<bool> is_wait = FindInputWaits(trace, thread);
  const auto [first, last] = ranges.rows_of(thread);
  std::vector<Interval> loader;
  for (uint32_t row = first; row < last; ++row) {
    CancelPoint(row);
    if (!is_wait[row - first]) continue;
    if (trace.Facts(ranges.name[row]).torch_phase != Phase::kInputWait) continue;
    loader.push_back(ranges.interval(Row{row}));
  }
  if (loader.empty()) return {};
  std::vector<TraceTime> backward;
  for (uint32_t row = 0; row < ranges.size(); ++row) {
    CancelPoint(row);
    const bool is_own = row >= first && row < last;
    if (!is_own && ranges.kind[row] != RangeKind::kCpuOp) continue;
    const Phase phase = PhaseOf(trace, Row{row});
    if (phase == Phase::kForward && is_own && !ranges.interval(Row{row}).Empty()) return {};
    if (phase == Phase::kBackward) backward.push_back(ranges.begin[row]);
  }
  std::sort(backward.begin(), backward.end());
  const IntervalSet waits = IntervalSet::Union(std::move(loader));
  std::vector<Interval> gaps;
  for (size_t i = 0; i < waits.intervals().size(); ++i) {
    const TraceTime begin = waits.intervals()[i].end;
    const auto end = std::lower_bound(backward.begin(), backward.end(), begin);
    if (end == backward.end()) break;
    const bool is_last = i + 1 == waits.intervals().size();
    if (is_last || *end <= waits.intervals()[i + 1].begin) gaps.push_back({begin, *end});
  }
  const IntervalSet all = IntervalSet::Union(std::move(gaps));
  std::vector<Interval> own;
  for (uint32_t row = first; row < last; ++row) {
    CancelPoint(row);
    if (ranges.kind[row] != RangeKind::kUserAnnotation) continue;
    if (trace.Facts(ranges.name[row]).is_step != 0 || PhaseOf(trace, Row{row}) != Phase::kNone)
      continue;
    const Interval range = ranges.interval(Row{row});
    const auto gap =
        std::partition_point(all.intervals().begin(), all.intervals().end(),
                             [&](const Interval& it) { return it.end <= range.begin; });
    if (gap != all.intervals().end() && gap->begin <= range.begin)
      own.push_back(Intersect(*gap, range));
  }
  return all.Minus(IntervalSet::Union(std::move(own)));
}

// Host-to-device copy calls on the stepping thread, for traces whose copies no range names.
IntervalSet CopyCalls(const Trace& trace, TrackId thread) {
  std::vector<Interval> calls;
  for (size_t i = 0; i < trace.device_ops.size(); ++i) {
    CancelPoint(i);
    if (trace.device_ops.direction[i] != CopyDirection::kHostToDevice) continue;
    const Row launch = trace.device_ops.launch[i];
    if (launch == kNoRow || trace.api.track[Index(launch)] != thread) continue;
    calls.push_back(trace.api.interval(launch));
  }
  return IntervalSet::Union(std::move(calls));
}

Duration IdleWithin(std::span<const MissingWork::Period> periods, const DeviceAccount& account,
                    const IntervalSet& window) {
  std::vector<Interval> intervals;
  for (const MissingWork::Period& period : periods) intervals.push_back(period.interval);
  return IntervalSet::Union(std::move(intervals)).IntersectWith(window).Minus(account.busy).Total();
}

// By what names phases.
HostAccount AccountNamed(const Trace& trace, const Steps& steps) {
  HostAccount account;
  if (steps.thread != kNoTrack) account.phases = PhaseTimeline(trace, steps.thread);
  const auto add = [&](HostClass c, Duration d) { account.total[static_cast<size_t>(c)] += d; };
  std::vector<Interval> named;
  for (const Segment<Phase>& segment : account.phases) {
    add(ClassOf(segment.value), steps.window.TotalWithin(segment.interval));
    named.push_back(segment.interval);
  }
  // Unnamed time: copy calls first, then waiting for autograd's threads, the rest is other.
  const IntervalSet unnamed = steps.window.Minus(IntervalSet::Union(std::move(named)));
  account.copies = CopyCalls(trace, steps.thread).IntersectWith(unnamed);
  account.backward =
      BackwardElsewhere(trace, steps.thread).IntersectWith(unnamed).Minus(account.copies);
  if (steps.thread != kNoTrack) {
    account.forward = ForwardBetween(trace, steps.thread)
                          .IntersectWith(unnamed)
                          .Minus(account.copies)
                          .Minus(account.backward);
  }
  add(HostClass::kOther, unnamed.Total());
  for (const auto& [c, set] : account.Unnamed()) {
    add(c, set->Total());
    add(HostClass::kOther, Duration{} - set->Total());
  }
  return account;
}

void SetBusy(Work work, const Steps& steps, DeviceAccount& account) {
  const auto add = [&](DeviceClass c, const IntervalSet& set) {
    account.total[static_cast<size_t>(c)] = set.TotalWithin(steps.device_window);
  };
  add(DeviceClass::kCompute, work.compute);
  account.exposed_communication = work.communication.Minus(work.compute).Minus(work.waiting);
  IntervalSet kernels = std::move(work.compute).UnionWith(work.communication);
  account.exposed_copy = work.copy.Minus(kernels);
  account.busy = std::move(kernels).UnionWith(work.copy);
  add(DeviceClass::kExposedCommunication, account.exposed_communication);
  add(DeviceClass::kExposedCopy, account.exposed_copy);
}

// Collectives that wait keep a device occupied, and so no gap is there for IdleSplitter.
void AddWaiting(const IntervalSet& waiting, DeviceAccount& account) {
  if (waiting.Empty()) return;
  account.busy = account.busy.Minus(waiting);
  account.idle.Insert(waiting.intervals(), DeviceClass::kIdleCollective);
}

void AddIdle(const Steps& steps, DeviceAccount& account) {
  IntervalReader window(steps.device_window);
  for (size_t i = 0; i < account.idle.size(); ++i) {
    CancelPoint(i);
    const auto& [interval, why] = account.idle[i];
    account.total[static_cast<size_t>(why)] += window.TotalWithin(interval);
  }
}

}  // namespace

HostClass ClassOf(Phase phase) {
  switch (phase) {
    case Phase::kInputWait:
      return HostClass::kInputWait;
    case Phase::kCopy:
      return HostClass::kCopy;
    case Phase::kForward:
      return HostClass::kForward;
    case Phase::kBackward:
      return HostClass::kBackward;
    case Phase::kOptimizer:
      return HostClass::kOptimizer;
    case Phase::kRankWait:
      return HostClass::kRankWait;
    case Phase::kNone:
      break;
  }
  return HostClass::kOther;
}

std::string_view Name(DeviceClass c) { return kDeviceNames[static_cast<size_t>(c)].name; }
std::string_view Title(DeviceClass c) { return kDeviceNames[static_cast<size_t>(c)].title; }
std::string_view Meaning(DeviceClass c) { return kDeviceNames[static_cast<size_t>(c)].meaning; }
std::string_view Name(HostClass c) { return kHostNames[static_cast<size_t>(c)].name; }
std::string_view Title(HostClass c) { return kHostNames[static_cast<size_t>(c)].title; }

std::vector<DeviceAccount> AccountDevices(const Trace& trace, const Steps& steps) {
  DeviceRows rows(trace);
  const std::vector<bool> blocking = FindBlockingCalls(trace);
  return AccountDevices(trace, steps, ThreadActivities(trace, blocking),
                        BuildGraph(trace, steps, blocking), rows);
}

std::vector<DeviceAccount> AccountDevices(const Trace& trace, const Steps& steps,
                                          const ThreadActivities& activities, const Graph& graph,
                                          DeviceRows& rows) {
  // What is of no device is left out.
  const std::span ops_of = std::span(rows.ops()).first(trace.devices.size());
  std::optional<IdleSplitter> splitter;
  std::vector<DeviceAccount> accounts;
  std::vector<IntervalSet> waiting;  // by account
  const std::function<void()> finds[] = {
      [&] { splitter.emplace(trace, steps, activities, graph, rows.missing()); },
      [&] {
        const CollectiveWaits waits = FindCollectiveWaits(trace, ops_of);
        for (uint32_t d = 0; d < ops_of.size(); ++d) {
          if (ops_of[d].empty()) continue;
          accounts.emplace_back().device = DeviceId{d};
          Work work = WorkOf(trace, steps, ops_of[d], waits, accounts.back());
          waiting.push_back(work.waiting);
          SetBusy(std::move(work), steps, accounts.back());
        }
      },
  };
  RunAll(finds);
  for (DeviceAccount& account : accounts) {
    const std::vector<uint32_t>& ops = ops_of[Index(account.device)];
    splitter->Split(ops, account);
    account.missing_rows =
        IdleWithin(splitter->missing().On(account.device), account, steps.device_window);
    AddWaiting(waiting[static_cast<size_t>(&account - accounts.data())], account);
    AddIdle(steps, account);
  }
  return accounts;
}

HostAccount AccountHost(const Trace& trace, const Steps& steps) {
  HostAccount account = AccountNamed(trace, steps);
  if (account.Of(HostClass::kOther) != steps.window.Total()) return account;
  SampledPhases sampled = FindSampledPhases(trace, steps);
  if (sampled.thread == kNoTrack) return account;
  account.sampled_thread = sampled.thread;
  account.phases = std::move(sampled.phases);
  account.total = {};
  Duration rest = steps.window.Total();
  for (const Segment<Phase>& segment : account.phases) {
    const Duration part = steps.window.TotalWithin(segment.interval);
    account.total[static_cast<size_t>(ClassOf(segment.value))] += part;
    rest = rest - part;
  }
  account.total[static_cast<size_t>(HostClass::kOther)] += rest;
  return account;
}

std::array<Duration, kDeviceClasses> DeviceAccount::Within(const Interval& part) const {
  std::array<Duration, kDeviceClasses> totals{};
  const auto of = [&](DeviceClass c) -> Duration& { return totals[static_cast<size_t>(c)]; };
  of(DeviceClass::kExposedCommunication) = exposed_communication.TotalWithin(part);
  of(DeviceClass::kExposedCopy) = exposed_copy.TotalWithin(part);
  of(DeviceClass::kCompute) = busy.TotalWithin(part) - of(DeviceClass::kExposedCommunication) -
                              of(DeviceClass::kExposedCopy);
  for (auto it = std::partition_point(idle.begin(), idle.end(),
                                      [&](const auto& s) { return s.interval.end <= part.begin; });
       it != idle.end(); ++it) {
    const auto& [interval, why] = *it;
    if (interval.begin >= part.end) break;
    of(why) += Intersect(interval, part).Length();
  }
  return totals;
}

IntervalSet HostAccount::InputWait() const {
  std::vector<Interval> waits;
  for (const Segment<Phase>& segment : phases) {
    if (segment.value == Phase::kInputWait) waits.push_back(segment.interval);
  }
  return IntervalSet::Union(std::move(waits));
}

std::array<Duration, kHostClasses> HostAccount::Within(const Interval& part) const {
  std::array<Duration, kHostClasses> totals{};
  const auto of = [&](HostClass c) -> Duration& { return totals[static_cast<size_t>(c)]; };
  VisitWithin(phases, part,
              [&](const Interval& piece, Phase phase) { of(ClassOf(phase)) += piece.Length(); });
  // What has no name counts as other until here.
  for (const auto& [c, set] : Unnamed()) {
    const Duration named = set->TotalWithin(part);
    of(c) += named;
    of(HostClass::kOther) -= named;
  }
  return totals;
}

}  // namespace trainprof
