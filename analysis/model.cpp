#include "analysis/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "analysis/graph/build.h"
#include "analysis/host/cpu_use.h"
#include "analysis/host/timeline.h"
#include "analysis/saves.h"
#include "analysis/steps/device_time.h"
#include "analysis/words.h"
#include "trace/base/cancel.h"
#include "trace/base/parallel.h"
#include "trace/build/missing_rows.h"

namespace trainprof {
namespace {

// Moves the devices that train to the front, in their order, and counts them.
size_t TrainingDevicesFirst(const Steps& steps, std::span<DeviceAccount> devices) {
  Duration most;
  for (const DeviceAccount& device : devices) {
    most = std::max(most, device.BusyWithin(steps.device_window));
  }
  const auto trains = [&](const DeviceAccount& device) {
    return static_cast<double>(device.BusyWithin(steps.device_window).ns) >=
           kStrayShare * static_cast<double>(most.ns);
  };
  const auto end = std::stable_partition(devices.begin(), devices.end(), trains);
  return static_cast<size_t>(end - devices.begin());
}

// Missing rows that leave less than this of the steps open change no verdict.
constexpr double kNegligibleShare = 0.01;

std::string DeviceDoubt(const RankModel& model, DeviceRows& rows) {
  const Trace& trace = model.trace;
  if (trace.quality.CountOf(kTruncatedInput) > 0) {
    return "the input ends early: any row of what the device did may be missing";
  }
  if (const auto unknown = trace.quality.CountOf("unknown_device_rows"); unknown > 0) {
    return fmt::format("device rows are of kinds that trainprof does not know ({})",
                       NamesOfUnknownDeviceRows(trace));
  }
  if (model.devices.empty()) {
    if (trace.device_ops.size() > 0) return "device activity was recorded outside the steps only";
    const size_t launches = rows.missing().size();
    if (launches == 0) return {};
    return fmt::format("{} launches and copies, and no row of what a device did", launches);
  }
  double of_launches = 0;
  double of_any = 0;
  for (const DeviceAccount& device : model.devices) {
    of_launches = std::max(of_launches, model.ShareOfWindow(device.missing_rows));
    of_any = std::max(of_any, model.ShareOfWindow(device.Of(DeviceClass::kIdleUnrecorded)));
  }
  if (of_launches >= kNegligibleShare) {
    return fmt::format(
        "launches without a row of what the device did leave {:.0f} % of the time open",
        100 * of_launches);
  }
  if (of_any >= kNegligibleShare) {
    return fmt::format(
        "nodes of graphs may be missing: behind their launches {:.0f} % of the time is open",
        100 * of_any);
  }
  return {};
}

std::string LaunchDoubt(const RankModel& model) {
  double unknown = 0;
  for (const DeviceAccount& device : model.devices) {
    unknown = std::max(unknown, model.ShareOfWindow(device.Of(DeviceClass::kIdleUnknown)));
  }
  const double without_launch = model.ShareWithoutLaunch();
  if (without_launch < kNegligibleShare || unknown < kNegligibleShare) return {};
  return fmt::format(
      "the launches of {:.0f} % of the operations are missing, and {:.0f} % of the time nothing tells what the GPU "
      "waited for",
      100 * without_launch, 100 * unknown);
}

}  // namespace

RankModel::RankModel(const Trace& of, std::optional<int> warmup_steps)
    : trace(of), device_rows(of), sites(of), quality(of.quality.items()) {
  const std::function<void()> first[] = {
      [&] { steps = FindSteps(of, device_rows, warmup_steps); },
      [&] { blocking_calls = FindBlockingCalls(of); },
  };
  RunAll(first);
  device_steps = steps;
  const Steps counted = steps;
  const bool has_detail = ChooseDeviceSteps();
  {
    const ThreadActivities activities(trace, blocking_calls);
    const std::function<void()> stages[] = {
        [&] {
          graph = std::make_unique<const Graph>(BuildGraph(trace, device_steps, blocking_calls));
        },
        [&] {
          host = AccountHost(trace, counted);
          OpenHost(counted);
        },
        [&] { FindSilence(activities); },
        [&] { activities.MakeThoseOfLaunches(); },
        [&] {
          host_facts = FindHostFacts(trace, steps);
          copies = FindCopyCalls(trace, device_steps.window, blocking_calls);
          feeders = FindFeeders(trace, device_steps);
          workload = WorkloadOf(trace, steps);
          device_rows.ops();
        },
    };
    RunAll(stages);
    const std::function<void()> of_graph[] = {
        [&] {
          accounts = AccountDevices(trace, device_steps, activities, *graph, device_rows);
          FindOwnInput(activities);
        },
        [&] {
          step_replay = std::make_unique<const StepReplay>(
              trace, device_steps, *graph, device_steps.clock == StepClock::kDevice);
        },
    };
    RunAll(of_graph);
  }
  LeaveOutHandOvers();
  host_is_contended = IsHostContended();
  Replay();
  if (has_detail) {
    const size_t training = TrainingDevicesFirst(device_steps, accounts);
    devices_and_strays = accounts;
    devices = devices_and_strays.first(training);
    if (device_steps.count() != steps.count()) TimeOtherSteps();
    detail_check = CheckDetail(trace, device_steps, other_steps, host, devices, recording_of_step);
    if (detail_check.is_unlike) {
      quality.push_back({"steps_unlike_gpu_detail", QualitySeverity::kWarning, detail_check.others,
                         UnlikeText(detail_check)});
    }
  }
  saved_copies = FindSavedCopies(*this);
  device_doubt = DeviceDoubt(*this, device_rows);
  launch_doubt = LaunchDoubt(*this);
}

void RankModel::FindSilence(const ThreadActivities& activities) {
  const TrackId thread = device_steps.thread;
  if (thread == kNoTrack || device_steps.count() == 0) return;
  const Duration step{device_steps.device_window.Total().ns / device_steps.divisor()};
  if (step.ns <= 0) return;
  silence = SilenceOf(trace, activities.Of(thread), kSilentStretch, step);
  std::vector<Interval> waits;
  for (const Interval& time : silence.intervals()) {
    const CpuUse use = SumOf(UseDuring(activities.Of(thread).cpu, time));
    if (2 * use.waited.ns > std::max(time.Length(), use.silent).ns) waits.push_back(time);
  }
  unnamed_waits = IntervalSet::Union(std::move(waits));
}

// Of unnamed waits those for another thread, as the graph tells.
void RankModel::LeaveOutHandOvers() {
  if (unnamed_waits.intervals().empty()) return;
  std::vector<Interval> told;
  for (NodeId node = 1; node < graph->size(); ++node) {
    CancelPoint(node);
    bool is_handed_over = false;
    NodeId before = 0;
    for (EdgeId edge = graph->first_edge[node]; edge < graph->first_edge[node + 1]; ++edge) {
      is_handed_over |= graph->edge_kind[edge] == EdgeKind::kHandOver;
      if (graph->edge_kind[edge] == EdgeKind::kProgram) before = graph->from[edge];
    }
    if (!is_handed_over || HostThreadOf(trace, *graph, node) != device_steps.thread) continue;
    const int64_t begin = graph->ends[node] - graph->recorded.Duration(node);
    if (before == 0 || begin <= graph->ends[before]) continue;
    told.push_back({TraceTime{graph->ends[before]}, TraceTime{begin}});
  }
  unnamed_waits = unnamed_waits.Minus(IntervalSet::Union(std::move(told)));
}

void RankModel::FindOwnInput(const ThreadActivities& activities) {
  for (NodeId node = 1; node < graph->size(); ++node) {
    CancelPoint(node);
    if (graph->kind[node] != NodeKind::kInput) continue;
    const Row range{graph->row[node]};
    const Interval wait = trace.ranges.interval(range);
    const TrackId thread = trace.ranges.track[Index(range)];
    const auto [first, last] = trace.cpu_times.rows_of(thread);
    if (MakesBatchItself(trace.Text(trace.ranges.name[Index(range)]))) {
      own_input.push_back(range);
    } else if (first < last) {
      const auto uses = UseDuring(activities.Of(thread).cpu, wait);
      const bool computed = !uses.empty() && 2 * SumOf(uses).waited.ns <= wait.Length().ns;
      if (computed) own_input.push_back(range);
    }
  }
  std::sort(own_input.begin(), own_input.end());
}

void RankModel::OpenHost(const Steps& counted) {
  if (host.sampled_thread == kNoTrack) host_other = OpenOther(trace, counted, host);
  host_lines = OpenByLine(trace, counted, host);
}

void RankModel::Replay() {
  LeaveOutRecording();
  KeepSilenceThatCostsNothing();
  FindMissingNodes();
  step_replay->Forget();
}

void RankModel::LeaveOutRecording() {
  recording_cost = trace.api.size() == 0 ? RecordingCost{} : RecordingCostOf(trace);
  // Other programs come and go.
  if (device_steps.count() != steps.count() && !host_is_contended) {
    SlowedHost slowed = CompareHost(trace, *graph, host, device_steps,
                                    WithoutDeviceDetail(steps, DeviceGaps(trace)));
    recording_cost.measured = std::move(slowed.times);
    recording_of_step = slowed.per_step;
  }
  if (recording_cost.Any()) {
    steps_without_recording = step_replay->After({}, {.without_recording = &recording_cost});
    for (const RecordingCost& cost : {recording_cost.AtLeast(), recording_cost.AtMost()}) {
      other_recordings.push_back({cost, step_replay->After({}, {.without_recording = &cost})});
    }
  } else {
    const auto recorded = step_replay->recorded();
    steps_without_recording.assign(recorded.begin(), recorded.end());
  }
}

void RankModel::KeepSilenceThatCostsNothing() {
  if (silence.Empty()) return;
  const double mean = step_replay->MeanNs();
  silence_cut = HostWorkCut(trace, *graph, {{device_steps.thread, silence}});
  steps_without_silence = step_replay->After({}, {.silence = &silence_cut});
  // No two runs take the same time.
  constexpr double kAsLong = 0.01;
  if (std::abs(StepReplay::MeanOf(steps_without_silence) - mean) <= kAsLong * mean) return;
  silence = {};
  silence_cut = {};
  steps_without_silence.clear();
}

double RankModel::ShareWithoutLaunch() const {
  double most = 0;
  for (const DeviceAccount& device : devices) {
    if (device.ops_in_window == 0) continue;
    most = std::max(most, static_cast<double>(device.ops_without_launch) /
                              static_cast<double>(device.ops_in_window));
  }
  return most;
}

bool RankModel::IsHostContended() const {
  constexpr double kMuchPreempted = 0.02;  // of the stepping thread's time
  const bool is_busy = std::any_of(host_facts.begin(), host_facts.end(),
                                   [](const HostFact& fact) { return fact.id == "cpu_busy"; });
  if (is_busy || steps.thread == kNoTrack) return is_busy;
  const Duration preempted = PreemptedWithin(trace, steps.thread, steps.window);
  return static_cast<double>(preempted.ns) >
         kMuchPreempted * static_cast<double>(steps.window.Total().ns);
}

void RankModel::FindMissingNodes() {
  const bool any = std::any_of(graph->residuals.begin(), graph->residuals.end(),
                               [](const Residual& residual) { return residual.is_behind_graph; });
  if (!any) return;
  steps_with_all_nodes = step_replay->After({}, {.has_all_graph_nodes = true});
}

// How long steps took of which the devices were not recorded, from what those took that were.
void RankModel::TimeOtherSteps() {
  Duration busiest;  // with the moments between two operations of a full queue
  for (const DeviceAccount& device : devices) {
    busiest = std::max(busiest, device.BusyWithin(device_steps.device_window) +
                                    device.Of(DeviceClass::kIdleDependency));
  }
  if (steps.clock == StepClock::kDevice) {
    SetUnknownTimes(Duration{busiest.ns / device_steps.divisor()}, device_steps, steps);
  }
  other_steps = WithoutDeviceDetail(steps, DeviceGaps(trace));
}

// Devices are accounted over the steps that show them. False where none does: nothing can be said
// of them.
bool RankModel::ChooseDeviceSteps() {
  if (trace.device_ops.size() == 0) return false;
  const IntervalSet gaps = DeviceGaps(trace);
  Steps detail = WithDeviceDetail(steps, gaps);
  if (detail.window.Empty() && !steps.window.Empty()) {
    quality.push_back({"no_step_with_device_detail", QualitySeverity::kWarning,
                       static_cast<int64_t>(std::max<size_t>(1, steps.count())),
                       "device activity was recorded outside the counted steps only"});
    steps = ByHost(std::move(steps));
    device_steps = steps;
    return false;
  }
  device_steps = std::move(detail);
  if (device_steps.clock == StepClock::kHost) steps = ByHost(std::move(steps));
  return true;
}

std::string UnlikeText(const DetailCheck& check) {
  const auto text = [](Duration d) { return TimeText(d.ToMilliseconds()); };
  std::string all = fmt::format("steps without GPU detail take {}, those with it {}",
                                text(check.other_step), text(check.step));
  if (check.recording.ns > 0) {
    all += fmt::format(", of which recording it takes {}", text(check.recording));
  }
  if (check.wait.ns > 0 || check.other_wait.ns > 0) {
    all += fmt::format("; they wait {} and {} for the loader", text(check.other_wait),
                       text(check.wait));
  }
  return all;
}

}  // namespace trainprof
