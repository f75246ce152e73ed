// a tensor made on the host, then copied to the device by a small pageable copy  =>  make it there
//
// Where the trace has operators, a copy counts when the one before it in the same scope made a
// tensor. Where it has none (native stacks, plain CUDA), a small pageable copy counts unless the
// user's own range calls it input or a copy of the batch; that is less sure, and said.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/host/call_sites.h"
#include "analysis/host/copy_calls.h"
#include "analysis/host/program.h"
#include "analysis/rule.h"
#include "analysis/words.h"
#include "trace/base/cancel.h"

namespace trainprof::rules {
namespace {

// Without operators a small batch looks the same.
constexpr double kUnseenMaker = 0.7;

bool MakesTensor(std::string_view op) {
  constexpr std::string_view kMakers[] = {
      "aten::zeros",    "aten::ones",       "aten::full",    "aten::empty",         "aten::arange",
      "aten::linspace", "aten::eye",        "aten::rand",    "aten::randn",         "aten::randint",
      "aten::randperm", "aten::lift_fresh", "aten::detach_", "aten::scalar_tensor", "aten::tensor",
      "aten::fill_",    "aten::zero_",      "aten::normal_", "aten::uniform_"};
  return std::find(std::begin(kMakers), std::end(kMakers), op) != std::end(kMakers);
}

// The operator before `row` that has the same parent, or kNoRow.
Row OpBefore(const RangeTable& ranges, Row row) {
  const auto [first, last] = ranges.rows_of(ranges.track[Index(row)]);
  (void)last;
  for (size_t i = Index(row); i-- > first;) {
    if (ranges.parent[i] == ranges.parent[Index(row)]) {
      return ranges.kind[i] == RangeKind::kCpuOp ? Row{static_cast<uint32_t>(i)} : kNoRow;
    }
    if (Row{static_cast<uint32_t>(i)} == ranges.parent[Index(row)]) return kNoRow;
  }
  return kNoRow;
}

struct Copies {
  std::vector<Row> rows;
  std::vector<Row> sync_calls;  // behind them
  Duration host;                // the calls, and what made the tensors
  bool maker_seen = false;
};

// Adds the copy if it is one of a tensor that was made for it.
void Consider(const RankModel& model, const CopyCall& copy, Copies& copies) {
  const Trace& trace = model.trace;
  const RangeTable& ranges = trace.ranges;
  Row outermost = kNoRow;  // operator
  for (Row row = InnermostRange(ranges, trace.api.track[Index(copy.call)], copy.wait.begin);
       row != kNoRow; row = ranges.parent[Index(row)]) {
    const Phase phase = PhaseOf(trace, row);
    if (phase == Phase::kInputWait || phase == Phase::kCopy) return;
    if (ranges.kind[Index(row)] == RangeKind::kCpuOp) outermost = row;
  }
  TraceTime begin = copy.wait.begin;
  TraceTime end = copy.wait.end;
  if (outermost != kNoRow) {
    const Row maker = OpBefore(ranges, outermost);
    if (maker == kNoRow || !MakesTensor(trace.Text(ranges.name[Index(maker)]))) return;
    begin = ranges.begin[Index(maker)];
    end = std::max(end, ranges.end(Index(outermost)));
    copies.maker_seen = true;
  }
  copies.rows.push_back(copy.op);
  if (copy.sync != kNoRow) copies.sync_calls.push_back(copy.sync);
  copies.host += end - begin;
}

Copies Collect(const RankModel& model) {
  Copies copies;
  const DeviceOpTable& ops = model.trace.device_ops;
  for (const CopyCall& copy : model.copies) {
    const size_t op = Index(copy.op);
    if (ops.direction[op] != CopyDirection::kHostToDevice) continue;
    const bool pageable = ops.Uses(op, MemoryKind::kPageable);
    if (pageable && ops.bytes[op] <= kPageableAsyncBytes) Consider(model, copy, copies);
  }
  return copies;
}

// Idle time that a faster host would shorten, on the device where that is most.
Duration HostBound(const RankModel& model) {
  Duration most;
  for (const DeviceAccount& device : model.devices) {
    most = std::max(
        most, device.Of(DeviceClass::kIdleLaunchBound) + device.Of(DeviceClass::kIdleSyncDrain));
  }
  return most;
}

void Describe(const RankModel& model, const Copies& copies, Finding& finding) {
  const DeviceOpTable& ops = model.trace.device_ops;
  finding.where = model.sites.FindLaunches(copies.rows);
  for (size_t i = 0; i < std::min(copies.rows.size(), kMostEvidence); ++i) {
    const size_t op = Index(copies.rows[i]);
    const Row call = ops.launch[op];
    finding.evidence.push_back(
        {fmt::format("{} of {}: {} took {:.1f} us", model.trace.Text(ops.name[op]),
                     Counted(ops.bytes[op], "byte", "bytes"),
                     model.trace.Text(model.trace.api.name[Index(call)]),
                     1000 * model.trace.api.interval(call).Length().ToMilliseconds()),
         model.trace.api.interval(call), Table::kApi, call});
  }
}

RuleOutcome Check(const RankModel& model) {
  if (model.devices.empty()) return NoDevices(model);
  if (!TellsHostMemory(model.trace)) {
    return Skipped{"the trace does not say whether host memory was pageable (ROCm does not)"};
  }
  const Copies copies = Collect(model);
  const Duration bound = HostBound(model);
  const auto count = static_cast<int64_t>(copies.rows.size());
  if (count == 0 || bound.ns == 0) return std::vector<Diagnosis>{};
  Finding finding;
  const Duration cost = std::min(copies.host, bound);
  finding.severity = std::min(Severity::kWarning, SeverityOfLoss(model.ShareOfWindow(cost)));
  const bool one_a_step = count == model.device_steps.divisor();
  finding.title = fmt::format(
      "Tensors made on the CPU: {} small host-to-device {}{} from pageable memory {} the host "
      "{:.2f} {}",
      count % model.device_steps.divisor() == 0
          ? std::to_string(count / model.device_steps.divisor())
          : fmt::format("{:.1f}", static_cast<double>(count) /
                                      static_cast<double>(model.device_steps.divisor())),
      one_a_step ? "copy" : "copies", model.device_steps.count() > 0 ? " a step" : "",
      one_a_step ? "takes" : "take", model.PerStepMs(copies.host), model.Unit());
  finding.count = count;
  finding.cost = cost;
  if (!copies.maker_seen) {
    finding.confidence = kUnseenMaker;
    finding.confidence_reasons.push_back(
        "the trace does not show what made the tensors: a small batch looks the same");
  }
  Describe(model, copies, finding);
  const Language language = LanguageOf(model.trace);
  finding.advice = fmt::format(
      "Make the tensor where it is used: {}. Constants: make them once before the loop. {}: send "
      "one tensor a step, not one a value. Random numbers drawn on the GPU differ from those of "
      "the CPU for the same seed.",
      InItsLanguage(language,
                    "torch.zeros(n, device=device), torch.full, torch.arange and torch.randn take "
                    "a device",
                    "torch::zeros, torch::full, torch::arange and torch::randn take "
                    "torch::TensorOptions().device(device)"),
      language == Language::kCpp ? "Vectors and numbers" : "Python lists and numbers");
  finding.fix =
      language == Language::kCpp
          ? "auto noise = torch::randn(shape, torch::TensorOptions().device(device));   // not "
            "torch::randn(shape).to(device)"
          : "noise = torch.randn(shape, device=device)   # not torch.randn(shape).to(device)";
  finding.verify = "Record again: the small \"Pageable -> Device\" copies are gone.";
  return std::vector<Diagnosis>{
      {std::move(finding), {Edit::kDropWork, copies.rows, kNoDevice, false, copies.sync_calls}}};
}

}  // namespace

extern const Rule cpu_tensor = {"TP103", "tensors made on the CPU, then copied", Check};

}  // namespace trainprof::rules
