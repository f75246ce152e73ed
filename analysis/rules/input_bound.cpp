// input wait while the device stands idle > 5 % of the steps' time  =>  the loader is too slow
//
// On a recording without device work (a CPU run) every wait is exposed.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/program.h"
#include "analysis/rule.h"
#include "analysis/run_ahead.h"
#include "analysis/words.h"
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
  const std::vector<bool> waits = FindInputWaits(context.trace, context.steps.thread);
  for (uint32_t i = first; i < last; ++i) {
    CancelPoint(i);
    if (!waits[i - first]) continue;
    if (!context.InWindow(ranges.interval(Row{i}))) continue;
    const Row parent = ranges.parent[i];
    if (parent != kNoRow && waits[Index(parent) - first]) continue;
    ++loader.count;
    const std::string_view name = context.trace.Text(ranges.name[i]);
    loader.torch |= name.starts_with("enumerate(");
    loader.in_process |= name.find("_SingleProcessDataLoaderIter") != std::string_view::npos;
    AddSite(finding.where, context.sites.Find(context.steps.thread, ranges.begin[i]));
    finding.evidence.push_back(
        {fmt::format("{} took {:.1f} ms", name, ranges.interval(Row{i}).Length().ToMilliseconds()),
         ranges.interval(Row{i}), Table::kRanges, Row{i}});
  }
  constexpr size_t kShown = 3;
  std::stable_sort(
      finding.evidence.begin(), finding.evidence.end(),
      [](const Evidence& a, const Evidence& b) { return a.when.Length() > b.when.Length(); });
  finding.evidence.resize(std::min(finding.evidence.size(), kShown));
  return loader;
}

constexpr double kShortestRest = 1e-3;     // ms: where nothing else is left of a step
constexpr double kBusyWorkerPercent = 80;  // of a core: more workers want more cores

// " (this rank has 8 cores)"; "" where that was not recorded.
std::string CoresText(int64_t cores) {
  return cores == 0 ? "" : fmt::format(" (this rank has {})", Counted(cores, "core", "cores"));
}

std::string CheaperSamples(const RuleContext& context) {
  return fmt::format("make samples cheaper: smaller images, packed or memory-mapped files{}",
                     context.devices.empty()
                         ? ", less augmentation"
                         : ", augmentation on the GPU (send uint8, normalise there)");
}

// `workers` as the program's language writes it.
std::string WorkersText(Language language, int64_t workers) {
  return InItsLanguage(language, fmt::format("DataLoader(num_workers={})", workers),
                       fmt::format("DataLoaderOptions().workers({}), which are threads", workers));
}

// So many that a batch is there each time one is needed, as far as there is room for them.
struct Workers {
  int64_t count = 0;
  bool enough = true;
};

Workers WorkersFor(double batches_at_once, int64_t cores) {
  constexpr int64_t kMost = 64;  // where cores are not known
  const int64_t most = cores > 0 ? cores : kMost;
  if (batches_at_once >= static_cast<double>(most)) return {most, false};
  return {static_cast<int64_t>(batches_at_once) + 1, true};
}

// With no worker to see, a batch takes as long to make as the loop waits for it.
std::string AdviceWithoutWorkers(const RuleContext& context, const Loader& loader, double wait,
                                 double rest) {
  const int64_t cores = CoresOfRank(context.trace);
  const auto [workers, enough] = WorkersFor(wait / std::max(rest, kShortestRest), cores);
  std::string text =
      loader.in_process
          ? fmt::format(
                "The DataLoader works inside the training loop (num_workers=0) and takes "
                "{:.1f} ms a batch; the rest of the step takes {:.1f} ms. Give it "
                "num_workers={} or a little more",
                wait, rest, workers)
          : fmt::format(
                "Each step waits {:.1f} ms for its batch; the rest of the step takes "
                "{:.1f} ms. Load in parallel, with {} if loading is serial now: {}",
                wait, rest, Counted(workers, "worker", "workers"),
                WorkersText(LanguageOf(context.trace), workers));
  text += CoresText(cores);
  if (loader.in_process) text += ", and persistent_workers=True when epochs are short";
  if (loader.in_process && !context.devices.empty()) text += ", and pin_memory=True";
  return text + (enough ? ". If that is not enough, " : ". That will not be enough: ") +
         CheaperSamples(context) + ".";
}

