// matrix products and convolutions of float32 on CUDA cores, where the device has tensor cores
//   =>  autocast, or TF32
//
// By the kernels' names. Those that use TF32 already are on tensor cores: a ResNet's convolutions, as torch allows
// them by itself; what bfloat16 would save there is no more than bytes, and is not claimed.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/host/program.h"
#include "analysis/rule.h"
#include "analysis/words.h"
#include "trace/base/cancel.h"
#include "trace/base/kernel_names.h"
#include "trace/tables/communication.h"

namespace trainprof::rules {
namespace {

// Of the time of the device's kernels: a product or two may be kept in float32 for good reasons, a loss's or a
// router's.
constexpr double kLeastShareOfKernels = 0.10;
constexpr int32_t kVolta = 7;    // tensor cores for float16
constexpr int32_t kAmpere = 8;   // for bfloat16 and TF32 as well
constexpr double kByName = 0.9;  // confidence

struct Found {
  std::vector<Row> ops;
  IntervalSet times;
  Duration of_kernels;  // of all, communication left out
};

Found FindOn(const RankModel& model, DeviceId device) {
  const Trace& trace = model.trace;
  const DeviceOpTable& ops = trace.device_ops;
  std::vector<char> is_found(trace.strings.size(), 0);  // by name: 1 no, 2 yes
  Found found;
  std::vector<Interval> times;
  IntervalReader window(model.device_steps.device_window);
  VisitOpsOf(trace, device, [&](uint32_t op) {
    if (ops.kind[op] != DeviceOpKind::kKernel) return;
    const Interval interval = ops.interval(Row{op});
    if (window.TotalWithin(interval).ns == 0) return;
    if (!Communicates(trace, Row{op})) found.of_kernels += interval.Length();
    char& known = is_found[Index(ops.name[op])];
    if (known == 0) known = IsFullPrecisionProduct(trace.Text(ops.name[op])) ? 2 : 1;
    if (known != 2) return;
    found.ops.push_back(Row{op});
    times.push_back(interval);
  });
  found.times = IntervalSet::Union(std::move(times));
  return found;
}

void Describe(const RankModel& model, const Found& found, Finding& finding) {
  const DeviceOpTable& ops = model.trace.device_ops;
  finding.where = model.sites.FindLaunches(found.ops);
  std::vector<Row> worst = found.ops;
  KeepWorst(worst,
            [&](Row a, Row b) { return ops.interval(a).Length() > ops.interval(b).Length(); });
  for (const Row op : worst) {
    const Interval when = ops.interval(op);
    finding.evidence.push_back(
        {fmt::format("{} took {:.3f} ms", model.trace.Text(ops.name[Index(op)]),
                     when.Length().ToMilliseconds()),
         when, Table::kDeviceOps, op});
  }
}

void AdviseInference(bool is_cpp, bool has_bfloat16, Finding& finding) {
  const std::string_view type = has_bfloat16 ? "bfloat16" : "float16";
  finding.advice = fmt::format(
      "Run the model in {}: its weights, or under autocast the products alone.{} Compare what it puts out.",
      type,
      has_bfloat16
          ? " Where that is not exact enough, allow TF32, with float32's range and ten bits of its mantissa: "
            "torch uses it for convolutions by itself, for matrix products where it is asked to."
          : "");
  finding.fix = is_cpp
                    ? fmt::format("model->to(torch::{});", has_bfloat16 ? "kBFloat16" : "kHalf")
                    : fmt::format(
                          "with torch.inference_mode(), torch.autocast(\"cuda\", dtype=torch.{}):\n"
                          "    output = model(batch)",
                          type);
  if (!has_bfloat16) return;
  finding.fix += is_cpp ? "\n// or: at::globalContext().setAllowTF32CuBLAS(true);"
                        : "\n# or, once at the start: torch.set_float32_matmul_precision(\"high\")";
}

void Advise(const RankModel& model, bool has_bfloat16, Finding& finding) {
  const bool is_cpp = LanguageOf(model.trace) == Language::kCpp;
  if (model.workload == Workload::kInference) return AdviseInference(is_cpp, has_bfloat16, finding);
  if (!has_bfloat16) {
    finding.advice =
        "Run the forward pass in mixed precision: float16 on this GPU, with a GradScaler, which keeps small gradients "
        "from vanishing. Weights and optimizer stay in float32.";
    finding.fix =
        is_cpp ? ""
               : "scaler = torch.amp.GradScaler(\"cuda\")\n"
                 "with torch.autocast(\"cuda\", dtype=torch.float16):   # forward pass and loss\n"
                 "    loss = criterion(model(batch), target)\n"
                 "scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update()";
    return;
  }
  finding.advice =
      "Run the forward pass in mixed precision: bfloat16, which needs no scaler; weights and optimizer stay in float32. "
      "Where that is not exact enough, allow TF32, with float32's range and ten bits of its mantissa: torch uses it "
      "for convolutions by itself, for matrix products where it is asked to. Compare the losses of some hundred steps.";
  finding.fix =
      is_cpp
          ? "at::autocast::set_autocast_dtype(at::kCUDA, at::kBFloat16);\n"
            "at::autocast::set_autocast_enabled(at::kCUDA, true);    // around the forward pass and the loss\n"
            "// or: at::globalContext().setAllowTF32CuBLAS(true);"
          : "with torch.autocast(\"cuda\", dtype=torch.bfloat16):   # forward pass and loss\n"
            "    loss = criterion(model(batch), target)\n"
            "# or, once at the start: torch.set_float32_matmul_precision(\"high\")";
}

RuleOutcome Check(const RankModel& model) {
  if (model.devices.empty()) return NoDevices(model);
  const DeviceAccount& account = *DeviceWithMost(model, {DeviceClass::kCompute});
  const Device& device = model.trace.devices[Index(account.device)];
  Found found = FindOn(model, account.device);
  Duration total;
  for (const Row op : found.ops) total += model.trace.device_ops.interval(op).Length();
  if (found.ops.empty() ||
      total.ToMilliseconds() < kLeastShareOfKernels * found.of_kernels.ToMilliseconds()) {
    return std::vector<Diagnosis>{};
  }
  if (device.compute_major == 0) return Skipped{"the trace does not say what GPU it is of"};
  if (device.compute_major < kVolta) return std::vector<Diagnosis>{};
  Finding finding;
  finding.cost = found.times.TotalWithin(model.device_steps.device_window);
  // A choice, be it a bad one.
  finding.severity =
      std::min(SeverityOfLoss(model.ShareOfWindow(finding.cost)), Severity::kWarning);
  finding.count = static_cast<int64_t>(found.ops.size());
  finding.title = fmt::format(
      "Full precision: matrix products and convolutions of float32 take {:.2f} {} on CUDA cores, {:.0f} % of the "
      "GPU's kernels; its tensor cores stand idle meanwhile",
      model.PerStepMs(finding.cost), model.Unit(),
      100 * total.ToMilliseconds() / found.of_kernels.ToMilliseconds());
  Describe(model, found, finding);
  Advise(model, device.compute_major >= kAmpere, finding);
  finding.confidence = kByName;
  finding.confidence_reasons.push_back("that they are of float32 is told by their names alone");
  finding.verify =
      "Record again: other kernels in their place (bf16, tf32, nvjet), in a fraction of the time.";
  std::vector<Diagnosis> findings;
  findings.push_back({std::move(finding), {Edit::kUseTensorCores, std::move(found.ops)}});
  return findings;
}

}  // namespace

extern const Rule full_precision = {"TP504", "matrix products in float32 beside idle tensor cores",
                                    Check};

}  // namespace trainprof::rules
