// input wait while the device stands idle > 5 % of the steps' time  =>  the loader is too slow
//
// On a recording without device work (a CPU run) every wait is exposed. Where devices were recorded in
// samples of steps and the loader is slower in the others, these are judged by their length.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/host/program.h"
#include "analysis/rule.h"
#include "analysis/words.h"
#include "trace/base/cancel.h"

namespace trainprof::rules {
namespace {

// Shares of the steps' time; torch_tb_profiler warned at 5 %, TraceML calls 20 % critical. Less is a
// note.
constexpr double kWarnShare = 0.05;
constexpr double kErrorShare = 0.20;
// Confidence of what follows from the length of steps of which no device is recorded.
constexpr double kByLength = 0.9;

struct Wait {
  IntervalSet raw;      // the loader's ranges on the stepping thread
  IntervalSet exposed;  // the part during which the device was idle for it
};

Wait WaitOf(const RankModel& model) {
  Wait wait{model.host.InputWait(), {}};
  if (model.devices.empty()) {
    wait.exposed = wait.raw;
    return wait;
  }
  // The device that waits most: a rank is as slow as that one.
  for (const DeviceAccount& device : model.devices) {
    std::vector<Interval> idle;
    for (const Segment<DeviceClass>& segment : device.idle) {
      if (segment.value == DeviceClass::kIdleInputWait) idle.push_back(segment.interval);
    }
    IntervalSet exposed = IntervalSet::Union(std::move(idle));
    const auto total = [&](const IntervalSet& s) {
      return s.TotalWithin(model.device_steps.device_window);
    };
    if (total(exposed) > total(wait.exposed)) wait.exposed = std::move(exposed);
  }
  return wait;
}

struct Loader {
  std::vector<Row> waits;
  bool in_process = false;  // torch's iterator without workers
  bool torch = false;
  bool own_code = false;  // the loop gets its batches from no loader and no queue
};

// The waits of `steps`, and where they are.
Loader Describe(const RankModel& model, const Steps& steps, Finding& finding) {
  Loader loader;
  const RangeTable& ranges = model.trace.ranges;
  const auto [first, last] = ranges.rows_of(steps.thread);
  const std::vector<bool> waits = FindInputWaits(model.trace, steps.thread);
  for (uint32_t i = first; i < last; ++i) {
    CancelPoint(i);
    if (!waits[i - first]) continue;
    if (steps.window.TotalWithin(ranges.interval(Row{i})).ns == 0) continue;
    const Row parent = ranges.parent[i];
    if (parent != kNoRow && waits[Index(parent) - first]) continue;
    loader.waits.push_back(Row{i});
    const std::string_view name = model.trace.Text(ranges.name[i]);
    loader.torch |= name.starts_with("enumerate(");
    loader.in_process |= name.find("_SingleProcessDataLoaderIter") != std::string_view::npos;
    loader.own_code |= name == kOwnBatch;
    AddSite(finding.where, model.sites.FindRange(Row{i}));
    finding.evidence.push_back(
        {fmt::format("{} took {}", name,
                     TimeText(ranges.interval(Row{i}).Length().ToMilliseconds())),
         ranges.interval(Row{i}), Table::kRanges, Row{i}});
  }
  KeepWorst(finding.evidence,
            [](const Evidence& a, const Evidence& b) { return a.when.Length() > b.when.Length(); });
  return loader;
}

// Handing over a batch that a worker has made takes some tenths of a millisecond.
constexpr double kHandOverMs = 0.5;
constexpr double kShortestRest = 1e-3;     // ms: where nothing else is left of a step
constexpr double kBusyWorkerPercent = 80;  // of a core: more workers want more cores

// " (this rank has 8 cores)"; "" where that was not recorded.
std::string CoresText(int64_t cores) {
  return cores == 0 ? "" : fmt::format(" (this rank has {})", Counted(cores, "core", "cores"));
}

std::string CheaperSamples(const RankModel& model) {
  return fmt::format("make samples cheaper: smaller images, packed or memory-mapped files{}",
                     model.devices.empty()
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

// `busy_share`: of a core, of each.
Workers WorkersFor(double batches_at_once, int64_t cores, double busy_share = 1) {
  constexpr int64_t kMost = 64;  // where cores are not known, or are hardly used
  const int64_t most = cores > 0
                           ? std::max(cores, static_cast<int64_t>(std::min<double>(
                                                 kMost, static_cast<double>(cores) / busy_share)))
                           : kMost;
  if (batches_at_once >= static_cast<double>(most)) return {most, false};
  return {static_cast<int64_t>(batches_at_once) + 1, true};
}

// That a step takes: more than one where gradients of several are added up. Steps that took none, and the question of a
// loader that has none left, are not counted.
double BatchesPerStep(const Loader& loader, const Steps& steps) {
  const double mean =
      static_cast<double>(loader.waits.size()) / static_cast<double>(steps.divisor());
  return mean < 1.5 ? 1 : mean;
}

// Batches that are made faster than a worker could hand them over.
std::string AdviceForSmallBatches(double wait, double rest) {
  return fmt::format(
      "The DataLoader works inside the training loop (num_workers=0) and takes {} a step; the rest of "
      "the step takes {}. Workers would not help: handing a batch over takes them longer. Make batches "
      "larger, or of one piece: DataLoader(dataset, batch_size=None, sampler=BatchSampler(...)) asks "
      "the dataset once for a whole batch.",
      TimeText(wait), TimeText(rest));
}

// With no worker to see, a batch takes as long to make as the loop waits for it.
std::string AdviceWithoutWorkers(const RankModel& model, const Loader& loader, double wait,
                                 double rest) {
  const int64_t cores = CoresOfRank(model.trace);
  const auto [workers, enough] = WorkersFor(wait / std::max(rest, kShortestRest), cores);
  const std::string by = WorkersText(LanguageOf(model.trace), workers);
  std::string text =
      loader.own_code
          ? fmt::format(
                "The loop makes its batches itself: {} from the end of a step to the next forward "
                "pass; the rest of the step takes {}. Load in parallel, with {}: {}",
                TimeText(wait), TimeText(rest), Counted(workers, "worker", "workers"), by)
      : loader.in_process
          ? fmt::format(
                "The DataLoader works inside the training loop (num_workers=0) and takes "
                "{} a step; the rest of the step takes {}. Give it "
                "num_workers={} or a little more",
                TimeText(wait), TimeText(rest), workers)
          : fmt::format(
                "Each step waits {} for its batch; the rest of the step takes "
                "{}. Load in parallel, with {} if loading is serial now: {}",
                TimeText(wait), TimeText(rest), Counted(workers, "worker", "workers"), by);
  text += CoresText(cores);
  if (loader.in_process) text += ", and persistent_workers=True when epochs are short";
  if (loader.in_process && !model.devices.empty()) text += ", and pin_memory=True";
  return text + (enough ? ". If that is not enough, " : ". That will not be enough: ") +
         CheaperSamples(model) + ".";
}

// N workers that never rest make a batch in N steps each.
std::string AdviceForWorkers(const RankModel& model, const Steps& steps, double wait,
                             double batches) {
  const int64_t cores = CoresOfRank(model.trace);
  const double step = steps.MeanMilliseconds();
  const double rest = (step - wait) / batches;  // in which one batch is needed
  const LoaderWorkers seen = FindLoaderWorkers(model.trace, steps);
  if (seen.count == 0) {
    return fmt::format(
        "The DataLoader's workers do not keep up: workers needed = time to make one "
        "batch / {} (the rest of the step{}), rounded up, at most the cores of "
        "this rank{}. Beyond that {}.",
        TimeText(rest), batches > 1 ? fmt::format(", by its {:.1f} batches", batches) : "",
        CoresText(cores), CheaperSamples(model));
  }
  const double batch =
      seen.batch_ms > 0 ? seen.batch_ms : static_cast<double>(seen.count) * step / batches;
  const bool is_sampled = seen.cpu_percent > 0;
  const bool waits = is_sampled && seen.cpu_percent < kBusyWorkerPercent;
  const auto [needed, enough] =
      WorkersFor(batch / std::max(rest, kShortestRest), cores, waits ? seen.cpu_percent / 100 : 1);
  if (seen.batch_ms > 0 && enough && needed <= seen.count) {
    return fmt::format(
        "The DataLoader's {} {} often enough: a step needs a batch every {}, and a worker takes {} to make one. What is "
        "waited for is that batches are handed over, or come unevenly. pin_memory=True receives them in a thread of its "
        "own, ahead of the loop; prefetch_factor=4 evens out slow ones; a batch of few large tensors is handed over sooner "
        "than one of many.",
        Counted(seen.count, "worker", "workers"), seen.count == 1 ? "delivers" : "deliver",
        TimeText(rest), TimeText(seen.batch_ms));
  }
  std::string text = fmt::format(
      "The DataLoader's {} {} not keep up{}: a step needs a batch every {}{}. ",
      Counted(seen.count, "worker", "workers"), seen.count == 1 ? "does" : "do",
      is_sampled ? fmt::format(" (each busy for {:.0f} % of a core)", seen.cpu_percent) : "",
      TimeText(rest),
      seen.batch_ms > 0
          ? fmt::format(", and a worker takes {} to make one", TimeText(seen.batch_ms))
          : "");
  if (!enough) {
    text += fmt::format("Even {}{} would not be enough: ", needed, CoresText(cores));
  } else {
    text +=
        fmt::format("About {} would keep up{}: num_workers={}. ", needed, CoresText(cores), needed);
    if (waits) {
      text += "They wait rather than compute: look at the storage first. ";
    }
    text += "Else ";
  }
  return text + CheaperSamples(model) + ".";
}

std::string Advice(const RankModel& model, const Steps& steps, const Loader& loader,
                   const IntervalSet& waits) {
  const double step = steps.MeanMilliseconds();
  const double wait =
      waits.TotalWithin(steps.window).ToMilliseconds() / static_cast<double>(steps.divisor());
  const double batches = BatchesPerStep(loader, steps);
  if (loader.torch && !loader.in_process) return AdviceForWorkers(model, steps, wait, batches);
  if (loader.in_process && wait < kHandOverMs * batches)
    return AdviceForSmallBatches(wait, step - wait);
  return AdviceWithoutWorkers(model, loader, wait, step - wait);
}

std::string PerStepText(const RankModel& model, Duration total) {
  return TimeText(model.PerStepMs(total)) + (model.device_steps.count() > 0 ? "/step" : " in all");
}

Severity SeverityOf(double share) {
  if (share > kErrorShare) return Severity::kError;
  return share > kWarnShare ? Severity::kWarning : Severity::kNote;
}

// What the steps without GPU detail say, whose loader is another one than that of the steps with
// it (a queue that was full, files that were cached).
struct Others {
  enum { kNothing, kUnknown, kHeldUp } answer = kNothing;
  double held_ns = 0;  // of a step, by the loader
};

// How long a step waited is recorded, and that it took longer; what the device did is not. It has
// the work that it has with detail, and what of a step is left beyond that and beyond a step that
// did not wait, the wait cost.
Others JudgeOthers(const RankModel& model, const Wait& wait, double exposed_ns) {
  const DetailCheck& check = model.detail_check;
  if (check.others == 0 || !check.LoaderIsUnlike()) return {};
  const auto ns = [](Duration d) { return static_cast<double>(d.ns); };
  const double least = kWarnShare * ns(check.other_step);
  const double room = ns(check.other_step) - ns(check.device_work);
  if (std::min(ns(check.other_wait), room) <= least) return {};  // the device had work meanwhile
  if (!FindStepsWith(model.other_steps, wait.raw, kLeastShare).AreMany()) return {};
  const double without = std::max(ns(check.device_work), ns(check.step) - exposed_ns);
  const double held = std::min(ns(check.other_wait), ns(check.other_step) - without);
  return held > least ? Others{Others::kHeldUp, held} : Others{Others::kUnknown, 0};
}

std::string WaitsText(const DetailCheck& check) {
  return fmt::format("{} a step, and {} with it", TimeText(check.other_wait.ToMilliseconds()),
                     TimeText(check.wait.ToMilliseconds()));
}

Diagnosis FindingOfOthers(const RankModel& model, const Wait& wait, double held_ns) {
  const DetailCheck& check = model.detail_check;
  const double share = held_ns / static_cast<double>(check.other_step.ns);
  Finding finding;
  finding.severity = SeverityOf(share);
  finding.cost =
      Duration{static_cast<int64_t>(held_ns * static_cast<double>(model.device_steps.divisor()))};
  finding.title = fmt::format(
      "Input wait: {}, {} of the mean step without GPU detail, which waits longer for its batch than one with it",
      PerStepText(model, finding.cost), Percent(share));
  finding.confidence = kByLength;
  finding.confidence_reasons.push_back(fmt::format(
      "it stands on the {} steps without GPU detail: that the GPU was idle meanwhile follows from "
      "their length alone",
      check.others));
  const Loader loader = Describe(model, model.other_steps, finding);
  finding.count = static_cast<int64_t>(loader.waits.size());
  finding.advice = Advice(model, model.other_steps, loader, wait.raw);
  finding.verify = fmt::format(
      "Record again, with --full or --steps behind the first hundreds: {} should be below 5 % of the mean "
      "step.",
      Title(DeviceClass::kIdleInputWait));
  return {std::move(finding), {Edit::kFeedInput, loader.waits, kNoDevice, true}};
}

RuleOutcome Check(const RankModel& model) {
  if (model.host.sampled_thread != kNoTrack) {
    return Skipped{"the data loader's wait is known from samples of stacks alone"};
  }
  const Wait wait = WaitOf(model);
  if (wait.raw.Empty()) {
    return Skipped{"no range in the trace shows the data loader's wait"};
  }
  // A device that shows nothing of what it did is not a CPU run.
  if (model.devices.empty() && !model.device_doubt.empty()) return NoDevices(model);
  const Duration exposed = wait.exposed.TotalWithin(model.device_steps.device_window);
  const double share = model.ShareOfWindow(exposed);
  const double exposed_ns =
      static_cast<double>(exposed.ns) / static_cast<double>(model.device_steps.divisor());
  const Others others = JudgeOthers(model, wait, exposed_ns);
  if (others.answer == Others::kHeldUp && others.held_ns > exposed_ns) {
    return std::vector<Diagnosis>{FindingOfOthers(model, wait, others.held_ns)};
  }
  // One slow batch is not a slow loader.
  const StepsWith waiting =
      FindStepsWith(model.device_steps, wait.exposed, kLeastShare, &Step::device);
  if (share <= kLeastShare || !waiting.AreMany()) {
    if (others.answer == Others::kNothing) return std::vector<Diagnosis>{};
    return Skipped{fmt::format(
        "steps without GPU detail wait for the loader for {}: whether the GPU was idle meanwhile was not recorded "
        "(--full records it)",
        WaitsText(model.detail_check))};
  }
  Finding finding;
  finding.severity = SeverityOf(share);
  finding.title = fmt::format("Input wait: {}, {} of the {}, {}", PerStepText(model, exposed),
                              Percent(share), model.device_steps.count() > 0 ? "mean step" : "time",
                              model.devices.empty() ? "the training loop waits for its batch"
                                                    : "the GPU stands idle for the next batch");
  if (!waiting.AreHalf()) finding.title += "," + InStepsText(waiting);
  finding.cost = exposed;
  const Loader loader = Describe(model, model.device_steps, finding);
  finding.count = static_cast<int64_t>(loader.waits.size());
  finding.advice = Advice(model, model.device_steps, loader, wait.raw);
  finding.verify = fmt::format("Record again: {} should fall below 5 % of the {}.",
                               Title(DeviceClass::kIdleInputWait),
                               model.device_steps.count() > 0 ? "mean step" : "time");
  return std::vector<Diagnosis>{{std::move(finding), {Edit::kFeedInput, loader.waits}}};
}

constexpr ExplainedClass kExplains[] = {{DeviceClass::kIdleInputWait}, {HostClass::kInputWait}};

}  // namespace

extern const Rule input_bound = {"TP101", "data loading holds up the step", Check, kExplains};

}  // namespace trainprof::rules
