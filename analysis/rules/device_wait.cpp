// a device waits for another one, or for a function of the host in its stream  =>  more micro-batches,
// or none of these functions
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "analysis/host/program.h"
#include "analysis/host/stream_waits.h"
#include "analysis/rule.h"
#include "analysis/words.h"
#include "trace/base/cancel.h"
#include "trace/base/names.h"

namespace trainprof::rules {
namespace {

constexpr double kByPlace = 0.8;  // confidence

int64_t NumberOf(const RankModel& model, DeviceId device) {
  return model.trace.devices[Index(device)].id;
}

DeviceId DeviceOf(const Trace& trace, Row op) {
  return trace.tracks[Index(trace.device_ops.track[Index(op)])].device;
}

// The device's idle time of that class within the window; rows of its list, the longest first.
std::vector<uint32_t> LongestIdle(const RankModel& model, const DeviceAccount& device,
                                  DeviceClass of) {
  std::vector<uint32_t> rows;
  for (uint32_t row = 0; row < device.idle.size(); ++row) {
    CancelPoint(row);
    const Segment<DeviceClass>& segment = device.idle[row];
    if (segment.value == of && model.InDeviceWindow(segment.interval)) rows.push_back(row);
  }
  KeepWorst(rows, [&](uint32_t a, uint32_t b) {
    return device.idle[a].interval.Length() > device.idle[b].interval.Length();
  });
  return rows;
}

void AddEvidence(const RankModel& model, const DeviceAccount& device, DeviceClass of,
                 Finding& finding) {
  for (const uint32_t row : LongestIdle(model, device, of)) {
    const Interval when = device.idle[row].interval;
    finding.evidence.push_back(
        {fmt::format("GPU {} idle for {:.3f} ms: {}", NumberOf(model, device.device),
                     when.Length().ToMilliseconds(), Title(of)),
         when, Table::kIdle, Row{row}, device.device});
  }
}

struct OtherDevices {
  std::vector<Row> rows;         // of the waits
  std::vector<int64_t> numbers;  // of the devices waited for, ascending
  std::vector<Site> where;
};

OtherDevices WaitedFor(const RankModel& model, DeviceId device) {
  OtherDevices others;
  const Trace& trace = model.trace;
  for (const StreamWait& wait : FindStreamWaits(trace)) {
    const DeviceId awaited = DeviceOf(trace, wait.before);
    if (DeviceOf(trace, wait.after) != device || awaited == device) continue;
    if (!model.InDeviceWindow(trace.device_ops.interval(wait.after))) continue;
    others.rows.push_back(wait.sync);
    others.numbers.push_back(NumberOf(model, awaited));
    AddSite(others.where, SiteOf(wait, trace, model.sites));
  }
  std::sort(others.numbers.begin(), others.numbers.end());
  others.numbers.erase(std::unique(others.numbers.begin(), others.numbers.end()),
                       others.numbers.end());
  return others;
}

Diagnosis OfOtherDevice(const RankModel& model, const DeviceAccount& device) {
  OtherDevices others = WaitedFor(model, device.device);
  Finding finding;
  finding.cost = device.Of(DeviceClass::kIdleOtherDevice);
  finding.severity = SeverityOfLoss(model.ShareOfWindow(finding.cost));
  finding.count = static_cast<int64_t>(others.rows.size());
  std::string numbers;
  for (const int64_t number : others.numbers) {
    numbers += fmt::format("{}GPU {}", numbers.empty() ? "" : ", ", number);
  }
  finding.title =
      fmt::format("Waiting for another GPU: GPU {} stands idle for {:.2f} {} until {} is done",
                  NumberOf(model, device.device), model.PerStepMs(finding.cost), model.Unit(),
                  numbers.empty() ? "another one" : numbers);
  finding.where = std::move(others.where);
  AddEvidence(model, device, DeviceClass::kIdleOtherDevice, finding);
  const bool is_cpp = LanguageOf(model.trace) == Language::kCpp;
  finding.advice = fmt::format(
      "A model that is split over GPUs works on one batch at a time: all but one of them wait. Split the "
      "batch into micro-batches, so that each GPU has the next one when it is done with the last{}; with p "
      "GPUs and m micro-batches a share of (p - 1) / (m + p - 1) still waits. Balance the parts by their "
      "time. Where the model fits one GPU, one process a GPU with its own data waits less.",
      is_cpp ? "" : " (torch.distributed.pipelining, schedule 1F1B)");
  if (!is_cpp) {
    finding.fix =
        "stage = PipelineStage(part, rank, world, device)   # torch.distributed.pipelining\n"
        "schedule = Schedule1F1B(stage, n_microbatches=4 * world, loss_fn=loss_fn)";
  }
  finding.verify =
      fmt::format("Record again: {} near that share.", Title(DeviceClass::kIdleOtherDevice));
  return {std::move(finding), {Edit::kDropDependencies, std::move(others.rows)}};
}

Diagnosis OfHostFunction(const RankModel& model, const DeviceAccount& device) {
  std::vector<Row> functions;
  for (const Row row : FindHostFunctions(model.trace, device.device)) {
    if (model.InDeviceWindow(TimeOfSync(model.trace, row))) functions.push_back(row);
  }
  std::vector<Row> calls;  // of which no row tells
  for (NodeId node = 0; node < model.graph->size(); ++node) {
    CancelPoint(node);
    if (model.graph->kind[node] != NodeKind::kInferredFunction) continue;
    const Row call{model.graph->row[node]};
    if (model.InWindow(model.trace.api.interval(call))) calls.push_back(call);
  }
  Finding finding;
  finding.cost = device.Of(DeviceClass::kIdleHostFunction);
  finding.severity = SeverityOfLoss(model.ShareOfWindow(finding.cost));
  finding.count = static_cast<int64_t>(functions.size() + calls.size());
  finding.title = fmt::format(
      "Host functions: GPU {} stands idle for {:.2f} {} while a stream waits for a function on the host",
      NumberOf(model, device.device), model.PerStepMs(finding.cost), model.Unit());
  for (uint32_t call = 0; call < model.trace.api.size(); ++call) {
    CancelPoint(call);
    if (!LaunchesHostFunction(model.trace.Text(model.trace.api.name[call]))) continue;
    if (!model.InWindow(model.trace.api.interval(Row{call}))) continue;
    AddSite(finding.where, model.sites.FindCall(Row{call}));
  }
  AddEvidence(model, device, DeviceClass::kIdleHostFunction, finding);
  if (!calls.empty()) {
    finding.confidence = kByPlace;
    finding.confidence_reasons.push_back(
        "CUPTI told nothing of the functions (it does from 13.1 on): that a queued operation waited for one "
        "follows from where they were put");
  }
  finding.advice =
      "A stream does nothing while a function that was put into it (cudaLaunchHostFunc, "
      "cudaStreamAddCallback) runs, and all such functions of a process share one thread. Put it into a "
      "stream of its own that waits for an event, or record an event and let a thread of the program wait "
      "for it; the function itself should do no more than wake somebody.";
  finding.fix =
      "cudaEventRecord(done, stream);          // in the loop\n"
      "cudaStreamWaitEvent(side, done, 0);\ncudaLaunchHostFunc(side, function, data);   "
      "// stream goes on";
  finding.verify = fmt::format("Record again: {} near 0.", Title(DeviceClass::kIdleHostFunction));
  return {std::move(finding),
          {Edit::kDropDependencies, std::move(functions), kNoDevice, false, std::move(calls)}};
}

RuleOutcome Check(const RankModel& model) {
  if (model.devices.empty()) return NoDevices(model);
  std::vector<Diagnosis> findings;
  for (const DeviceClass of : {DeviceClass::kIdleOtherDevice, DeviceClass::kIdleHostFunction}) {
    const DeviceAccount& device = *DeviceWithMost(model, {of});
    if (model.ShareOfWindow(device.Of(of)) < kLeastShare) continue;
    findings.push_back(of == DeviceClass::kIdleOtherDevice ? OfOtherDevice(model, device)
                                                           : OfHostFunction(model, device));
  }
  if (findings.empty() && model.devices.size() > 1 && MissesStreamWaits(model.trace)) {
    return Skipped{"the trace does not say what streams waited for"};
  }
  return findings;
}

constexpr ExplainedClass kExplains[] = {{DeviceClass::kIdleOtherDevice},
                                        {DeviceClass::kIdleHostFunction}};

}  // namespace

extern const Rule device_wait = {"TP503", "a device waits for another one, or for a host function",
                                 Check, kExplains};

}  // namespace trainprof::rules
