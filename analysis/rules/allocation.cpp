// memory is allocated or given back by the driver in the loop, which may wait for the device  =>  keep
// it
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/account/drain.h"
#include "analysis/host/copy_calls.h"
#include "analysis/host/program.h"
#include "analysis/rule.h"
#include "analysis/words.h"
#include "trace/base/cancel.h"

namespace trainprof::rules {
namespace {

// Memory that steps need is asked for in the first of them, and kept. What comes again in this many
// later ones does not settle.
constexpr int64_t kFewestSteps = 2;
// torch's allocator gives its cached blocks back at once, and asks again behind that.
constexpr int64_t kBurst = 2;
constexpr Duration kRetryWithin = Milliseconds(1);

struct Calls {
  std::vector<Row> rows;
  int64_t of_host = 0;  // pinned memory
  int64_t given_back = 0;
  int64_t retries = 0;  // bursts of cudaFree with a cudaMalloc behind
  bool empties_cache = false;
};

bool IsOfHost(std::string_view call) { return call.find("Host") != call.npos; }

// Whether the user's program, or torch for it, is in empty_cache() there.
bool EmptiesCache(const Trace& trace, Row call) {
  const auto says = [](std::string_view text) {
    return text.find("empty_cache") != text.npos || text.find("emptyCache") != text.npos;
  };
  const StackId stack = trace.api.stack[Index(call)];
  bool found = false;
  trace.stacks.ForEachFrame(stack, [&](const CallFrame& frame) {
    found = says(trace.Text(frame.function));
    return !found;
  });
  if (found) return true;
  const TraceTime at = trace.api.begin[Index(call)];
  for (Row row = InnermostRange(trace.ranges, trace.api.track[Index(call)], at); row != kNoRow;
       row = trace.ranges.parent[Index(row)]) {
    if (says(trace.Text(trace.ranges.name[Index(row)]))) return true;
  }
  return false;
}

// Bursts of cudaFree that a cudaMalloc follows at once on the same thread.
int64_t RetriesIn(const ApiTable& api, const std::vector<Row>& calls) {
  int64_t retries = 0;
  int64_t burst = 0;
  Row last = kNoRow;
  for (const Row call : calls) {
    const bool follows = last != kNoRow && api.track[Index(last)] == api.track[Index(call)] &&
                         api.begin[Index(call)] <= api.end(Index(last)) + kRetryWithin;
    if (api.kind[Index(call)] == ApiKind::kFree) {
      burst = follows ? burst + 1 : 1;
    } else {
      if (follows && burst >= kBurst) ++retries;
      burst = 0;
    }
    last = call;
  }
  return retries;
}

// In the steps behind the first, of threads that feed devices.
Calls Collect(const RankModel& model) {
  const Trace& trace = model.trace;
  const std::vector<Step>& steps = model.device_steps.steps;
  Calls calls;
  std::vector<const Step*> in;
  for (uint32_t call = 0; call < trace.api.size(); ++call) {
    CancelPoint(call);
    const ApiKind kind = trace.api.kind[call];
    if (kind != ApiKind::kAllocate && kind != ApiKind::kFree) continue;
    if (!model.feeders[Index(trace.api.track[call])]) continue;
    const Step* const step = model.device_steps.At(trace.api.begin[call]);
    if (step == nullptr || step == &steps.front()) continue;
    const std::string_view name = trace.Text(trace.api.name[call]);
    calls.rows.push_back(Row{call});
    calls.of_host += IsOfHost(name) ? 1 : 0;
    calls.given_back += kind == ApiKind::kFree ? 1 : 0;
    calls.empties_cache |= kind == ApiKind::kFree && EmptiesCache(trace, Row{call});
    in.push_back(step);
  }
  std::sort(in.begin(), in.end());
  in.erase(std::unique(in.begin(), in.end()), in.end());
  if (static_cast<int64_t>(in.size()) < kFewestSteps) return {};
  calls.retries = RetriesIn(trace.api, calls.rows);
  return calls;
}

// The device's idle time while the calls ran, and behind those that wait for it.
Duration CostOf(const RankModel& model, const Calls& calls) {
  std::vector<Interval> times;
  for (const Row call : calls.rows) times.push_back(model.trace.api.interval(call));
  const IntervalSet inside =
      IntervalSet::Union(std::move(times)).IntersectWith(model.device_steps.device_window);
  Duration worst;
  for (const DeviceAccount& device : model.devices) {
    Duration idle;
    for (const Segment<DeviceClass>& segment : device.idle) {
      if (segment.value == DeviceClass::kIdleUnrecorded) continue;  // it may have worked
      idle += inside.TotalWithin(segment.interval);
    }
    worst = std::max(worst, idle);
  }
  return worst + DrainOf(*model.graph, calls.rows, model.devices, model.device_steps.device_window);
}

std::string NamesText(const RankModel& model, const Calls& calls) {
  std::map<std::string_view, int64_t> counts;
  for (const Row call : calls.rows) {
    ++counts[model.trace.Text(model.trace.api.name[Index(call)])];
  }
  std::vector<std::pair<std::string_view, int64_t>> names(counts.begin(), counts.end());
  KeepWorst(names, [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (const auto& [name, count] : names) {
    text += fmt::format("{}{} x {}", text.empty() ? "" : ", ", count, name);
  }
  return text;
}

std::string Advice(const Calls& calls, Language language) {
  std::string text;
  if (calls.empties_cache) {
    text +=
        "empty_cache() gives cached memory back that the next step asks for again, and waits for the "
        "device: take it out of the loop. ";
  }
  if (calls.retries > 0) {
    text += fmt::format(
        "{} times the allocator gave its cached blocks back and asked again: the memory is nearly full. A "
        "smaller batch, activation checkpointing, or, where blocks do not fit, "
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True. ",
        calls.retries);
  }
  if (calls.of_host > 0) {
    text += fmt::format(
        "Pinned memory is slow to make: make it once and fill it again, or let the loader "
        "pin ({}). ",
        InItsLanguage(language, "DataLoader(pin_memory=True)", "pin_memory() on its own threads"));
  }
  if (!calls.empties_cache && calls.retries == 0 &&
      calls.of_host < static_cast<int64_t>(calls.rows.size())) {
    text +=
        "Allocate once before the loop and use it again, or from a pool that keeps memory "
        "(torch's allocator, cudaMallocAsync with a release threshold); PYTORCH_NO_CUDA_MEMORY_CACHING "
        "must not be set. Shapes that grow from step to step make the cache ask for more each time: "
        "run the largest first, or pad. ";
  }
  text += "cudaFree waits for the whole device, cudaMalloc may.";
  return text;
}

RuleOutcome Check(const RankModel& model) {
  if (model.devices.empty()) return NoDevices(model);
  if (model.trace.api.size() == 0) return Skipped{"the trace holds no runtime calls"};
  if (model.device_steps.count() == 0) {
    return Skipped{"no steps were found: what start-up allocates looks the same"};
  }
  const Calls calls = Collect(model);
  if (calls.rows.empty()) return std::vector<Diagnosis>{};
  const ApiTable& api = model.trace.api;
  Finding finding;
  finding.cost = CostOf(model, calls);
  finding.severity = SeverityOfLoss(model.ShareOfWindow(finding.cost));
  finding.count = static_cast<int64_t>(calls.rows.size());
  finding.title =
      fmt::format("Allocation in the loop: {}; the GPU stands idle for {:.2f} {} meanwhile",
                  NamesText(model, calls), model.PerStepMs(finding.cost), model.Unit());
  finding.where = model.sites.FindCalls(calls.rows);
  std::vector<Row> longest = calls.rows;
  KeepWorst(longest,
            [&](Row a, Row b) { return api.interval(a).Length() > api.interval(b).Length(); });
  for (const Row call : longest) {
    finding.evidence.push_back(
        {fmt::format("{} took {:.3f} ms", model.trace.Text(api.name[Index(call)]),
                     api.interval(call).Length().ToMilliseconds()),
         api.interval(call), Table::kApi, call});
  }
  const Language language = LanguageOf(model.trace);
  finding.advice = Advice(calls, language);
  if (calls.of_host > 0) {
    finding.fix =
        language == Language::kCpp
            ? "auto pinned = torch::empty(shape, torch::TensorOptions().pinned_memory(true));   "
              "// once\npinned.copy_(batch);"
            : "pinned = torch.empty(shape, pin_memory=True)   # once\npinned.copy_(batch)";
  }
  finding.verify = fmt::format("Record again: no such call behind the first steps, {} near 0.",
                               Title(DeviceClass::kIdleAllocation));
  return std::vector<Diagnosis>{{std::move(finding), {Edit::kDropCalls, calls.rows}}};
}

constexpr ExplainedClass kExplains[] = {{DeviceClass::kIdleAllocation},
                                        {DeviceClass::kIdleSyncDrain, true}};

}  // namespace

extern const Rule allocation = {"TP204", "memory that the driver allocates in the loop", Check,
                                kExplains};

}  // namespace trainprof::rules