// N workers that never rest make a batch in N steps each.
std::string AdviceForWorkers(const RuleContext& context, double step, double rest) {
  const int64_t cores = CoresOfRank(context.trace);
  const LoaderWorkers seen = FindLoaderWorkers(context.trace, context.steps);
  if (seen.count == 0) {
    return fmt::format(
        "The DataLoader's workers do not keep up: workers needed = time to make one "
        "batch / {:.1f} ms (the rest of the step), rounded up, at most the cores of "
        "this rank{}. Beyond that {}.",
        rest, CoresText(cores), CheaperSamples(context));
  }
  const auto [needed, enough] =
      WorkersFor(static_cast<double>(seen.count) * step / std::max(rest, kShortestRest), cores);
  std::string text = fmt::format(
      "The DataLoader's {} {} not keep up (each busy for {:.0f} % of a core): a step needs a batch "
      "every {:.1f} ms. ",
      Counted(seen.count, "worker", "workers"), seen.count == 1 ? "does" : "do", seen.cpu_percent,
      rest);
  if (!enough) {
    text += fmt::format("Even {}{} would not be enough: ", needed, CoresText(cores));
  } else {
    text +=
        fmt::format("About {} would keep up{}: num_workers={}. ", needed, CoresText(cores), needed);
    if (seen.cpu_percent < kBusyWorkerPercent) {
      text += "They wait rather than compute: look at the storage first. ";
    }
    text += "Else ";
  }
  return text + CheaperSamples(context) + ".";
}

std::string Advice(const RuleContext& context, const Loader& loader, Duration raw) {
  const double step = context.steps.MeanMilliseconds();
  const double wait = context.PerStepMs(raw);
  if (loader.torch && !loader.in_process) return AdviceForWorkers(context, step, step - wait);
  return AdviceWithoutWorkers(context, loader, wait, step - wait);
}

RuleOutcome Check(const RuleContext& context) {
  const Wait wait = WaitOf(context);
  if (wait.raw.Empty()) {
    return Skipped{"no range in the trace shows the data loader's wait"};
  }
  // A device that shows nothing of what it did is not a CPU run.
  if (context.devices.empty() && !context.device_doubt.empty()) return context.NoDevices();
  const Duration exposed = wait.exposed.IntersectWith(context.steps.window).Total();
  const double share = context.ShareOfWindow(exposed);
  if (share <= kWarnShare || ShareOfStepsThatWait(context, wait.exposed) < kMinShareOfSteps) {
    return std::vector<Finding>{};
  }
  const Duration raw = wait.raw.IntersectWith(context.steps.window).Total();
  Finding finding;
  finding.severity = share > kErrorShare ? Severity::kError : Severity::kWarning;
  finding.title =
      fmt::format("Input wait: {:.1f} {}, {} of the {}, {}", context.PerStepMs(exposed),
                  context.Unit(), Percent(share), context.steps.count() > 0 ? "mean step" : "time",
                  context.devices.empty() ? "the training loop waits for its batch"
                                          : "the GPU stands idle for the next batch");
  finding.cost = exposed;
  finding.gain = GainOf(context, raw, exposed);
  const Loader loader = Describe(context, finding);
  finding.count = loader.count;
  finding.advice = Advice(context, loader, raw);
  finding.verify = fmt::format("Record again: {} should fall below 5 % of the {}.",
                               Title(DeviceClass::kIdleInputWait),
                               context.steps.count() > 0 ? "mean step" : "time");
  return std::vector<Finding>{std::move(finding)};
}

constexpr ExplainedClass kExplains[] = {{DeviceClass::kIdleInputWait}, {HostClass::kInputWait}};

}  // namespace

extern const Rule input_bound = {"TP101", "data loading holds up the step", Check, kExplains};

}  // namespace trainprof::rules
