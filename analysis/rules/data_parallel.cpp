// one process drives several devices: torch.nn.DataParallel's replicate, scatter and gather, and the
// first device's extra work  =>  DistributedDataParallel, one process a device
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "analysis/account/replicas.h"
#include "analysis/host/program.h"
#include "analysis/rule.h"
#include "analysis/words.h"
#include "trace/base/cancel.h"
#include "trace/base/kernel_names.h"

namespace trainprof::rules {
namespace {

enum Part : uint8_t { kReplicate, kScatter, kGather };
constexpr size_t kParts = 3;
constexpr std::string_view kPartNames[kParts] = {"replicate", "scatter", "gather"};

// What a range of DataParallel's does; kParts where it is none. Its own functions are Python's
// ("torch/nn/parallel/replicate.py(78): replicate"), and what they call autograd functions of these
// names.
size_t PartOf(std::string_view name) {
  const size_t from = name.find("nn/parallel/");
  if (from != name.npos) {
    for (size_t part = 0; part < kParts; ++part) {
      if (name.ends_with(fmt::format(": {}", kPartNames[part]))) return part;
    }
    return kParts;
  }
  if (name == "Broadcast" || name == "ReduceAddCoalescedBackward") return kReplicate;
  if (name == "Scatter") return kScatter;
  if (name == "Gather") return kGather;
  return kParts;
}

// "DataParallel.forward" of torch's own annotation, its Python frame, or LibTorch's data_parallel().
bool IsForward(std::string_view name) {
  return name == "DataParallel.forward" || name.find("nn/parallel/data_parallel.py") != name.npos ||
         name.find("parallel::data_parallel") != name.npos;
}

struct Ranges {
  bool named = false;  // DataParallel's own forward pass
  std::array<std::vector<Interval>, kParts> parts;
  std::vector<Row> rows;  // outermost ones of the parts
  std::vector<Site> where;
};

Ranges FindRanges(const RankModel& model) {
  const RangeTable& ranges = model.trace.ranges;
  std::map<StringId, std::pair<size_t, bool>> known;
  Ranges found;
  const auto says = [&](Row row) {
    const StringId name = ranges.name[Index(row)];
    const auto [it, is_new] = known.try_emplace(name);
    const std::string_view text = model.trace.Text(name);
    if (is_new) it->second = {PartOf(text), IsForward(text)};
    return it->second;
  };
  for (uint32_t i = 0; i < ranges.size(); ++i) {
    CancelPoint(i);
    const RangeKind kind = ranges.kind[i];
    if (kind == RangeKind::kGpuAnnotation || kind == RangeKind::kDeviceRow) continue;
    const auto [part, is_forward] = says(Row{i});
    if ((part == kParts && !is_forward) || !model.InWindow(ranges.interval(Row{i}))) continue;
    if (is_forward) {
      found.named = true;
      AddSite(found.where, model.sites.FindRange(Row{i}));
      continue;
    }
    found.parts[part].push_back(ranges.interval(Row{i}));
    const Row around = ranges.parent[i];
    if (around == kNoRow || says(around).first == kParts) found.rows.push_back(Row{i});
  }
  return found;
}

// Work of the busiest device and the mean of the others.
struct Imbalance {
  const DeviceAccount* busiest = nullptr;
  Duration most;
  Duration others;
};

Imbalance ImbalanceOf(const RankModel& model) {
  Imbalance found;
  Duration all;
  for (const DeviceAccount& device : model.devices) {
    const Duration busy = device.BusyWithin(model.device_steps.device_window);
    all += busy;
    if (found.busiest == nullptr || busy > found.most) {
      found.busiest = &device;
      found.most = busy;
    }
  }
  found.others = Duration{(all - found.most).ns / static_cast<int64_t>(model.devices.size() - 1)};
  return found;
}

// ", memory up to 10.1 GiB on GPU 0, 6.2 GiB on GPU 1": of torch's allocator, as far as it told.
std::string MemoryText(const RankModel& model) {
  std::map<int64_t, int64_t> peaks;
  const InstantTable& instants = model.trace.instants;
  for (uint32_t row = 0; row < instants.size(); ++row) {
    CancelPoint(row);
    const Allocation* const allocation = model.trace.AllocationOf(Row{row});
    if (allocation == nullptr || allocation->device_id < 0) continue;
    int64_t& peak = peaks[allocation->device_id];
    peak = std::max(peak, allocation->Total(MemoryTotal::kReserved));
  }
  std::string text;
  for (const auto& [device, peak] : peaks) {
    if (peak <= 0) continue;
    text += fmt::format("{}{:.1f} GiB on GPU {}", text.empty() ? "" : ", ",
                        static_cast<double>(peak) / (1 << 30), device);
  }
  return text.empty() ? text : " Memory of torch's allocator, at most: " + text + ".";
}

constexpr double kByTraffic = 0.8;  // confidence

// What DataParallel asks people to do; `number` is the device that does more than the others.
void Advise(const RankModel& model, int64_t number, Finding& finding) {
  finding.advice = fmt::format(
      "At each forward pass nn.DataParallel copies all weights to each GPU, scatters the batch and gathers "
      "the outputs on GPU {}, by threads that share Python's GIL. DistributedDataParallel, one process a GPU, "
      "keeps the weights and adds gradients up while the backward pass runs; give each rank its part of the "
      "data (DistributedSampler, and set_epoch at each epoch), else every rank trains on all of it. The batch "
      "size is then a GPU's, not the sum.{}",
      number, MemoryText(model));
  finding.fix =
      "# torchrun --nproc-per-node=N train.py\n"
      "torch.distributed.init_process_group(\"nccl\")\n"
      "local = int(os.environ[\"LOCAL_RANK\"]); torch.cuda.set_device(local)\n"
      "model = torch.nn.parallel.DistributedDataParallel(model.to(local), device_ids=[local])";
  finding.verify =
      "Record again, all ranks: no replicate, scatter or gather, and GPUs equally busy.";
}

// Known by what the devices did.
Diagnosis OfReplicas(const RankModel& model, Replicas replicas) {
  const DeviceOpTable& ops = model.trace.device_ops;
  const auto times_of = [&](const std::vector<Row>& rows) {
    std::vector<Interval> times;
    for (const Row row : rows) times.push_back(ops.interval(row));
    return IntervalSet::Union(std::move(times)).IntersectWith(model.device_steps.device_window);
  };
  const IntervalSet out = times_of(replicas.out);
  const IntervalSet back = times_of(replicas.back);
  const Imbalance imbalance = ImbalanceOf(model);
  const int64_t number = model.trace.devices[Index(replicas.root)].id;
  Finding finding;
  finding.cost = out.UnionWith(back).Total();
  finding.severity =
      std::max(Severity::kWarning, SeverityOfLoss(model.ShareOfWindow(finding.cost)));
  finding.count = static_cast<int64_t>(replicas.out.size() + replicas.back.size());
  finding.title = fmt::format(
      "one process drives {} GPUs that run the same kernels; GPU {} sends weights "
      "for {:.2f} {} and takes gradients for {:.2f}, works {:.2f} (the others {:.2f})",
      model.devices.size(), number, model.PerStepMs(out.Total()), model.Unit(),
      model.PerStepMs(back.Total()), model.PerStepMs(imbalance.most),
      model.PerStepMs(imbalance.others));
  finding.where = model.sites.FindLaunches(replicas.out);
  std::vector<Row> longest = replicas.out;
  longest.insert(longest.end(), replicas.back.begin(), replicas.back.end());
  KeepWorst(longest,
            [&](Row a, Row b) { return ops.interval(a).Length() > ops.interval(b).Length(); });
  for (const Row row : longest) {
    finding.evidence.push_back(
        {fmt::format("{} took {:.3f} ms",
                     ops.kind[Index(row)] == DeviceOpKind::kCopy
                         ? model.trace.Text(ops.name[Index(row)])
                         : FunctionOf(model.trace.Text(ops.name[Index(row)])),
                     ops.interval(row).Length().ToMilliseconds()),
         ops.interval(row), Table::kDeviceOps, row});
  }
  Advise(model, number, finding);
  Change change{Edit::kKeepReplicas, std::move(replicas.out)};
  change.ops = std::move(replicas.back);
  return {std::move(finding), std::move(change)};
}

// Of each part how long the host was in it: "replicate 12.10, gather 0.83"; and all of them.
std::pair<std::string, IntervalSet> PartsOf(const RankModel& model, Ranges& ranges) {
  std::string text;
  IntervalSet all;
  for (size_t part = 0; part < kParts; ++part) {
    const IntervalSet times =
        IntervalSet::Union(std::move(ranges.parts[part])).IntersectWith(model.device_steps.window);
    all = std::move(all).UnionWith(times);
    if (times.Empty()) continue;
    text += fmt::format("{}{} {:.2f}", text.empty() ? "" : ", ", kPartNames[part],
                        model.PerStepMs(times.Total()));
  }
  return {std::move(text), std::move(all)};
}

// What names it tells where, what the devices did tells what it costs: the host only asks for the copies.
Diagnosis OfNamedReplicas(const RankModel& model, Ranges ranges, Replicas replicas) {
  const std::string parts = PartsOf(model, ranges).first;
  Diagnosis diagnosis = OfReplicas(model, std::move(replicas));
  Finding& finding = diagnosis.finding;
  finding.title = "DataParallel: " + finding.title;
  if (!parts.empty()) finding.title += fmt::format("; the host is in {} {}", parts, model.Unit());
  if (!ranges.where.empty()) finding.where = std::move(ranges.where);
  return diagnosis;
}

Diagnosis OfUnnamedReplicas(const RankModel& model, Replicas replicas) {
  Diagnosis diagnosis = OfReplicas(model, std::move(replicas));
  Finding& finding = diagnosis.finding;
  finding.title = "DataParallel, as it seems: " + finding.title;
  finding.confidence = kByTraffic;
  finding.confidence_reasons.push_back(
      "no operator and no Python frame names it: it follows from what the GPUs run and send");
  return diagnosis;
}

RuleOutcome Check(const RankModel& model) {
  if (model.devices.empty()) return NoDevices(model);
  if (!model.device_doubt.empty()) return Skipped{model.device_doubt};
  if (model.devices.size() < 2) return std::vector<Diagnosis>{};
  Ranges ranges = FindRanges(model);
  const bool is_named =
      ranges.named || (!ranges.parts[kReplicate].empty() && !ranges.parts[kGather].empty());
  if (auto replicas = FindReplicas(model.trace, model.device_steps)) {
    return std::vector<Diagnosis>{
        is_named ? OfNamedReplicas(model, std::move(ranges), *std::move(replicas))
                 : OfUnnamedReplicas(model, *std::move(replicas))};
  }
  if (!is_named) {
    if (model.trace.ranges.size() > 0 &&
        std::any_of(model.trace.ranges.kind.begin(), model.trace.ranges.kind.end(),
                    [](RangeKind kind) {
                      return kind == RangeKind::kCpuOp || kind == RangeKind::kPythonFunction;
                    })) {
      return std::vector<Diagnosis>{};
    }
    return Skipped{
        "without operators or Python frames the trace does not show how the process shares "
        "its devices' work (--ops records operators)"};
  }
  const Imbalance imbalance = ImbalanceOf(model);
  const auto [parts, all] = PartsOf(model, ranges);
  Finding finding;
  const Duration exposed = all.Minus(imbalance.busiest->busy).Total();
  finding.cost = exposed + (imbalance.most - imbalance.others);
  finding.severity =
      std::max(Severity::kWarning, SeverityOfLoss(model.ShareOfWindow(finding.cost)));
  finding.count = static_cast<int64_t>(ranges.rows.size());
  const int64_t number = model.trace.devices[Index(imbalance.busiest->device)].id;
  finding.title = fmt::format(
      "DataParallel: one process drives {} GPUs{}; GPU {} works {:.2f} {}, the others {:.2f}",
      model.devices.size(), parts.empty() ? "" : fmt::format(": {} {}", parts, model.Unit()),
      number, model.PerStepMs(imbalance.most), model.Unit(), model.PerStepMs(imbalance.others));
  finding.where = std::move(ranges.where);
  std::vector<Row> longest = ranges.rows;
  const RangeTable& table = model.trace.ranges;
  KeepWorst(longest,
            [&](Row a, Row b) { return table.interval(a).Length() > table.interval(b).Length(); });
  for (const Row row : longest) {
    finding.evidence.push_back(
        {fmt::format("{} took {:.3f} ms", model.trace.Text(table.name[Index(row)]),
                     table.interval(row).Length().ToMilliseconds()),
         table.interval(row), Table::kRanges, row});
  }
  Advise(model, number, finding);
  return std::vector<Diagnosis>{
      {std::move(finding), {Edit::kDropHostWork, std::move(ranges.rows)}}};
}

}  // namespace

extern const Rule data_parallel = {"TP402", "one process that drives several devices", Check};

}  // namespace trainprof::rules
