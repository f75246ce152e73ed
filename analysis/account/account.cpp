// Names of the classes, and the sums. How an idle gap is split stands in idle.cpp.
#include "analysis/account/account.h"

#include <algorithm>

#include "analysis/account/idle.h"
#include "analysis/steps/device_order.h"
#include "trace/base/cancel.h"

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
};

Work WorkOf(const Trace& trace, const std::vector<uint32_t>& ops) {
  std::vector<Interval> compute;
  std::vector<Interval> communication;
  std::vector<Interval> copy;
  for (size_t i = 0; i < ops.size(); ++i) {
    CancelPoint(i);
    const uint32_t row = ops[i];
    const Interval interval = trace.device_ops.interval(Row{row});
    if (trace.device_ops.kind[row] != DeviceOpKind::kKernel) {
      copy.push_back(interval);
      continue;
    }
    const bool communicates = trace.Facts(trace.device_ops.name[row]).is_communication;
    (communicates ? communication : compute).push_back(interval);
  }
  return {IntervalSet::Union(std::move(compute)), IntervalSet::Union(std::move(communication)),
          IntervalSet::Union(std::move(copy))};
}

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

// When autograd's own threads ran the backward pass: the stepping thread only waits then.
IntervalSet BackwardElsewhere(const Trace& trace, TrackId stepping) {
  std::vector<Interval> intervals;
  for (size_t i = 0; i < trace.ranges.size(); ++i) {
    CancelPoint(i);
    if (trace.ranges.track[i] == stepping) continue;
    if (trace.ranges.kind[i] != RangeKind::kCpuOp) continue;
    const Row row{static_cast<uint32_t>(i)};
    if (PhaseOf(trace, row) == Phase::kBackward) intervals.push_back(trace.ranges.interval(row));
  }
  return IntervalSet::Union(std::move(intervals));
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

}  // namespace

std::string_view Name(DeviceClass c) { return kDeviceNames[static_cast<size_t>(c)].name; }
std::string_view Title(DeviceClass c) { return kDeviceNames[static_cast<size_t>(c)].title; }
std::string_view Meaning(DeviceClass c) { return kDeviceNames[static_cast<size_t>(c)].meaning; }
std::string_view Name(HostClass c) { return kHostNames[static_cast<size_t>(c)].name; }
std::string_view Title(HostClass c) { return kHostNames[static_cast<size_t>(c)].title; }

std::vector<DeviceAccount> AccountDevices(const Trace& trace, const Steps& steps) {
  return AccountDevices(trace, steps, FindBlockingCalls(trace));
}

std::vector<DeviceAccount> AccountDevices(const Trace& trace, const Steps& steps,
                                          const std::vector<bool>& blocking_calls) {
  std::vector<std::vector<uint32_t>> ops_of = OpsByBegin(trace);
  ops_of.resize(trace.devices.size());  // what is of no device is left out
  const IdleSplitter splitter(trace, steps, blocking_calls);
  std::vector<DeviceAccount> accounts;
  for (uint32_t d = 0; d < ops_of.size(); ++d) {
    if (ops_of[d].empty()) continue;
    const Work work = WorkOf(trace, ops_of[d]);
    DeviceAccount account;
    account.device = DeviceId{d};
    account.busy = work.compute.UnionWith(work.communication).UnionWith(work.copy);
    const auto add = [&](DeviceClass c, const IntervalSet& set) {
      account.total[static_cast<size_t>(c)] = set.IntersectWith(steps.window).Total();
    };
    add(DeviceClass::kCompute, work.compute);
    account.exposed_communication = work.communication.Minus(work.compute);
    account.exposed_copy = work.copy.Minus(work.compute.UnionWith(work.communication));
    add(DeviceClass::kExposedCommunication, account.exposed_communication);
    add(DeviceClass::kExposedCopy, account.exposed_copy);
    account.idle = splitter.Split(account.device, ops_of[d], account.busy);
    account.missing_rows = IdleWithin(splitter.missing().On(account.device), account, steps.window);
    for (size_t i = 0; i < account.idle.size(); ++i) {
      CancelPoint(i);
      account.total[static_cast<size_t>(account.idle[i].value)] +=
          steps.window.TotalWithin(account.idle[i].interval);
    }
    for (size_t i = 0; i < ops_of[d].size(); ++i) {
      CancelPoint(i);
      const Interval op = trace.device_ops.interval(Row{ops_of[d][i]});
      if (steps.window.TotalWithin(op).ns > 0) ++account.ops_in_window;
    }
    accounts.push_back(std::move(account));
  }
  return accounts;
}

HostAccount AccountHost(const Trace& trace, const Steps& steps) {
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
  const Duration copies = account.copies.Total();
  const Duration backward = account.backward.Total();
  add(HostClass::kCopy, copies);
  add(HostClass::kBackward, backward);
  add(HostClass::kOther, unnamed.Total() - copies - backward);
  return account;
}

std::array<Duration, kDeviceClasses> DeviceAccount::Within(const Interval& part) const {
  std::array<Duration, kDeviceClasses> totals{};
  const auto of = [&](DeviceClass c) -> Duration& { return totals[static_cast<size_t>(c)]; };
  of(DeviceClass::kExposedCommunication) = exposed_communication.TotalWithin(part);
  of(DeviceClass::kExposedCopy) = exposed_copy.TotalWithin(part);
  of(DeviceClass::kCompute) = busy.TotalWithin(part) - of(DeviceClass::kExposedCommunication) -
                              of(DeviceClass::kExposedCopy);
  auto segment = std::partition_point(idle.begin(), idle.end(),
                                      [&](const auto& s) { return s.interval.end <= part.begin; });
  for (; segment != idle.end() && segment->interval.begin < part.end; ++segment) {
    of(segment->value) += Intersect(segment->interval, part).Length();
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
  for (const auto& [c, set] :
       {std::pair{HostClass::kCopy, &copies}, std::pair{HostClass::kBackward, &backward}}) {
    const Duration named = set->TotalWithin(part);
    of(c) += named;
    of(HostClass::kOther) -= named;
  }
  return totals;
}

}  // namespace trainprof
