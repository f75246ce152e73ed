// input wait while the device stands idle > 5 % of the steps' time  =>  the loader is too slow
//
// On a recording without device work (a CPU run) every wait is exposed.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/rule.h"
#include "analysis/run_ahead.h"
#include "trace/cancel.h"

namespace trainprof::rules {
namespace {

// Shares of the steps' time; torch_tb_profiler warned at 5 %, TraceML calls 20 % critical.
constexpr double kWarnShare = 0.05;
constexpr double kErrorShare = 0.20;
// One slow batch is not a slow loader: at least half of the steps must wait.
constexpr double kMinShareOfSteps = 0.5;
// With workers beside it, the training thread itself gets slower: on kineto_resnet50 its other work
// went from 105 to 126 ms a step when the loader went from 0 to 4 workers.
constexpr double kContention = 1.2;
// Workers never hide all of the exposed wait: 85 % of it on kineto_resnet50, 84 % on a virtual GPU.
constexpr double kHidden = 0.8;

struct Wait {
  IntervalSet raw;      // the loader's ranges on the stepping thread
  IntervalSet exposed;  // the part during which the device was idle for it
};

Wait WaitOf(const RuleContext& context) {
  std::vector<Interval> raw;
  for (const Segment<Phase>& segment : context.host.phases) {
    if (segment.value == Phase::kInputWait) raw.push_back(segment.interval);
  }
  Wait wait{IntervalSet::Union(std::move(raw)), {}};
  if (context.devices.empty()) {
    wait.exposed = wait.raw;
    return wait;
  }
  // The device that waits most: a rank is as slow as that one.
  for (const DeviceAccount& device : context.devices) {
    std::vector<Interval> idle;
    for (const Segment<DeviceClass>& segment : device.idle) {
      if (segment.value == DeviceClass::kIdleInputWait) idle.push_back(segment.interval);
    }
    IntervalSet exposed = IntervalSet::Union(std::move(idle));
    const auto total = [&](const IntervalSet& s) {
      return s.IntersectWith(context.steps.window).Total();
    };
    if (total(exposed) > total(wait.exposed)) wait.exposed = std::move(exposed);
  }
  return wait;
}

double ShareOfStepsThatWait(const RuleContext& context, const IntervalSet& exposed) {
  if (context.steps.steps.empty()) return 1;
  int64_t waiting = 0;
  for (const Step& step : context.steps.steps) {
    const Duration wait = exposed.TotalWithin(step.span);
    if (static_cast<double>(wait.ns) > kWarnShare * static_cast<double>(step.span.Length().ns)) {
      ++waiting;
    }
  }
  return static_cast<double>(waiting) / static_cast<double>(context.steps.count());
}

// High: the exposed wait goes, and where nothing else holds the host, all idle time of its pace
// with it. Low: part of the wait goes, and the training thread pays for the workers' company: the
// step cannot get shorter than that thread's own work.
Gain GainOf(const RuleContext& context, Duration raw, Duration exposed) {
  const double step = context.steps.MeanMilliseconds();
  const double wait = context.PerStepMs(exposed);
  const double own_work = step - context.PerStepMs(raw);
  const bool ahead = !context.devices.empty() && HostRunsAhead(context, {});
  const double high = ahead ? std::max(wait, context.PerStepMs(HostPacedIdle(context))) : wait;
  return {std::clamp(step - kContention * own_work, 0.0, kHidden * wait), high};
}

struct Loader {
  int64_t count = 0;
  bool in_process = false;  // torch's iterator without workers
  bool torch = false;
};

Loader Describe(const RuleContext& context, Finding& finding) {
  Loader loader;
  const RangeTable& ranges = context.trace.ranges;
  const auto [first, last] = ranges.rows_of(context.steps.thread);
  for (uint32_t i = first; i < last; ++i) {
    CancelPoint(i);
    if (PhaseOf(context.trace, Row{i}) != Phase::kInputWait) continue;
    if (!context.InWindow(ranges.interval(Row{i}))) continue;
    const Row parent = ranges.parent[i];
    if (parent != kNoRow && PhaseOf(context.trace, parent) == Phase::kInputWait) continue;
    ++loader.count;
    const std::string_view name = context.trace.Text(ranges.name[i]);
    loader.torch |= name.starts_with("enumerate(");
    loader.in_process |= name.find("_SingleProcessDataLoaderIter") != std::string_view::npos;
    AddSite(finding.where, context.sites.Find(context.steps.thread, ranges.begin[i]));
    finding.evidence.push_back(
        {fmt::format("{} took {:.1f} ms", name, ranges.interval(Row{i}).Length().ToMilliseconds()),
         ranges.interval(Row{i})});
  }
  constexpr size_t kShown = 3;
  std::stable_sort(
      finding.evidence.begin(), finding.evidence.end(),
      [](const Evidence& a, const Evidence& b) { return a.when.Length() > b.when.Length(); });
  finding.evidence.resize(std::min(finding.evidence.size(), kShown));
  return loader;
}

std::string Advice(const RuleContext& context, const Loader& loader, Duration raw) {
  const double wait = context.PerStepMs(raw);
  const double rest = context.steps.MeanMilliseconds() - wait;
  if (loader.in_process) {
    const int workers = std::max(1, static_cast<int>(wait / std::max(rest, 1e-3)) + 1);
    return fmt::format(
        "The DataLoader works inside the training loop (num_workers=0) and takes {:.1f} ms a "
        "batch; "
        "the rest of the step takes {:.1f} ms. Give it num_workers >= {} (at most the cores of "
        "this "
        "rank), persistent_workers=True when epochs are short, pin_memory=True.",
        wait, rest, workers);
  }
  if (loader.torch) {
    return "The DataLoader's workers do not keep up. Workers needed = time to make one batch / "
           "time "
           "of the rest of the step, rounded up, at most the cores of this rank; beyond that make "
           "samples cheaper: decode smaller images, packed or memory-mapped files, augment on the "
           "GPU (send uint8, normalise there).";
  }
  return fmt::format(
      "Each step waits {:.1f} ms for its batch; the rest of the step takes {:.1f} ms. Load in "
      "parallel: workers = time to make one batch / time of the rest of the step, rounded up, at "
      "most the cores of this rank (LibTorch: DataLoaderOptions().workers(N), threads; Python: "
      "num_workers=N). Else make samples cheaper: smaller images, packed files, less augmentation.",
      wait, rest);
}

RuleOutcome Check(const RuleContext& context) {
  const Wait wait = WaitOf(context);
  if (wait.raw.Empty()) {
    return Skipped{"no range in the trace shows the data loader's wait"};
  }
  const Duration exposed = wait.exposed.IntersectWith(context.steps.window).Total();
  const double share = context.ShareOfWindow(exposed);
  if (share <= kWarnShare || ShareOfStepsThatWait(context, wait.exposed) < kMinShareOfSteps) {
    return std::vector<Finding>{};
  }
  const Duration raw = wait.raw.IntersectWith(context.steps.window).Total();
  Finding finding;
  finding.severity = share > kErrorShare ? Severity::kError : Severity::kWarning;
  finding.title = fmt::format("Input wait: {:.1f} {}, {:.0f} % of the time, {}",
                              context.PerStepMs(exposed), context.Unit(), 100 * share,
                              context.devices.empty() ? "the training loop waits for its batch"
                                                      : "the GPU stands idle for the next batch");
  finding.cost = exposed;
  finding.gain = GainOf(context, raw, exposed);
  const Loader loader = Describe(context, finding);
  finding.count = loader.count;
  finding.advice = Advice(context, loader, raw);
  finding.verify = fmt::format(
      "Record again: {} should fall below 5 % of the step.",
      context.devices.empty() ? "waiting for input" : Name(DeviceClass::kIdleInputWait));
  return std::vector<Finding>{std::move(finding)};
}

constexpr ExplainedClass kExplains[] = {{DeviceClass::kIdleInputWait}, {HostClass::kInputWait}};

}  // namespace

extern const Rule input_bound = {"TP101", "data loading holds up the step", Check, kExplains};

}  // namespace trainprof::rules
