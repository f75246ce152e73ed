// copies and memsets that no kernel hides, by direction and kind  =>  let them run beside compute,
// or make fewer
//
// Large copies to the device from pageable memory whose call blocks are pageable-copy's, those of a checkpoint
// host-work's where it speaks of the checkpoint.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/account/drain.h"
#include "analysis/host/copy_calls.h"
#include "analysis/host/program.h"
#include "analysis/rule.h"
#include "analysis/saves.h"
#include "analysis/words.h"
#include "trace/base/cancel.h"

namespace trainprof::rules {
namespace {

// What is told apart: each wants another change. In the order in which they are told.
enum class Kind : uint8_t {
  kPageableToDevice,
  kWaitedToDevice,         // from pinned memory, and the host waits all the same
  kUnknownWaitedToDevice,  // the source does not say from what memory
  kPinnedToDevice,
  kToDevice,
  kPageableToHost,
  kToHost,
  kWithinDevice,
  kBetweenDevices,
  kMemset,
  kOther,
};

struct Group {
  std::vector<Row> ops;  // exposed at least in part
  std::vector<Row> calls;
  std::vector<Row> sync_calls;  // behind them
  std::vector<Row> waits;       // calls that waited
  int64_t bytes = 0;
  Duration exposed;
};

Kind KindOf(const DeviceOpTable& ops, size_t op, bool waits) {
  if (ops.kind[op] == DeviceOpKind::kMemset) return Kind::kMemset;
  const bool pageable = ops.Uses(op, MemoryKind::kPageable);
  switch (ops.direction[op]) {
    case CopyDirection::kHostToDevice:
      if (pageable) return Kind::kPageableToDevice;
      if (ops.Uses(op, MemoryKind::kPinned)) {
        return waits ? Kind::kWaitedToDevice : Kind::kPinnedToDevice;
      }
      return waits ? Kind::kUnknownWaitedToDevice : Kind::kToDevice;
    case CopyDirection::kDeviceToHost:
      return pageable ? Kind::kPageableToHost : Kind::kToHost;
    case CopyDirection::kDeviceToDevice:
      return Kind::kWithinDevice;
    case CopyDirection::kPeer:
      return Kind::kBetweenDevices;
    case CopyDirection::kUnknown:
    case CopyDirection::kHostToHost:
      break;
  }
  return Kind::kOther;
}

std::string_view NameOf(Kind kind) {
  switch (kind) {
    case Kind::kPageableToDevice:
      return "from pageable host memory to the device";
    case Kind::kWaitedToDevice:
      return "from pinned host memory to the device that the host waits for";
    case Kind::kUnknownWaitedToDevice:
      return "from the host to the device that the host waits for";
    case Kind::kPinnedToDevice:
      return "from pinned host memory to the device";
    case Kind::kToDevice:
      return "from the host to the device";
    case Kind::kPageableToHost:
      return "from the device to pageable host memory";
    case Kind::kToHost:
      return "from the device to the host";
    case Kind::kWithinDevice:
      return "within the device";
    case Kind::kBetweenDevices:
      return "between devices";
    case Kind::kMemset:
    case Kind::kOther:
      break;
  }
  return "";
}

struct Suggestion {
  std::string advice;
  std::string fix;
  Edit edit = Edit::kOverlapCopies;
};

Suggestion ForPrefetch(Language language, std::string first) {
  return {
      first +
          fmt::format(
              "Copy the next batch on a stream of its own while this one is computed, and let the "
              "compute stream wait for it; memory that the allocator gave to one stream has to be "
              "told of the other ({}). Send images as uint8 and normalise on the GPU: float batches "
              "move four times the bytes.",
              InItsLanguage(language, "tensor.record_stream(torch.cuda.current_stream())",
                            "tensor.record_stream(c10::cuda::getCurrentCUDAStream())")),
      language == Language::kCpp
          ? "{\n  c10::cuda::CUDAStreamGuard on(copy_stream);\n  next = batch.to(device, "
            "/*non_blocking=*/true);   // batch is pinned\n  copied.record(copy_stream);\n}\n"
            "// before next is used:\ncopied.block(c10::cuda::getCurrentCUDAStream());\n"
            "next.record_stream(c10::cuda::getCurrentCUDAStream());"
          : "with torch.cuda.stream(copy_stream):\n    next = batch.to(device, "
            "non_blocking=True)   # batch is pinned\n# before next is used:\n"
            "torch.cuda.current_stream().wait_stream(copy_stream)\n"
            "next.record_stream(torch.cuda.current_stream())",
      Edit::kOverlapCopies};
}

Suggestion ForResults(Language language, Edit edit) {
  const bool is_cpp = language == Language::kCpp;
  return {
      fmt::format(
          "Bring results to the host less often, and fewer of them: reduce on the GPU first. "
          "What has to come each step can go into pinned memory without waiting ({}), and be "
          "read when an event behind it is done, not before: until then it holds old values.",
          InItsLanguage(language, "pinned.copy_(result, non_blocking=True); event.record()",
                        "pinned.copy_(result, /*non_blocking=*/true); event.record()")),
      is_cpp ? "pinned.copy_(result, /*non_blocking=*/true);   // pinned: made once, pin_memory()\n"
               "done.record();\n// a step later: done.synchronize(); use(pinned);"
             : "pinned.copy_(result, non_blocking=True)   # pinned: made once, pin_memory=True\n"
               "done.record()\n# a step later: done.synchronize(); use(pinned)",
      edit};
}

Suggestion SuggestionFor(Kind kind, Language language) {
  switch (kind) {
    case Kind::kPageableToDevice: {
      Suggestion prefetch = ForPrefetch(
          language,
          "Pin the memory where the batch is made (the loader's pin_memory), not in the loop. ");
      prefetch.edit = Edit::kPinCopies;
      return prefetch;
    }
    case Kind::kWaitedToDevice:
      return ForPrefetch(
          language, fmt::format("The memory is pinned, so the copy need not be waited for: {}. ",
                                InItsLanguage(language, "x.to(device, non_blocking=True)",
                                              "x.to(device, /*non_blocking=*/true)")));
    case Kind::kUnknownWaitedToDevice:
      return ForPrefetch(
          language,
          fmt::format(
              "Copy from pinned memory (the loader's pin_memory), and do not wait for it: {}. ",
              InItsLanguage(language, "x.to(device, non_blocking=True)",
                            "x.to(device, /*non_blocking=*/true)")));
    case Kind::kPinnedToDevice:
    case Kind::kToDevice:
      return ForPrefetch(language, "");
    case Kind::kPageableToHost:
      return ForResults(language, Edit::kPinCopies);
    case Kind::kToHost:
      return ForResults(language, Edit::kOverlapCopies);
    case Kind::kWithinDevice:
      return {fmt::format(
                  "Copies within the GPU come of .contiguous(), clone(), cat and of layouts that "
                  "do not fit what reads them: keep one memory format through the model ({}), "
                  "write into slices instead of concatenating, and let torch fuse the rest{}.",
                  InItsLanguage(language, "channels_last for convolutions",
                                "torch::MemoryFormat::ChannelsLast for convolutions"),
                  language == Language::kCpp ? "" : " (torch.compile)"),
              "", Edit::kDropWork};
    case Kind::kBetweenDevices:
      return {
          "Copies between GPUs run beside kernels when they are on a stream of their own: split the "
          "batch into micro-batches, and copy one while the next is computed. One process a GPU with "
          "NCCL does without most of them.",
          "", Edit::kOverlapCopies};
    case Kind::kMemset:
      return {
          "Memory is cleared that is overwritten or could be made when it is needed: gradients that are "
          "set to None are not cleared (zero_grad does so since torch 2.0, unless told otherwise), and "
          "what is written whole can be made by empty instead of zeros.",
          "", Edit::kDropWork};
    case Kind::kOther:
      break;
  }
  return {"Let them run on a stream of their own, beside kernels.", "", Edit::kOverlapCopies};
}

// pageable-copy's, whether or not it is worth a finding there.
bool IsOfAnotherRule(const DeviceOpTable& ops, const CopyCall& copy) {
  const size_t op = Index(copy.op);
  return ops.direction[op] == CopyDirection::kHostToDevice && copy.Waits() &&
         ops.Uses(op, MemoryKind::kPageable) && ops.bytes[op] > kPageableAsyncBytes;
}

std::map<Kind, Group> GroupsOf(const RankModel& model, const DeviceAccount& device) {
  const DeviceOpTable& ops = model.trace.device_ops;
  auto next = model.copies.begin();  // in the order of operations
  const std::vector<Row> saved = OpsOf(model.saved_copies);
  std::map<Kind, Group> groups;
  std::map<Kind, std::vector<Interval>> times;
  for (uint32_t op = 0; op < ops.size(); ++op) {
    CancelPoint(op);
    if (ops.kind[op] == DeviceOpKind::kKernel) continue;
    if (model.trace.tracks[Index(ops.track[op])].device != device.device) continue;
    if (!model.InDeviceWindow(ops.interval(Row{op}))) continue;
    while (next != model.copies.end() && next->op < Row{op}) ++next;
    const CopyCall* const copy =
        next != model.copies.end() && next->op == Row{op} ? &*next : nullptr;
    if (copy != nullptr && IsOfAnotherRule(ops, *copy)) continue;
    if (std::binary_search(saved.begin(), saved.end(), Row{op})) continue;
    const bool waits = copy != nullptr && copy->Waits();
    if (!waits && device.exposed_copy.TotalWithin(ops.interval(Row{op})).ns == 0) continue;
    const Kind kind = KindOf(ops, op, waits);
    Group& group = groups[kind];
    group.ops.push_back(Row{op});
    group.bytes += ops.bytes[op];
    times[kind].push_back(ops.interval(Row{op}));
    if (copy != nullptr) group.calls.push_back(copy->waiting);
    if (!waits) continue;
    group.waits.push_back(copy->call);
    if (copy->sync == kNoRow) continue;
    group.waits.push_back(copy->sync);
    group.sync_calls.push_back(copy->sync);
  }
  for (auto& [kind, group] : groups) {
    group.exposed = IntervalSet::Union(std::move(times[kind]))
                        .IntersectWith(device.exposed_copy)
                        .IntersectWith(model.device_steps.device_window)
                        .Total();
  }
  return groups;
}

// What the host then needs to feed the device again belongs to copies that it need not have waited
// for. Of copies to the host, that is host-sync's.
Duration CostOf(const RankModel& model, Kind kind, const Group& group) {
  if (kind == Kind::kPageableToHost || kind == Kind::kToHost) return group.exposed;
  return group.exposed +
         DrainOf(*model.graph, group.waits, model.devices, model.device_steps.device_window);
}

std::string BytesText(double bytes) {
  if (bytes < 1e5) return fmt::format("{:.1f} kB", bytes * 1e-3);
  return fmt::format("{:.1f} MB", bytes * 1e-6);
}

void Describe(const RankModel& model, const DeviceAccount& device, const Group& group,
              Finding& finding) {
  const DeviceOpTable& ops = model.trace.device_ops;
  finding.where = model.sites.FindCalls(group.calls);
  std::vector<Row> worst = group.ops;
  KeepWorst(worst, [&](Row a, Row b) {
    return device.exposed_copy.TotalWithin(ops.interval(a)) >
           device.exposed_copy.TotalWithin(ops.interval(b));
  });
  for (const Row op : worst) {
    const Interval when = ops.interval(op);
    finding.evidence.push_back(
        {fmt::format("{} of {}: {:.3f} ms, {:.3f} ms of it beside no kernel",
                     model.trace.Text(ops.name[Index(op)]),
                     Counted(ops.bytes[Index(op)], "byte", "bytes"), when.Length().ToMilliseconds(),
                     device.exposed_copy.TotalWithin(when).ToMilliseconds()),
         when, Table::kDeviceOps, op});
  }
}

// DistributedDataParallel keeps gradients twice unless told otherwise: in its buckets and as .grad.
void AdviseOnBuckets(Finding& finding) {
  constexpr double kLeastOfThem = 0.1;
  int64_t of_buckets = 0;
  for (const Site& site : finding.where) {
    const bool is_buckets = site.function.find("copy_bucket_to_grad") != std::string::npos ||
                            site.op.find("copy_bucket_to_grad") != std::string::npos;
    if (is_buckets) of_buckets += site.count;
  }
  if (static_cast<double>(of_buckets) < kLeastOfThem * static_cast<double>(finding.count)) return;
  finding.advice = fmt::format(
      "{} of them copy gradients out of DistributedDataParallel's buckets: "
      "gradient_as_bucket_view=True spares these. {}",
      of_buckets, finding.advice);
  finding.fix = "model = DistributedDataParallel(model, gradient_as_bucket_view=True)";
}

Diagnosis FindingOf(const RankModel& model, const DeviceAccount& device, Kind kind, Group group) {
  Finding finding;
  finding.cost = CostOf(model, kind, group);
  finding.severity = SeverityOfLoss(model.ShareOfWindow(finding.cost));
  finding.count = static_cast<int64_t>(group.ops.size());
  const Duration idle_behind = finding.cost - group.exposed;
  finding.title = fmt::format(
      "Exposed {}: {}{} ({}{}) run beside no kernel for {:.2f} {}{}",
      kind == Kind::kMemset ? "memsets" : "copies",
      kind == Kind::kMemset ? Counted(finding.count, "memset", "memsets")
                            : Counted(finding.count, "copy", "copies"),
      NameOf(kind).empty() ? "" : fmt::format(" {}", NameOf(kind)),
      BytesText(static_cast<double>(group.bytes) /
                static_cast<double>(model.device_steps.divisor())),
      model.device_steps.count() > 0 ? " a step" : "", model.PerStepMs(group.exposed), model.Unit(),
      idle_behind.ns == 0
          ? ""
          : fmt::format("; the GPU then idles {:.2f}", model.PerStepMs(idle_behind)));
  Describe(model, device, group, finding);
  Suggestion suggestion = SuggestionFor(kind, LanguageOf(model.trace));
  finding.advice = std::move(suggestion.advice);
  finding.fix = std::move(suggestion.fix);
  if (kind == Kind::kWithinDevice) AdviseOnBuckets(finding);
  finding.verify = fmt::format("Record again: {} ({}) near 0.", Title(DeviceClass::kExposedCopy),
                               Meaning(DeviceClass::kExposedCopy));
  return {std::move(finding),
          {suggestion.edit, std::move(group.ops), kNoDevice, false, std::move(group.sync_calls)}};
}

RuleOutcome Check(const RankModel& model) {
  if (model.devices.empty()) return NoDevices(model);
  // What no recorded kernel hides, one that is missing may have hidden.
  if (!model.device_doubt.empty()) return Skipped{model.device_doubt};
  const DeviceAccount& device = *DeviceWithMost(model, {DeviceClass::kExposedCopy});
  std::vector<Diagnosis> findings;
  for (auto& [kind, group] : GroupsOf(model, device)) {
    if (model.ShareOfWindow(CostOf(model, kind, group)) < kLeastShare) continue;
    findings.push_back(FindingOf(model, device, kind, std::move(group)));
  }
  return findings;
}

constexpr ExplainedClass kExplains[] = {{DeviceClass::kExposedCopy},
                                        {DeviceClass::kIdleSyncDrain, true}};

}  // namespace

extern const Rule exposed_copy = {"TP501", "copies and memsets that no kernel hides", Check,
                                  kExplains};

}  // namespace trainprof::rules
