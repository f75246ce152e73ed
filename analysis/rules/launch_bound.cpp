// the device waits for launches, or hands over between many short ones  =>  fewer launches: a CUDA
// graph, torch.compile
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <span>

#include "analysis/host/program.h"
#include "analysis/host/repeats.h"
#include "analysis/rule.h"
#include "analysis/words.h"
#include "trace/base/cancel.h"
#include "trace/base/large_columns.h"
#include "trace/base/parallel.h"
#include "trace/base/sort_runs.h"

namespace trainprof::rules {
namespace {

// What is said of fewer steps repeats by chance.
constexpr size_t kFewestSteps = 3;
// Of a step's launches: from there on a graph is the first thing to try.
constexpr double kMostOfStep = 0.5;

// Calls that launch kernels and memsets one by one on this device, within the window; in the order of time, in
// which each replay goes through them.
std::vector<Row> Launches(const RankModel& model, const DeviceAccount& device) {
  const DeviceOpTable& ops = model.trace.device_ops;
  const ApiTable& api = model.trace.api;
  std::vector<bool> launches(api.size());
  size_t count = 0;
  IntervalReader window(model.device_steps.window);
  VisitOpsOf(model.trace, device.device, [&](uint32_t op) {
    const Row call = ops.launch[op];
    if (call == kNoRow) return;
    const ApiKind kind = api.kind[Index(call)];
    if (kind != ApiKind::kLaunch && kind != ApiKind::kMemset) return;
    if (window.TotalWithin(api.interval(call)).ns == 0) return;
    launches[Index(call)] = true;
    ++count;
  });
  std::vector<Row> calls;
  ReserveLarge(calls, count);
  for (uint32_t call = 0; call < api.size(); ++call) {
    CancelPoint(call);
    if (launches[call]) calls.push_back(Row{call});
  }
  SortRuns(calls, [&](Row call) { return api.begin[Index(call)]; });
  return calls;
}

double MedianKernelUs(const RankModel& model, const DeviceAccount& device) {
  const DeviceOpTable& ops = model.trace.device_ops;
  std::vector<Duration> lengths;
  ReserveLarge(lengths, model.device_rows.Of(device.device).size());
  IntervalReader window(model.device_steps.device_window);
  VisitOpsOf(model.trace, device.device, [&](uint32_t op) {
    if (ops.kind[op] != DeviceOpKind::kKernel) return;
    const Interval interval = ops.interval(Row{op});
    if (window.TotalWithin(interval).ns > 0) lengths.push_back(interval.Length());
  });
  if (lengths.empty()) return 0;
  const auto middle = lengths.begin() + static_cast<ptrdiff_t>(lengths.size() / 2);
  std::nth_element(lengths.begin(), middle, lengths.end());
  return 1000 * middle->ToMilliseconds();
}

// "cudaStreamSynchronize (2.0 a step, train.py:9), cudaMalloc (1 in 39 steps)", the most frequent first.
std::string ObstaclesText(const RankModel& model, const RepeatedLaunches& repeats) {
  struct Kind {
    int64_t count = 0;
    std::vector<Site> sites;
  };
  std::map<std::string_view, Kind> kinds;
  for (const Row call : repeats.obstacles) {
    Kind& kind = kinds[model.trace.Text(model.trace.api.name[Index(call)])];
    ++kind.count;
    AddSite(kind.sites, model.sites.FindCall(call));
  }
  std::vector<std::pair<std::string_view, Kind>> most(kinds.begin(), kinds.end());
  KeepWorst(most, [](const auto& a, const auto& b) { return a.second.count > b.second.count; });
  std::string text;
  for (auto& [name, kind] : most) {
    SortSites(kind.sites);
    const auto steps = static_cast<int64_t>(repeats.steps);
    const std::string often = 2 * kind.count < steps
                                  ? fmt::format("{} in {} steps", kind.count, steps)
                                  : fmt::format("{:.1f} a step", static_cast<double>(kind.count) /
                                                                     static_cast<double>(steps));
    text += fmt::format("{}{} ({}", text.empty() ? "" : ", ", name, often);
    if (const Site& site = kind.sites.front(); !site.file.empty()) {
      text += fmt::format(", {}:{}", site.file, site.line);
    }
    text += ")";
  }
  return text;
}

// Whether something that a capture does not take interrupts what repeats.
bool StandsBetween(const RepeatedLaunches& repeats) {
  return !repeats.obstacles.empty() && repeats.capturable.length < repeats.same_shapes.length;
}

// What repeats, as a graph would need it. "" where there are too few steps to say.
std::string RepeatsText(const RankModel& model, const RepeatedLaunches& repeats) {
  if (repeats.steps < kFewestSteps || repeats.launches_per_step == 0) return {};
  const auto part = [&](const CommonRun& run) {
    return fmt::format("{} of {:.0f}", run.length, repeats.launches_per_step);
  };
  std::string text =
      fmt::format("{} launches of a step come in the same order in {} of {} steps",
                  part(repeats.same_kernels), repeats.same_kernels.held_by, repeats.steps);
  if (repeats.shapes_known) {
    text += repeats.same_shapes.length == repeats.same_kernels.length
                ? ", with the same shapes"
                : fmt::format(", {} with the same shapes", part(repeats.same_shapes));
  } else {
    text += " (their shapes were not recorded)";
  }
  if (!repeats.obstacles.empty()) {
    text += fmt::format(". A capture does not take {}{}", ObstaclesText(model, repeats),
                        StandsBetween(repeats) ? fmt::format("; between them the longest run is {}",
                                                             repeats.capturable.length)
                                               : "; none stands between these");
  }
  if (repeats.graphs_per_step > 0) {
    text += fmt::format(". {:.1f} graphs a step are launched already", repeats.graphs_per_step);
  }
  return text + ". ";
}

bool IsGraphCandidate(const RepeatedLaunches& repeats) {
  return repeats.steps >= kFewestSteps &&
         static_cast<double>(repeats.same_shapes.length) > kMostOfStep * repeats.launches_per_step;
}

bool ShapesVary(const RepeatedLaunches& repeats) {
  return repeats.steps >= kFewestSteps && repeats.shapes_known && !IsGraphCandidate(repeats) &&
         static_cast<double>(repeats.same_kernels.length) > kMostOfStep * repeats.launches_per_step;
}

// What its own settings are called.
std::string_view ServersText(Server server) {
  switch (server) {
    case Server::kNone:
      break;
    case Server::kVllm:
      return " vLLM captures graphs by itself, of batches up to cudagraph_capture_sizes, unless enforce_eager is set.";
    case Server::kSglang:
      return " SGLang captures graphs by itself, of decode batches up to --cuda-graph-max-bs, unless "
             "--disable-cuda-graph is set.";
  }
  return "";
}

std::string Advice(const RankModel& model, Server server, const RepeatedLaunches& repeats) {
  const Language language = LanguageOf(model.trace);
  const std::string graph = InItsLanguage(
      language,
      "torch.compile(model, mode=\"reduce-overhead\"), or torch.cuda.make_graphed_callables",
      "at::cuda::CUDAGraph around the step, with input tensors that stay where they are");
  std::string text = RepeatsText(model, repeats);
  if (IsGraphCandidate(repeats)) {
    text +=
        fmt::format("Launch these {} as one CUDA graph: {}.{}", repeats.same_shapes.length, graph,
                    StandsBetween(repeats) ? " What stands in between has to go first." : "");
  } else if (ShapesVary(repeats)) {
    text += fmt::format(
        "The shapes vary: pad or bucket the batches to a few sizes and capture a graph of each ({}){}.",
        graph, language == Language::kCpp ? "" : ", or torch.compile(model, dynamic=True)");
  } else {
    text += fmt::format(
        "Launch less: larger batches{}{}, one call for many tensors{}; "
        "where a part of the step repeats, a CUDA graph of it ({}).",
        language == Language::kCpp ? "" : ", torch.compile",
        model.workload == Workload::kInference ? "" : ", fused optimizers",
        language == Language::kCpp ? "" : " (torch._foreach_*)", graph);
  }
  text += ServersText(server);
  return text + " A graph replays what it captured: no branch on a tensor's value, no other shape.";
}

std::string FixOf(const RankModel& model, Server server) {
  if (server != Server::kNone) return {};  // its code is not the user's
  if (LanguageOf(model.trace) == Language::kCpp) {
    return "at::cuda::CUDAGraph graph;          // after some warm-up steps, on a stream of its own\n"
           "graph.capture_begin(); Step(input, target); graph.capture_end();\n"
           "input.copy_(batch); graph.replay();  // in the loop";
  }
  return "model = torch.compile(model, mode=\"reduce-overhead\")   # CUDA graphs, for fixed shapes";
}

using Classes = std::span<const DeviceClass>;
constexpr DeviceClass kWaitsForLaunches[] = {DeviceClass::kIdleLaunchBound};
constexpr DeviceClass kHandOvers[] = {DeviceClass::kIdleDependency};

bool IsOneOf(DeviceClass c, Classes classes) {
  return std::find(classes.begin(), classes.end(), c) != classes.end();
}

// Who launched what began on a device then, asked in the order of time.
class LaunchReader {
 public:
  LaunchReader(const RankModel& model, DeviceId device)
      : ops_(model.trace.device_ops), order_(model.device_rows.Of(device)) {}

