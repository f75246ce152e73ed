// device-to-host copies whose call waits for the device (.item(), .cpu(), print)  =>  read less
// often
//
// What counts is the copy's own call, or a stream sync right behind it; aten::item on a CPU tensor
// copies nothing and is not counted. The cost is the drain, not the wait: while the host waits the
// device works; afterwards it stands idle until the host has issued more.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/account/drain.h"
#include "analysis/host/program.h"
#include "analysis/rule.h"
#include "analysis/words.h"
#include "trace/base/cancel.h"

namespace trainprof::rules {
namespace {

// At least once a step, and this share of the steps' time blocked, or lost to the drain.
constexpr double kMinBlockedShare = 0.02;
constexpr double kMinDrainShare = 0.01;
constexpr double kErrorDrainShare = 0.10;
// torch issues the sync that completes a copy within this time on the same thread.
constexpr Duration kPairedSyncWithin = Microseconds(50);

struct Sync {
  Interval call;     // the copy's call and the sync behind it, as one wait
  Duration blocked;  // their durations
  uint32_t op = 0;
  Row paired = kNoRow;   // the sync behind it
  Row waiting = kNoRow;  // the call that waited longest: what a stack was taken of
};

// The stream sync that follows `call` on its thread at once, or kNoRow.
Row PairedSync(const ApiTable& api, Row call) {
  const auto [first, last] = api.rows_of(api.track[Index(call)]);
  (void)first;
  for (uint32_t next = static_cast<uint32_t>(Index(call)) + 1; next < last; ++next) {
    if (api.begin[next] > api.end[Index(call)] + kPairedSyncWithin) break;
    if (api.kind[next] == ApiKind::kSync) return Row{next};
    if (api.kind[next] == ApiKind::kLaunch || api.kind[next] == ApiKind::kCopy) break;
  }
  return kNoRow;
}

std::vector<Sync> FindSyncs(const RankModel& model) {
  const Trace& trace = model.trace;
  std::vector<Sync> syncs;
  for (uint32_t op = 0; op < trace.device_ops.size(); ++op) {
    CancelPoint(op);
    const Row call = trace.device_ops.launch[op];
    if (trace.device_ops.direction[op] != CopyDirection::kDeviceToHost || call == kNoRow) continue;
    if (!model.InWindow(trace.api.interval(call))) continue;
    Sync sync{trace.api.interval(call), trace.api.interval(call).Length(), op, kNoRow, call};
    const Row paired = PairedSync(trace.api, call);
    const bool completes =
        paired != kNoRow && trace.api.end[Index(paired)] + kRounding >= trace.device_ops.end[op];
    if (!model.blocking_calls[Index(call)] && !completes) continue;
    if (completes) {
      sync.paired = paired;
      sync.call.end = trace.api.end[Index(paired)];
      if (trace.api.interval(paired).Length() > sync.blocked) sync.waiting = paired;
      sync.blocked += trace.api.interval(paired).Length();
    }
    syncs.push_back(sync);
  }
  std::sort(syncs.begin(), syncs.end(),
            [](const Sync& a, const Sync& b) { return a.call.begin < b.call.begin; });
  return syncs;
}

void Describe(const RankModel& model, std::vector<Sync> syncs, Finding& finding) {
  for (size_t i = 0; i < syncs.size(); ++i) {
    CancelPoint(i);
    AddSite(finding.where, model.sites.FindCall(syncs[i].waiting));
  }
  KeepWorst(syncs, [](const Sync& a, const Sync& b) { return a.blocked > b.blocked; });
  for (const Sync& sync : syncs) {
    finding.evidence.push_back(
        {fmt::format("{} of {} blocked the host for {:.3f} ms",
                     model.trace.Text(model.trace.device_ops.name[sync.op]),
                     Counted(model.trace.device_ops.bytes[sync.op], "byte", "bytes"),
                     sync.blocked.ToMilliseconds()),
         sync.call, Table::kApi, sync.waiting});
  }
}

std::vector<Row> WaitingCalls(const RankModel& model, const std::vector<Sync>& syncs) {
  std::vector<Row> calls;
  for (const Sync& sync : syncs) {
    calls.push_back(model.trace.device_ops.launch[sync.op]);
    if (sync.paired != kNoRow) calls.push_back(sync.paired);
  }
  return calls;
}

RuleOutcome Check(const RankModel& model) {
  if (model.devices.empty()) return NoDevices(model);
  if (model.trace.api.size() == 0) return Skipped{"the trace holds no runtime calls"};
  const std::vector<Sync> syncs = FindSyncs(model);
  Duration blocked;
  std::vector<Interval> calls;
  for (const Sync& sync : syncs) {
    blocked += sync.blocked;
    calls.push_back(sync.call);
  }
  Duration drain;
  for (Duration d : DrainOf(calls, model.devices, model.device_steps.device_window)) drain += d;
  const bool often = static_cast<int64_t>(syncs.size()) >= model.device_steps.divisor();
  const bool costly = model.ShareOfWindow(blocked) > kMinBlockedShare ||
                      model.ShareOfWindow(drain) > kMinDrainShare;
  if (syncs.empty() || !often || !costly) return std::vector<Diagnosis>{};

  Finding finding;
  finding.severity =
      model.ShareOfWindow(drain) > kErrorDrainShare ? Severity::kError : Severity::kWarning;
  finding.title =
      fmt::format("Host syncs: {} the host for {:.1f} {}; the GPU then idles {:.1f}",
                  syncs.size() == 1 ? "1 device-to-host copy blocks"
                                    : fmt::format("{} device-to-host copies block", syncs.size()),
                  model.PerStepMs(blocked), model.Unit(), model.PerStepMs(drain));
  finding.count = static_cast<int64_t>(syncs.size());
  finding.cost = drain;
  Describe(model, syncs, finding);
  const bool is_cpp = LanguageOf(model.trace) == Language::kCpp;
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
  finding.verify = fmt::format("Record again: fewer device-to-host copies, {} near 0.",
                               Title(DeviceClass::kIdleSyncDrain));
  return std::vector<Diagnosis>{
      {std::move(finding), {Edit::kRemoveWaits, WaitingCalls(model, syncs)}}};
}

// Of the drains, those behind copies to the host; an explicit synchronize is not looked for.
constexpr ExplainedClass kExplains[] = {{DeviceClass::kIdleSyncDrain, true}};

}  // namespace

extern const Rule host_sync = {"TP301", "copies to the host make it wait for the device", Check,
                               kExplains};

}  // namespace trainprof::rules
