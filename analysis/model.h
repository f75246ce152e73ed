// What is computed once of a rank, and read by rules, reports, tables and the viewer: nobody works
// out for himself what stands here.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/account/account.h"
#include "analysis/account/detail_check.h"
#include "analysis/account/host_other.h"
#include "analysis/account/phase_lines.h"
#include "analysis/account/slowed_host.h"
#include "analysis/graph/step_replay.h"
#include "analysis/host/call_sites.h"
#include "analysis/host/copy_calls.h"
#include "analysis/host/host_facts.h"
#include "analysis/steps/device_rows.h"
#include "analysis/steps/steps.h"
#include "analysis/steps/workload.h"
#include "trace/tables/trace.h"

namespace trainprof {

struct RankModel {
  // O(n log n) in the trace's events. Can be cancelled (trace/base/cancel.h). The trace must
  // outlive it. `warmup_steps`: see FindSteps.
  explicit RankModel(const Trace& of, std::optional<int> warmup_steps = std::nullopt);
  RankModel(RankModel&&) = default;

  const Trace& trace;
  DeviceRows device_rows;
  Steps steps;
  Workload workload = Workload::kUnknown;
  // What accounts of devices, the loader's wait and findings are over: `steps` without those during
  // which devices were not recorded. The same as `steps` without devices, or without such gaps.
  Steps device_steps;
  Steps other_steps;  // of `steps`, those without any record of devices: WithoutDeviceDetail
  DetailCheck detail_check;
  std::vector<bool> blocking_calls;    // per row of trace.api, see FindBlockingCalls
  std::vector<CopyCall> copies;        // within device_steps, see FindCopyCalls
  std::vector<CopyCall> saved_copies;  // of these, see FindSavedCopies
  std::vector<bool> feeders;           // by track, see FindFeeders
  SiteFinder sites;
  HostAccount host;      // over `steps`
  OtherTime host_other;  // what "other" of that account holds; nothing where phases are sampled
  std::vector<PhaseLines> host_lines;  // what its phases hold, by source line
  // Of every device that has operations, over `device_steps`. Those that train come first.
  std::vector<DeviceAccount> accounts;
  // Of `accounts`, those of devices that train; none where no step shows what devices did.
  std::span<const DeviceAccount> devices;
  // The same with those that take no part in the training (kStrayShare), behind them.
  std::span<const DeviceAccount> devices_and_strays;
  // What waited for what, over `device_steps`, and how long these would take after a change.
  std::unique_ptr<const Graph> graph;
  std::unique_ptr<const StepReplay> step_replay;
  // What recording took of calls, and the steps' times without it: those of step_replay where it is not known.
  RecordingCost recording_cost;
  Duration recording_of_step;  // SlowedHost::per_step
  std::vector<int64_t> steps_without_recording;
  // The same for the least and the most that it may have taken; none where nothing is known.
  struct Unrecorded {
    RecordingCost cost;
    std::vector<int64_t> steps;
  };
  std::vector<Unrecorded> other_recordings;
  // When nothing shows that the stepping thread worked (SilenceOf), where it may as well have waited for a
  // device, somehow: the steps would have taken as long, had it not. What goes then of its work, and what steps take, as
  // those of step_replay->recorded().
  IntervalSet silence;
  HostWorkCut silence_cut;
  std::vector<int64_t> steps_without_silence;
  // Of such times, those in which the thread waited as looks at its use of the CPU show, for what nothing tells.
  IntervalSet unnamed_waits;
  // Waits for input in which the thread made the batch itself, as their name says or looks at its use of the CPU show,
  // by which it waited for less than half of that: rows of trace.ranges, in order. No worker's pace limits these.
  std::vector<Row> own_input;
  // The steps' times if no node of a graph were missing; empty where none may be.
  std::vector<int64_t> steps_with_all_nodes;
  std::vector<HostFact> host_facts;  // over `steps`
  // More wanted to run than there were processors: runs differ by more than elsewhere.
  bool host_is_contended = false;
  // Why what devices did is not known well enough to say that nothing is wrong: rows are missing,
  // or not understood. Empty where they are all there.
  std::string device_doubt;
  // Why it is not known what devices waited for: launches are missing. Empty where that leaves hardly any time open.
  std::string launch_doubt;
  std::vector<QualityItem> quality;  // the trace's, and what was found here

  double PerStepMs(Duration total) const {
    return total.ToMilliseconds() / static_cast<double>(device_steps.divisor());
  }
  // What stands behind a figure of PerStepMs: "ms/step", or "ms in all" where there are no steps.
  std::string_view Unit() const { return device_steps.count() > 0 ? "ms/step" : "ms in all"; }
  double ShareOfWindow(Duration part) const {
    const Duration whole = device_steps.device_window.Total();
    return whole.ns == 0 ? 0 : static_cast<double>(part.ns) / static_cast<double>(whole.ns);
  }
  // Of the operations in the steps those whose launch is not recorded, on the device with most: what these waited
  // for nothing tells.
  double ShareWithoutLaunch() const;
  // What the host did: a call, a range.
  bool InWindow(const Interval& interval) const {
    return device_steps.window.TotalWithin(interval).ns > 0;
  }
  // What a device did.
  bool InDeviceWindow(const Interval& interval) const {
    return device_steps.device_window.TotalWithin(interval).ns > 0;
  }

 private:
  bool ChooseDeviceSteps();
  void TimeOtherSteps();
  void FindSilence(const ThreadActivities& activities);
  void Replay();
  void FindOwnInput(const ThreadActivities& activities);
  void OpenHost(const Steps& counted);
  void LeaveOutRecording();
  void KeepSilenceThatCostsNothing();
  void LeaveOutHandOvers();
  bool IsHostContended() const;
  void FindMissingNodes();
};

// "steps without GPU detail take 2.6 ms, those with it 1.9 ms; they wait 0.7 ms for the loader, ..."
std::string UnlikeText(const DetailCheck& check);

}  // namespace trainprof
