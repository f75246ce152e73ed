// the host waits for a stream, a device or an event within the loop  =>  let it run ahead
//
// Synchronisations that complete a copy are that copy's (host-sync, exposed-copy). As there, the
// cost is the drain, not the wait.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/account/drain.h"
#include "analysis/host/copy_calls.h"
#include "analysis/host/program.h"
#include "analysis/rule.h"
#include "analysis/words.h"
#include "trace/base/cancel.h"
#include "trace/base/near.h"

namespace trainprof::rules {
namespace {

// When the last work was asked for: what waits behind it ends the recording, and holds nothing up.
TraceTime LastLaunch(const ApiTable& api) {
  TraceTime last{INT64_MIN};
  for (uint32_t call = 0; call < api.size(); ++call) {
    CancelPoint(call);
    if (StartsWork(api.kind[call])) last = std::max(last, api.begin[call]);
  }
  return last;
}

// Of each of these calls: until when devices were busy with what was asked for before it.
std::vector<TraceTime> QueuedUntil(const Trace& trace, const std::vector<Row>& calls) {
  struct Wait {
    TraceTime begin;
    size_t index;
    TraceTime until{INT64_MIN};
  };
  std::vector<Wait> waits;
  for (size_t i = 0; i < calls.size(); ++i) waits.push_back({trace.api.begin[Index(calls[i])], i});
  std::sort(waits.begin(), waits.end(),
            [](const Wait& a, const Wait& b) { return a.begin < b.begin; });
  auto behind = waits.begin();
  for (uint32_t op = 0; op < trace.device_ops.size(); ++op) {
    CancelPoint(op);
    const Row launch = trace.device_ops.launch[op];
    if (launch == kNoRow) continue;
    const TraceTime asked = trace.api.begin[Index(launch)];
    behind = PartitionNear(waits.begin(), waits.end(), behind,
                           [&](const Wait& wait) { return wait.begin <= asked; });
    if (behind != waits.end()) behind->until = std::max(behind->until, trace.device_ops.end(op));
  }
  std::vector<TraceTime> until(calls.size(), TraceTime{INT64_MIN});
  TraceTime last{INT64_MIN};
  for (const Wait& wait : waits) until[wait.index] = last = std::max(last, wait.until);
  return until;
}

// The calls of threads that feed devices, without those behind copies, and without those that leave more
// work queued than lasts until the host has launched again: they bound by how much the host is ahead, and take none of it.
std::vector<Row> FindCalls(const RankModel& model) {
  const ApiTable& api = model.trace.api;
  std::vector<bool> of_copy(api.size());
  for (const CopyCall& copy : model.copies) {
    if (copy.sync != kNoRow) of_copy[Index(copy.sync)] = true;
  }
  std::vector<Row> all;
  for (uint32_t call = 0; call < api.size(); ++call) {
    CancelPoint(call);
    if (api.kind[call] != ApiKind::kSync || of_copy[call]) continue;
    if (!model.feeders[Index(api.track[call])] || !model.InWindow(api.interval(Row{call})))
      continue;
    all.push_back(Row{call});
  }
  const std::vector<TraceTime> queued = QueuedUntil(model.trace, all);
  std::vector<Row> calls;
  for (size_t i = 0; i < all.size(); ++i) {
    if (queued[i] <= api.end(Index(all[i])) + kHostPause) calls.push_back(all[i]);
  }
  const TraceTime last = LastLaunch(api);
  const auto ends = [&](Row call) { return api.begin[Index(call)] > last; };
  if (std::all_of(calls.begin(), calls.end(), ends)) return {};
  return calls;
}

// "20 x cudaDeviceSynchronize, 3 x cudaEventSynchronize", the most frequent first.
std::string NamesText(const RankModel& model, const std::vector<Row>& calls) {
  std::map<std::string_view, int64_t> counts;
  for (const Row call : calls) ++counts[model.trace.Text(model.trace.api.name[Index(call)])];
  std::vector<std::pair<std::string_view, int64_t>> names(counts.begin(), counts.end());
  std::stable_sort(names.begin(), names.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  names.resize(std::min(names.size(), kMostEvidence));
  std::string text;
  for (const auto& [name, count] : names) {
    text += fmt::format("{}{} x {}", text.empty() ? "" : ", ", count, name);
  }
  return text;
}

void Describe(const RankModel& model, std::vector<Row> calls, Finding& finding) {
  const ApiTable& api = model.trace.api;
  finding.where = model.sites.FindCalls(calls);
  KeepWorst(calls,
            [&](Row a, Row b) { return api.interval(a).Length() > api.interval(b).Length(); });
  for (const Row call : calls) {
    finding.evidence.push_back(
        {fmt::format("{} waited {:.3f} ms", model.trace.Text(api.name[Index(call)]),
                     api.interval(call).Length().ToMilliseconds()),
         api.interval(call), Table::kApi, call});
  }
}

RuleOutcome Check(const RankModel& model) {
  if (model.devices.empty()) return NoDevices(model);
  if (model.trace.api.size() == 0) return Skipped{"the trace holds no runtime calls"};
  const std::vector<Row> calls = FindCalls(model);
  if (calls.size() < 2) return std::vector<Diagnosis>{};  // one may begin or end a recording
  std::vector<Interval> waits;
  for (const Row call : calls) waits.push_back(model.trace.api.interval(call));
  const IntervalSet all = IntervalSet::Union(std::move(waits));
  const StepsWith steps = FindStepsWith(model.device_steps, all);
  if (!steps.AreMany()) return std::vector<Diagnosis>{};
  Finding finding;
  finding.cost = DrainOf(*model.graph, calls, model.devices, model.device_steps.device_window);
  finding.severity = SeverityOfLoss(model.ShareOfWindow(finding.cost));
  if (finding.severity == Severity::kNote) finding.severity = Severity::kWarning;
  finding.title =
      fmt::format("Sync calls: {}{} hold the host for {} {}; the GPU then idles {}",
                  NamesText(model, calls), InStepsText(steps), MsText(model.PerStepMs(all.Total())),
                  model.Unit(), MsText(model.PerStepMs(finding.cost)));
  finding.count = static_cast<int64_t>(calls.size());
  Describe(model, calls, finding);
  const Language language = LanguageOf(model.trace);
  finding.advice = fmt::format(
      "The device keeps the order of its streams by itself: take {} out of the loop. To time a step, "
      "record two events and ask for the time between them some steps later. One stream waits for "
      "another on the device ({}), without the host. What a logger needs, it can wait for once every N "
      "steps.",
      InItsLanguage(language,
                    "torch.cuda.synchronize(), stream.synchronize() and event.synchronize()",
                    "torch::cuda::synchronize() and cudaStreamSynchronize"),
      InItsLanguage(language, "stream.wait_stream(other), stream.wait_event(event)",
                    "cudaStreamWaitEvent, at::cuda::CUDAEvent::block(stream)"));
  finding.fix =
      language == Language::kCpp
          ? "begin.record(); Step(); end.record();      // at::cuda::CUDAEvent, made to time\n"
            "// some steps later: begin.elapsed_time(end), without torch::cuda::synchronize()"
          : "begin.record(); step(); end.record()   # torch.cuda.Event(enable_timing=True)\n"
            "# some steps later: begin.elapsed_time(end), without torch.cuda.synchronize()";
  finding.verify = fmt::format("Record again: the calls are gone from the steps, {} is near 0.",
                               Title(DeviceClass::kIdleSyncDrain));
  return std::vector<Diagnosis>{{std::move(finding), {Edit::kRemoveWaits, calls}}};
}

// host-sync has the waits behind copies.
constexpr ExplainedClass kExplains[] = {{DeviceClass::kIdleSyncDrain, true}};

}  // namespace

extern const Rule sync_call = {"TP302", "the host waits for a stream, a device or an event", Check,
                               kExplains};

}  // namespace trainprof::rules
