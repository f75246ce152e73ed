// Runs the stages in order and copies out what reports need.
#include "analysis/analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <type_traits>

#include "analysis/idle.h"
#include "analysis/rule.h"
#include "trace/cancel.h"
#include "trace/missing_rows.h"

namespace trainprof {
namespace {

template <class Class, size_t N>
std::vector<AccountLine> Lines(const std::array<Duration, N>& totals) {
  std::vector<AccountLine> lines;
  for (size_t i = 0; i < N; ++i) {
    const Class c = static_cast<Class>(i);
    lines.push_back({Name(c), Title(c), totals[i], {}});
    if constexpr (std::is_same_v<Class, DeviceClass>) lines.back().meaning = Meaning(c);
  }
  return lines;
}

// Mean of the kernels' theoretical occupancy, weighted by their time within the window.
double OccupancyOf(const Trace& trace, const Steps& steps, DeviceId device) {
  const StringId key = trace.strings.Find("theoretical occupancy %");
  if (key == kEmptyString) return -1;
  double weighted = 0;
  double weight = 0;
  for (uint32_t row = 0; row < trace.device_ops.size(); ++row) {
    CancelPoint(row);
    if (trace.tracks[Index(trace.device_ops.track[row])].device != device) continue;
    const auto percent = trace.args.Find(trace.device_ops.args[row], key);
    if (!percent || percent->type != ArgValue::Type::kDouble) continue;
    const Interval interval = trace.device_ops.interval(Row{row});
    const auto ns = static_cast<double>(steps.window.TotalWithin(interval).ns);
    weighted += percent->real / 100 * ns;
    weight += ns;
  }
  return weight > 0 ? weighted / weight : -1;
}

DeviceReport Report(const Trace& trace, const Steps& steps, const DeviceAccount& account) {
  const Device& device = trace.devices[Index(account.device)];
  DeviceReport report;
  report.id = device.id;
  report.name = trace.Text(device.name);
  report.busy = account.BusyWithin(steps.window);
  report.busy_high = report.busy + account.Of(DeviceClass::kIdleUnrecorded);
  report.account = Lines<DeviceClass>(account.total);
  if (device.compute_major > 0) {
    report.compute_capability =
        std::to_string(device.compute_major) + "." + std::to_string(device.compute_minor);
  }
  report.multiprocessors = device.num_sms;
  report.memory_bytes = device.total_memory_bytes;
  report.is_mig_slice = device.is_mig_slice;
  report.occupancy = OccupancyOf(trace, steps, account.device);
  return report;
}

LoaderWait LoaderWaitOf(const Steps& steps, std::span<const DeviceAccount> devices,
                        const HostAccount& host) {
  std::vector<Interval> waits;
  for (const Segment<Phase>& segment : host.phases) {
    if (segment.value == Phase::kInputWait) waits.push_back(segment.interval);
  }
  const IntervalSet wait = IntervalSet::Union(std::move(waits)).IntersectWith(steps.window);
  LoaderWait loader{wait.Total(), {}};
  if (devices.empty()) loader.during_idle = loader.total;
  for (const DeviceAccount& device : devices) {
    loader.during_idle = std::max(loader.during_idle, wait.Minus(device.busy).Total());
  }
  return loader;
}

// Moves the devices that train to the front, in their order, and counts them.
size_t TrainingDevicesFirst(const Steps& steps, std::span<DeviceAccount> devices) {
  Duration most;
  for (const DeviceAccount& device : devices) {
    most = std::max(most, device.BusyWithin(steps.window));
  }
  const auto trains = [&](const DeviceAccount& device) {
    return static_cast<double>(device.BusyWithin(steps.window).ns) >=
           kStrayShare * static_cast<double>(most.ns);
  };
  const auto end = std::stable_partition(devices.begin(), devices.end(), trains);
  return static_cast<size_t>(end - devices.begin());
}

// Missing rows that leave less than this of the steps open change no verdict.
constexpr double kNegligibleShare = 0.01;

// See RankAnalysis::device_doubt.
std::string DeviceDoubt(const Trace& trace, const RankAnalysis& analysis,
                        std::span<const DeviceAccount> devices) {
  if (trace.quality.CountOf(kTruncatedInput) > 0) {
    return "the input ends early: any row of what the device did may be missing";
  }
  if (const auto unknown = trace.quality.CountOf("unknown_device_rows"); unknown > 0) {
    return fmt::format("device rows are of kinds that trainprof does not know ({})",
                       NamesOfUnknownDeviceRows(trace));
  }
  if (devices.empty()) {
    if (trace.device_ops.size() > 0) return "device activity was recorded outside the steps only";
    const size_t launches = LaunchesWithoutRow(trace).size();
    if (launches == 0) return {};
    return fmt::format("{} launches and copies, and no row of what a device did", launches);
  }
  double worst = 0;
  for (const DeviceAccount& device : devices) {
    worst = std::max(worst, analysis.DeviceShare(device.missing_rows));
  }
  if (worst < kNegligibleShare) return {};
  return fmt::format(
      "launches without a row of what the device did leave {:.0f} % of the time open", 100 * worst);
}

void RunRules(const RuleContext& context, RankAnalysis& analysis) {
  for (const RegisteredRule& entry : AllRules()) {
    CancelPoint();
    RuleOutcome outcome = entry.rule->check(context);
    if (const auto* skipped = std::get_if<Skipped>(&outcome)) {
      analysis.skipped.push_back({std::string(entry.slug), skipped->reason});
      continue;
    }
    auto& findings = std::get<std::vector<Finding>>(outcome);
    if (findings.empty() && !context.device_doubt.empty()) {
      // Not found in what there is: not checked in what is missing.
      analysis.skipped.push_back({std::string(entry.slug), context.device_doubt});
    } else if (findings.empty()) {
      analysis.passed.emplace_back(entry.slug);
    }
    for (Finding& finding : findings) {
      finding.rule = entry.slug;
      finding.code = entry.rule->code;
      SortSites(finding.where);
      RateConfidence(context, finding);
      analysis.findings.push_back(std::move(finding));
    }
  }
  std::stable_sort(analysis.findings.begin(), analysis.findings.end(),
                   [](const Finding& a, const Finding& b) {
                     return a.gain.high_ms_per_step > b.gain.high_ms_per_step;
                   });
}

void CountEvents(const Trace& trace, RankAnalysis& analysis) {
  for (DeviceOpKind kind : trace.device_ops.kind) {
    ++(kind == DeviceOpKind::kKernel ? analysis.kernels : analysis.copies);
  }
  analysis.api_calls = trace.api.size();
  analysis.ranges = trace.ranges.size();
}

// Devices are accounted over the steps that show them. False where none does: nothing can be said
// of them.
bool ChooseDeviceSteps(const Trace& trace, RankAnalysis& analysis) {
  analysis.device_steps = analysis.steps;
  if (trace.device_ops.size() == 0) return false;
  Steps detail = WithDeviceDetail(analysis.steps, DeviceGaps(trace));
  if (detail.window.Empty() && !analysis.steps.window.Empty()) {
    analysis.quality.push_back({"no_step_with_device_detail", QualitySeverity::kWarning,
                                static_cast<int64_t>(std::max<size_t>(1, analysis.steps.count())),
                                "device activity was recorded outside the counted steps only"});
    return false;
  }
  analysis.device_steps = std::move(detail);
  return true;
}

}  // namespace

AnalysisWithAccounts AnalyzeWithAccounts(const Trace& trace) {
  RankAnalysis analysis;
  analysis.path = trace.path;
  analysis.source = trace.source;
  analysis.rank = trace.rank;
  analysis.rank_known = trace.rank_known;
  analysis.world_size = trace.world_size;
  analysis.base_ns = trace.base_ns;
  analysis.quality = trace.quality.items();
  analysis.environment = trace.environment;
  CountEvents(trace, analysis);

  analysis.steps = FindSteps(trace);
  analysis.window = analysis.steps.window.Total();
  analysis.host_facts = FindHostFacts(trace, analysis.steps);
  const bool has_detail = ChooseDeviceSteps(trace, analysis);
  std::vector<DeviceAccount> accounts = AccountDevices(trace, analysis.device_steps);
  std::span<DeviceAccount> devices(accounts.data(), has_detail ? accounts.size() : 0);
  analysis.device_window = analysis.device_steps.window.Total();
  const HostAccount host = AccountHost(trace, analysis.steps);
  const size_t training = TrainingDevicesFirst(analysis.device_steps, devices);
  for (size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].ops_in_window == 0) continue;
    analysis.devices.push_back(Report(trace, analysis.device_steps, devices[i]));
    analysis.devices.back().stray = i >= training;
  }
  devices = devices.first(training);
  analysis.host_account = Lines<HostClass>(host.total);
  analysis.host_other = OpenOther(trace, analysis.steps, host);
  analysis.loader_wait = LoaderWaitOf(analysis.device_steps, devices, host);
  analysis.has_host_phases = host.Of(HostClass::kOther) != analysis.window;

  const std::vector<bool> blocking = FindBlockingCalls(trace);
  const SiteFinder sites(trace);
  analysis.device_doubt = DeviceDoubt(trace, analysis, devices);
  RunRules({trace, analysis.device_steps, devices, host, blocking, sites, analysis.device_doubt},
           analysis);
  return {std::move(analysis), std::move(accounts)};
}

RankAnalysis Analyze(const Trace& trace) { return AnalyzeWithAccounts(trace).analysis; }

}  // namespace trainprof
