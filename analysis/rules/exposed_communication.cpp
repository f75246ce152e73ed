// collectives that no kernel hides, or waiting for other ranks with nothing running  =>  overlap them,
// or send less
//
// From one rank's trace alone, moving data and waiting for a rank that comes late look the same: the
// ranks together tell (analysis/job/lateness.h).
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "analysis/host/collective_calls.h"
#include "analysis/host/program.h"
#include "analysis/rule.h"
#include "analysis/words.h"
#include "trace/base/cancel.h"
#include "trace/tables/communication.h"

namespace trainprof::rules {
namespace {

// A rank's wait for others is in it, and one trace does not show which part.
constexpr double kWithoutOtherRanks = 0.8;

struct Operation {
  int64_t count = 0;
  Duration exposed;
};

struct Communication {
  std::vector<Row> ops;  // exposed at least in part
  std::map<std::string_view, Operation> by_operation;
  std::map<CollectiveUse, Duration> by_use;
  Duration sums_of_forward;  // of by_use: launched in the forward pass, where no gradient is

  // That of which most is exposed.
  CollectiveUse MainUse() const {
    const auto most = std::max_element(by_use.begin(), by_use.end(),
                                       [](auto& a, auto& b) { return a.second < b.second; });
    return most == by_use.end() ? CollectiveUse::kOther : most->first;
  }
};

IntervalSet ForwardOf(const HostAccount& host) {
  std::vector<Interval> forward;
  for (const Segment<Phase>& segment : host.phases) {
    if (segment.value == Phase::kForward) forward.push_back(segment.interval);
  }
  return IntervalSet::Union(std::move(forward));
}

Communication Collect(const RankModel& model, const DeviceAccount& device) {
  const DeviceOpTable& ops = model.trace.device_ops;
  const IntervalSet forward = ForwardOf(model.host);
  const auto is_in_forward = [&](Row call) {
    if (call == kNoRow) return false;
    const TraceTime at = model.trace.api.begin[Index(call)];
    return forward.TotalWithin({at, at + Duration{1}}).ns > 0;
  };
  Communication found;
  for (uint32_t op = 0; op < ops.size(); ++op) {
    CancelPoint(op);
    if (model.trace.tracks[Index(ops.track[op])].device != device.device) continue;
    if (!Communicates(model.trace, Row{op}) || !model.InDeviceWindow(ops.interval(Row{op})))
      continue;
    const Duration exposed = device.exposed_communication.TotalWithin(ops.interval(Row{op}));
    if (exposed.ns == 0) continue;
    found.ops.push_back(Row{op});
    Operation& operation = found.by_operation[OperationOf(model.trace, Row{op})];
    ++operation.count;
    operation.exposed += exposed;
    const CollectiveUse use = UseOf(model.trace, Row{op});
    found.by_use[use] += exposed;
    if (use == CollectiveUse::kSum && is_in_forward(ops.launch[op])) {
      found.sums_of_forward += exposed;
    }
  }
  return found;
}

// "allreduce 4.1 (12 a step), allgather 0.3 (2 a step)": ms, most time first.
std::string OperationsText(const RankModel& model, const Communication& found) {
  std::vector<std::pair<std::string_view, Operation>> most(found.by_operation.begin(),
                                                           found.by_operation.end());
  KeepWorst(most, [](const auto& a, const auto& b) { return a.second.exposed > b.second.exposed; });
  std::string text;
  for (const auto& [name, operation] : most) {
    text += fmt::format(
        "{}{} {:.2f} ({:.1f}{})", text.empty() ? "" : ", ", name,
        model.PerStepMs(operation.exposed),
        static_cast<double>(operation.count) / static_cast<double>(model.device_steps.divisor()),
        model.device_steps.count() > 0 ? " a step" : " in all");
  }
  return text;
}

void AddRanks(const RankModel& model, Finding& finding) {
  finding.confidence = kWithoutOtherRanks;
  finding.confidence_reasons.push_back(
      model.trace.world_size > 1
          ? fmt::format("waiting for a late one of {} ranks looks the same in one rank's trace",
                        model.trace.world_size)
          : "waiting for a rank that comes late looks the same in one rank's trace");
}

// What hides it, and what makes less of it.
struct Remedy {
  std::string advice;
  std::string fix;  // in Python
};

// Sums within the forward pass of a training: a backward pass has as many of these beside its gradients'.
Remedy ForSumsOfForward() {
  return {
      "Else many of these sums stand within the forward pass, where no gradients are. Where they join the parts "
      "of a layer (tensor parallelism), let the ranks that share a layer be few and within one node, and "
      "let pieces of a product hide the sums of others (in Megatron-Core: sequence_parallel with "
      "tp_comm_overlap). Those of a loss or a metric are needed every N steps only.",
      ""};
}

Remedy RemedyFor(const Communication& found, const RankModel& model) {
  constexpr double kManyOfForward = 0.25;
  const CollectiveUse use = found.MainUse();
  const bool is_cpp = LanguageOf(model.trace) == Language::kCpp;
  const auto in_python = [&](std::string_view text) { return is_cpp ? "" : text; };
  switch (use) {
    case CollectiveUse::kSum:
      if (model.workload == Workload::kInference) {
        return {
            "Else each layer's sum stands between it and the next one, and one batch has nothing to hide it "
            "with: two halves of a batch in turns hide one's sums behind the other's layers. Where the "
            "model fits on fewer GPUs, copies of it on these send less. A server's own all-reduce, "
            "within a node and for small messages, takes less time than NCCL's, and still less where it is "
            "fused with the norm behind it.",
            ""};
      }
      if (static_cast<double>(found.sums_of_forward.ns) >=
          kManyOfForward * static_cast<double>(found.by_use.at(use).ns)) {
        return ForSumsOfForward();
      }
      return {
          fmt::format(
              "Else let collectives begin while gradients are still computed{}. With gradient "
              "accumulation only the last backward pass needs them{}. The last bucket has nothing left "
              "to hide behind. Fewer bytes: gradients in bf16; fewer calls: larger buckets.",
              in_python(": DistributedDataParallel does so by bucket (bucket_cap_mb, "
                        "gradient_as_bucket_view; find_unused_parameters only where it is needed)"),
              in_python(" (no_sync() around the others)")),
          "with model.no_sync() if not last_micro_batch else contextlib.nullcontext():\n"
          "    (loss / micro_batches).backward()"};
    case CollectiveUse::kShards:
      return {
          fmt::format(
              "Else let the next layer's weights come while this one computes{}. Where memory allows, keep "
              "them from the forward to the backward pass{}, or share them out within a node alone. "
              "With gradient accumulation only the last backward pass needs to send gradients{}. Fewer "
              "bytes: weights and gradients in bf16{}; fewer calls: larger blocks.",
              in_python(": fully_shard does, and further ahead with "
                        "set_modules_to_forward_prefetch(); DeepSpeed with overlap_comm"),
              in_python(" (reshard_after_forward=False)"),
              in_python(" (set_requires_gradient_sync(False) before the others)"),
              in_python(" (MixedPrecisionPolicy)")),
          "fully_shard(block, reshard_after_forward=False)   # of each block, where memory allows"};
    case CollectiveUse::kExchange:
      return {
          fmt::format(
              "Else begin each exchange as soon as its input is there, and wait for it where its result is "
              "first read{}: between the two belongs what needs none of it, such as dense layers beside "
              "embeddings, or another half of the batch. Tables or experts with most of the work make "
              "the other ranks wait: share them out evenly. Fewer bytes: exchange bf16 for float32; fewer "
              "calls: one for all tables.",
              in_python(" (async_op=True, then wait())")),
          "work = torch.distributed.all_to_all_single(received, sent, async_op=True)\n"
          "dense = what_needs_none_of_it(batch)\n"
          "work.wait()"};
    case CollectiveUse::kExperts:
      return {
          fmt::format(
              "Else send tokens to their experts while something else is computed, and wait where the result is "
              "first read{}: the shared expert, or the attention of another half of the batch. A rank "
              "whose experts get most tokens makes the others wait: balance them, or keep a second copy "
              "of those in demand. Fewer bytes: send fp8, receive bf16.",
              in_python(" (DeepEP: async_finish=True, then event.current_stream_wait())")),
          ""};
    case CollectiveUse::kPair:
      return {
          fmt::format(
              "Else a stage of the pipeline waits for the one before it: more micro-batches a step shorten "
              "the part in which the pipeline fills and drains, and so do interleaved stages{}. Between "
              "the two, stages of equal work wait least.",
              in_python(" (ScheduleInterleaved1F1B)")),
          ""};
    case CollectiveUse::kOther:
      break;
  }
  return {
      "Else let each begin as soon as its input is there, on a stream of its own, and wait for it where its "
      "result is first read: what needs none of it hides it. Fewer bytes: bf16 for float32; fewer calls: "
      "several tensors in one.",
      ""};
}

Diagnosis OfKernels(const RankModel& model, const DeviceAccount& device) {
  Communication found = Collect(model, device);
  const DeviceOpTable& ops = model.trace.device_ops;
  Finding finding;
  finding.cost = device.Of(DeviceClass::kExposedCommunication);
  finding.severity = SeverityOfLoss(model.ShareOfWindow(finding.cost));
  finding.count = static_cast<int64_t>(found.ops.size());
  finding.title =
      fmt::format("Exposed communication: no kernel hides {:.2f} {} of it: {}",
                  model.PerStepMs(finding.cost), model.Unit(), OperationsText(model, found));
  AddRanks(model, finding);
  std::vector<Row> worst = found.ops;
  finding.where = model.sites.FindLaunches(worst);
  const auto exposed = [&](Row op) {
    return device.exposed_communication.TotalWithin(ops.interval(op));
  };
  KeepWorst(worst, [&](Row a, Row b) { return exposed(a) > exposed(b); });
  for (const Row op : worst) {
    finding.evidence.push_back(
        {fmt::format("{} took {:.3f} ms, {:.3f} ms of it beside no kernel",
                     OperationOf(model.trace, op), ops.interval(op).Length().ToMilliseconds(),
                     exposed(op).ToMilliseconds()),
         ops.interval(op), Table::kDeviceOps, op});
  }
  Remedy remedy = RemedyFor(found, model);
  finding.advice =
      "First see whether a rank comes late: all wait for it, and then its cause is the one to take on. " +
      remedy.advice;
  if (LanguageOf(model.trace) != Language::kCpp) finding.fix = std::move(remedy.fix);
  finding.verify = fmt::format("Record again, all ranks: {} ({}) is less, and so is the step.",
                               Title(DeviceClass::kExposedCommunication),
                               Meaning(DeviceClass::kExposedCommunication));
  return {std::move(finding), {Edit::kOverlapCommunication, std::move(found.ops)}};
}

// With nothing running, for ranks that have not come yet: the ranges that wait on the host.
Diagnosis OfWaits(const RankModel& model, const DeviceAccount& device, const IntervalSet& waits) {
  Finding finding;
  finding.cost = device.Of(DeviceClass::kIdleCollective);
  finding.severity = SeverityOfLoss(model.ShareOfWindow(finding.cost));
  finding.title =
      fmt::format("Waiting for other ranks: the GPU stands idle for {:.2f} {} until they have come",
                  model.PerStepMs(finding.cost), model.Unit());
  AddRanks(model, finding);
  std::vector<Row> rows;
  const RangeTable& ranges = model.trace.ranges;
  for (uint32_t row = 0; row < ranges.size(); ++row) {
    CancelPoint(row);
    if (PhaseOf(model.trace, Row{row}) != Phase::kRankWait) continue;
    if (!model.InWindow(ranges.interval(Row{row}))) continue;
    if (waits.TotalWithin(ranges.interval(Row{row})).ns == 0) continue;
    rows.push_back(Row{row});
    AddSite(finding.where, model.sites.FindRange(Row{row}));
  }
  finding.count = static_cast<int64_t>(rows.size());
  std::vector<Row> worst = rows;
  KeepWorst(worst, [&](Row a, Row b) {
    return ranges.interval(a).Length() > ranges.interval(b).Length();
  });
  for (const Row row : worst) {
    finding.evidence.push_back(
        {fmt::format("{} took {:.3f} ms", model.trace.Text(ranges.name[Index(row)]),
                     ranges.interval(row).Length().ToMilliseconds()),
         ranges.interval(row), Table::kRanges, row});
  }
  finding.advice =
      "Find the rank that comes last (the report of all ranks names it): its first finding is "
      "the one to take on. What this rank saves, it would wait longer.";
  finding.verify = "Record all ranks again: they come to the collective together.";
  return {std::move(finding), {Edit::kDropHostWork, std::move(rows)}};
}

IntervalSet WaitsOf(const DeviceAccount& device) {
  std::vector<Interval> idle;
  for (const Segment<DeviceClass>& segment : device.idle) {
    if (segment.value == DeviceClass::kIdleCollective) idle.push_back(segment.interval);
  }
  return IntervalSet::Union(std::move(idle));
}

struct Waiting {
  std::vector<Row> ops;  // collectives that only waited
  Duration total;
};

Waiting WaitingIn(const RankModel& model, const DeviceAccount& device, const IntervalSet& waits) {
  const DeviceOpTable& ops = model.trace.device_ops;
  Waiting found;
  for (uint32_t op = 0; op < ops.size(); ++op) {
    CancelPoint(op);
    if (model.trace.tracks[Index(ops.track[op])].device != device.device) continue;
    const Interval when = ops.interval(Row{op});
    if (!Communicates(model.trace, Row{op}) || !model.InDeviceWindow(when)) continue;
    const Duration waited = waits.TotalWithin(when);
    if (waited.ns == 0) continue;
    found.ops.push_back(Row{op});
    found.total += waited;
  }
  return found;
}

// In a collective's kernel, for another device of the same process. What it would give that all come at
// once, only the split of the work tells: from nothing, where the late one does no less, to all of it.
Diagnosis OfLateDevice(const RankModel& model, const DeviceAccount& device,
                       const IntervalSet& waits, std::vector<Row> ops) {
  const auto number = [&](const DeviceAccount& of) {
    return model.trace.devices[Index(of.device)].id;
  };
  // Of the others the one that waits least; where they take turns, none waits less than this one.
  const DeviceAccount* late = nullptr;
  for (const DeviceAccount& other : model.devices) {
    if (other.device == device.device) continue;
    const bool waits_less = late == nullptr || other.Of(DeviceClass::kIdleCollective) <
                                                   late->Of(DeviceClass::kIdleCollective);
    if (waits_less) late = &other;
  }
  const std::string of_late =
      late == nullptr ? "another one" : fmt::format("GPU {}", number(*late));
  Finding finding;
  finding.cost = device.Of(DeviceClass::kIdleCollective);
  finding.severity = SeverityOfLoss(model.ShareOfWindow(finding.cost));
  finding.count = static_cast<int64_t>(ops.size());
  finding.title =
      fmt::format("Waiting in collectives: GPU {} waits {:.2f} {} in their kernels until {} comes",
                  number(device), model.PerStepMs(finding.cost), model.Unit(), of_late);
  finding.where = model.sites.FindLaunches(ops);
  const auto waited = [&](Row op) {
    return waits.TotalWithin(model.trace.device_ops.interval(op));
  };
  KeepWorst(ops, [&](Row a, Row b) { return waited(a) > waited(b); });
  for (const Row op : ops) {
    const Interval when = model.trace.device_ops.interval(op);
    finding.evidence.push_back(
        {fmt::format("{} took {:.3f} ms, {:.3f} ms of it waiting", OperationOf(model.trace, op),
                     when.Length().ToMilliseconds(), waited(op).ToMilliseconds()),
         when, Table::kDeviceOps, op});
  }
  finding.advice = fmt::format(
      "Give all GPUs the same work: equal parts of the batch, and no loss, gathering or logging on one "
      "of them alone. What {} does longer is what the others wait for.",
      of_late);
  finding.verify = fmt::format("Record again: {} ({}) near 0.", Title(DeviceClass::kIdleCollective),
                               Meaning(DeviceClass::kIdleCollective));
  return {std::move(finding), {Edit::kDropHostWork, {}}};
}

Diagnosis OfWaiting(const RankModel& model, const DeviceAccount& device) {
  const IntervalSet waits = WaitsOf(device);
  Waiting waiting = WaitingIn(model, device, waits);
  // One of the two is most of it.
  if (waiting.total.ns * 2 < device.Of(DeviceClass::kIdleCollective).ns) {
    return OfWaits(model, device, waits);
  }
  return OfLateDevice(model, device, waits, std::move(waiting.ops));
}

RuleOutcome Check(const RankModel& model) {
  if (model.devices.empty()) return NoDevices(model);
  // What no recorded kernel hides, one that is missing may have hidden.
  if (!model.device_doubt.empty()) return Skipped{model.device_doubt};
  std::vector<Diagnosis> findings;
  const auto exceeds = [&](DeviceClass of) -> const DeviceAccount* {
    const DeviceAccount* device = DeviceWithMost(model, {of});
    return model.ShareOfWindow(device->Of(of)) < kLeastShare ? nullptr : device;
  };
  if (const auto* device = exceeds(DeviceClass::kExposedCommunication)) {
    findings.push_back(OfKernels(model, *device));
  }
  if (const auto* device = exceeds(DeviceClass::kIdleCollective)) {
    findings.push_back(OfWaiting(model, *device));
  }
  return findings;
}

constexpr ExplainedClass kExplains[] = {{DeviceClass::kExposedCommunication},
                                        {DeviceClass::kIdleCollective}};

}  // namespace

extern const Rule exposed_communication = {"TP401", "communication that no kernel hides", Check,
                                           kExplains};

}  // namespace trainprof::rules