  // Of several the call that stands first; kNoRow: no launch is known. O(operations since the last time).
  Row CallAt(TraceTime at) {
    Row call = kNoRow;
    for (; next_ < order_.size() && ops_.begin[order_[next_]] <= at; ++next_) {
      CancelPoint(next_);
      const uint32_t op = order_[next_];
      if (ops_.begin[op] == at && ops_.launch[op] != kNoRow) {
        call = call == kNoRow ? ops_.launch[op] : std::min(call, ops_.launch[op]);
      }
    }
    return call;
  }

 private:
  const DeviceOpTable& ops_;
  const std::span<const uint32_t> order_;
  size_t next_ = 0;
};

// Calls `visit(row)` for the device's idle time within the steps that is of these classes, by row of its `idle`.
template <class Visit>
void VisitIdle(const RankModel& model, const DeviceAccount& device, Classes classes, Visit visit) {
  IntervalReader window(model.device_steps.device_window);
  for (uint32_t row = 0; row < device.idle.size(); ++row) {
    CancelPoint(row);
    const Segment<DeviceClass>& segment = device.idle[row];
    if (!IsOneOf(segment.value, classes)) continue;
    if (window.TotalWithin(segment.interval).ns > 0) visit(row);
  }
}

// Where the host stood while the device waited for it.
std::vector<Site> PlacesOfWaits(const RankModel& model, const DeviceAccount& device) {
  SiteTally where(model.trace, model.sites);
  if (model.device_steps.thread == kNoTrack) return {};
  VisitIdle(model, device, kWaitsForLaunches, [&](uint32_t row) {
    where.Add(model.device_steps.thread, device.idle[row].interval.begin);
  });
  return std::move(where).Take();
}

// Who launched what the device handed over to. The host may be far ahead, and stand anywhere.
std::vector<Site> PlacesOfHandOvers(const RankModel& model, const DeviceAccount& device) {
  LaunchReader launches(model, device.device);
  SiteTally launched(model.trace, model.sites);
  VisitIdle(model, device, kHandOvers, [&](uint32_t row) {
    const Row call = launches.CallAt(device.idle[row].interval.end);
    if (call != kNoRow) launched.AddCall(call);
  });
  return std::move(launched).Take();
}

// When the device waited for longest.
std::vector<Evidence> LongestOf(const RankModel& model, const DeviceAccount& device,
                                Classes classes) {
  std::vector<uint32_t> longest;  // rows of device.idle
  VisitIdle(model, device, classes, [&](uint32_t row) {
    AddWorst(longest, row, [&](uint32_t a, uint32_t b) {
      return device.idle[a].interval.Length() > device.idle[b].interval.Length();
    });
  });
  std::vector<Evidence> evidence;
  for (const uint32_t row : longest) {
    const Segment<DeviceClass>& segment = device.idle[row];
    evidence.push_back(
        {fmt::format("GPU {} idle for {:.1f} us: {}", model.trace.devices[Index(device.device)].id,
                     1000 * segment.interval.Length().ToMilliseconds(), Title(segment.value)),
         segment.interval, Table::kIdle, Row{row}, device.device});
  }
  return evidence;
}

Finding Describe(const RankModel& model, const DeviceAccount& device, Classes classes,
                 const std::vector<Row>& launches) {
  Finding finding;
  for (const DeviceClass c : classes) finding.cost += device.Of(c);
  finding.severity = SeverityOfLoss(model.ShareOfWindow(finding.cost));
  finding.count = static_cast<int64_t>(launches.size());
  RepeatedLaunches repeats;
  double median_us = 0;
  std::vector<Site> launched;  // calls stand elsewhere than the device is
  const std::function<void()> parts[] = {
      [&] {
        repeats = FindRepeats(model.trace, model.device_steps, device.device, model.blocking_calls);
      },
      [&] {
        if (IsOneOf(DeviceClass::kIdleLaunchBound, classes)) {
          finding.where = PlacesOfWaits(model, device);
        }
      },
      [&] {
        if (IsOneOf(DeviceClass::kIdleDependency, classes)) {
          launched = PlacesOfHandOvers(model, device);
        }
      },
      [&] { finding.evidence = LongestOf(model, device, classes); },
      [&] { median_us = MedianKernelUs(model, device); },
  };
  RunAll(parts);
  for (const Site& site : launched) AddSite(finding.where, site);
  const Server server =
      model.workload == Workload::kInference ? ServerOf(model.trace) : Server::kNone;
  finding.advice = Advice(model, server, repeats);
  finding.fix = FixOf(model, server);
  const int64_t per_step = std::llround(static_cast<double>(launches.size()) /
                                        static_cast<double>(model.device_steps.divisor()));
  const std::string each = fmt::format("{}{}, the median kernel takes {:.1f} us",
                                       Counted(per_step, "launch", "launches"),
                                       model.device_steps.count() > 0 ? " a step" : "", median_us);
  const auto ms = [&](DeviceClass c) { return model.PerStepMs(device.Of(c)); };
  if (IsOneOf(DeviceClass::kIdleLaunchBound, classes)) {
    finding.title =
        fmt::format("Launch-bound: the GPU waits {:.2f} {} for the host to launch{}; {}",
                    ms(DeviceClass::kIdleLaunchBound), model.Unit(),
                    classes.size() == 1 ? ""
                                        : fmt::format(" and {:.2f} between queued operations",
                                                      ms(DeviceClass::kIdleDependency)),
                    each);
    finding.verify = fmt::format("Record again: fewer launches a step, {} near 0.",
                                 Title(DeviceClass::kIdleLaunchBound));
  } else {
    finding.title =
        fmt::format("Short kernels: the GPU spends {:.2f} {} between queued operations; {}",
                    ms(DeviceClass::kIdleDependency), model.Unit(), each);
    finding.verify = "Record again: fewer and longer kernels.";
  }
  return finding;
}

RuleOutcome Check(const RankModel& model) {
  if (model.devices.empty()) return NoDevices(model);
  if (model.trace.api.size() == 0) return Skipped{"the trace holds no runtime calls"};
  constexpr DeviceClass kBoth[] = {DeviceClass::kIdleLaunchBound, DeviceClass::kIdleDependency};
  // One finding a device: fewer launches end both.
  std::map<const DeviceAccount*, std::vector<DeviceClass>> by_device;
  for (const DeviceClass of : kBoth) {
    const DeviceAccount* const device = DeviceWithMost(model, {of});
    if (model.ShareOfWindow(device->Of(of)) >= kLeastShare) by_device[device].push_back(of);
  }
  std::vector<Diagnosis> findings;
  for (const auto& [device, classes] : by_device) {
    std::vector<Row> launches = Launches(model, *device);
    if (launches.empty()) continue;
    Finding finding = Describe(model, *device, classes, launches);
    findings.push_back({std::move(finding), {Edit::kLaunchAsGraph, std::move(launches)}});
  }
  return findings;
}

constexpr ExplainedClass kExplains[] = {{DeviceClass::kIdleLaunchBound},
                                        {DeviceClass::kIdleDependency}};

}  // namespace

extern const Rule launch_bound = {"TP202", "the device waits for launches", Check, kExplains};

}  // namespace trainprof::rules
