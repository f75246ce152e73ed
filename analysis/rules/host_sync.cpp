// device-to-host copies whose call waits for the device (.item(), .cpu(), print)  =>  read less
// often
//
// What counts is the copy's own call, or a stream sync right behind it; aten::item on a CPU tensor
// copies nothing and is not counted. Nor is what a thread waits for that feeds no device, nor a checkpoint's copies
// where host-work speaks of the checkpoint. The cost is the drain, not the wait: while the host waits the
// device works; afterwards it stands idle until the host has issued more.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/account/drain.h"
#include "analysis/host/copy_calls.h"
#include "analysis/host/program.h"
#include "analysis/rule.h"
#include "analysis/saves.h"
#include "analysis/words.h"
#include "trace/base/cancel.h"

namespace trainprof::rules {
namespace {

constexpr double kErrorDrainShare = 0.10;  // of the steps' time, lost to the drain

std::vector<CopyCall> FindSyncs(const RankModel& model) {
  const std::vector<Row> saved = OpsOf(model.saved_copies);
  std::vector<CopyCall> syncs;
  std::copy_if(
      model.copies.begin(), model.copies.end(), std::back_inserter(syncs),
      [&](const CopyCall& copy) {
        return copy.Waits() && model.feeders[Index(model.trace.api.track[Index(copy.call)])] &&
               model.trace.device_ops.direction[Index(copy.op)] == CopyDirection::kDeviceToHost &&
               !std::binary_search(saved.begin(), saved.end(), copy.op);
      });
  return syncs;
}

void Describe(const RankModel& model, std::vector<CopyCall> syncs, Finding& finding) {
  std::vector<Row> waiting;
  for (const CopyCall& sync : syncs) waiting.push_back(sync.waiting);
  finding.where = model.sites.FindCalls(waiting);
  KeepWorst(syncs, [](const CopyCall& a, const CopyCall& b) { return a.blocked > b.blocked; });
  for (const CopyCall& sync : syncs) {
    finding.evidence.push_back(
        {fmt::format("{} of {} blocked the host for {:.3f} ms",
                     model.trace.Text(model.trace.device_ops.name[Index(sync.op)]),
                     Counted(model.trace.device_ops.bytes[Index(sync.op)], "byte", "bytes"),
                     sync.blocked.ToMilliseconds()),
         sync.wait, Table::kApi, sync.waiting});
  }
}

std::vector<Row> WaitingCalls(const std::vector<CopyCall>& syncs) {
  std::vector<Row> calls;
  for (const CopyCall& sync : syncs) {
    calls.push_back(sync.call);
    if (sync.sync != kNoRow) calls.push_back(sync.sync);
  }
  return calls;
}

void Advise(const RankModel& model, Finding& finding) {
  const bool is_cpp = LanguageOf(model.trace) == Language::kCpp;
  if (model.workload == Workload::kInference) {
    finding.advice = fmt::format(
        "Read results one step later: copy them to pinned memory without waiting, behind the step that makes them, launch "
        "the next step, and only then wait for the copy. What decides on the next step, such as the choice of a "
        "token, can stay on the GPU; {} in the loop.",
        is_cpp ? "avoid item(), .cpu() and branches on tensors"
               : "avoid .item(), .cpu(), .tolist() and Python branches on tensors");
    finding.fix =
        is_cpp
            ? "pinned.copy_(result, /*non_blocking=*/true); copied.record();   // at::cuda::CUDAEvent\n"
              "// the next step's launches, then:\n"
              "copied.synchronize(); Use(pinned);"
            : "pinned.copy_(result, non_blocking=True); copied.record()   # torch.cuda.Event()\n"
              "# the next step's launches, then:\n"
              "copied.synchronize(); use(pinned)";
    return;
  }
  finding.advice =
      is_cpp
          ? "Keep values on the GPU: accumulate loss.detach() there and call item<float>() every N "
            "steps; avoid .cpu(), printing tensors and branches on their values in the loop."
          : "Keep values on the GPU: accumulate loss.detach() there and call .item() every N "
            "steps; avoid .cpu(), .tolist(), print(tensor) and Python branches on tensors in the "
            "loop. detach() does not replace .cpu(), and losses.append(loss) keeps the graph. A "
            "GradScaler step that is not fused reads found_inf itself: prefer bf16 or a fused "
            "optimizer.";
  finding.fix = is_cpp ? "running += loss.detach();          // stays on the GPU\n"
                         "if (step % 100 == 0) {\n  Log(running.item<float>() / 100); "
                         "running.zero_();\n}"
                       : "running += loss.detach()          # stays on the GPU\n"
                         "if step % 100 == 0:\n    print(running.item() / 100); running.zero_()";
}

RuleOutcome Check(const RankModel& model) {
  if (model.devices.empty()) return NoDevices(model);
  if (model.trace.api.size() == 0) return Skipped{"the trace holds no runtime calls"};
  const std::vector<CopyCall> syncs = FindSyncs(model);
  Duration blocked;
  std::vector<Interval> waits;
  for (const CopyCall& sync : syncs) {
    blocked += sync.blocked;
    waits.push_back(sync.wait);
  }
  const StepsWith steps = FindStepsWith(model.device_steps, IntervalSet::Union(std::move(waits)));
  const Duration drain =
      DrainOf(*model.graph, WaitingCalls(syncs), model.devices, model.device_steps.device_window);
  if (syncs.empty() || !steps.AreMany()) return std::vector<Diagnosis>{};

  Finding finding;
  finding.severity =
      model.ShareOfWindow(drain) > kErrorDrainShare ? Severity::kError : Severity::kWarning;
  finding.title =
      fmt::format("Host syncs: {} the host{} for {} {}; the GPU then idles {}",
                  syncs.size() == 1 ? "1 device-to-host copy blocks"
                                    : fmt::format("{} device-to-host copies block", syncs.size()),
                  InStepsText(steps), MsText(model.PerStepMs(blocked)), model.Unit(),
                  MsText(model.PerStepMs(drain)));
  finding.count = static_cast<int64_t>(syncs.size());
  finding.cost = drain;
  Describe(model, syncs, finding);
  Advise(model, finding);
  finding.verify = fmt::format("Record again: fewer device-to-host copies, {} near 0.",
                               Title(DeviceClass::kIdleSyncDrain));
  return std::vector<Diagnosis>{{std::move(finding), {Edit::kRemoveWaits, WaitingCalls(syncs)}}};
}

// Of the drains, those behind copies to the host.
constexpr ExplainedClass kExplains[] = {{DeviceClass::kIdleSyncDrain, true}};

}  // namespace

extern const Rule host_sync = {"TP301", "copies to the host make it wait for the device", Check,
                               kExplains};

}  // namespace trainprof::rules
