#include "analysis/steps/workload.h"

#include "analysis/steps/step_names.h"
#include "trace/base/cancel.h"

namespace trainprof {
namespace {

using names_internal::ContainsNoCase;
using names_internal::ContainsOneOf;

// Without steps fewer are no pass through a model.
constexpr size_t kModelsKernels = 64;

bool IsOperator(RangeKind kind) {
  return kind == RangeKind::kCpuOp || kind == RangeKind::kUserAnnotation;
}

// Of a range of an operator or of the user.
bool Trains(RangeKind kind, NameFacts facts, std::string_view name) {
  const Phase phase = kind == RangeKind::kUserAnnotation ? facts.user_phase : facts.torch_phase;
  return phase == Phase::kBackward || phase == Phase::kOptimizer ||
         ContainsNoCase(name, "backward");
}

bool KernelTrains(std::string_view name) {
  return ContainsOneOf(name, {"backward", "_bwd", "bwd_", "dgrad", "wgrad", "adamw", "fusedadam"});
}

// Nearly always an optimizer's, on the tensors of all layers; a server copies so to several as well.
bool IsOfManyTensors(std::string_view name) { return ContainsNoCase(name, "multi_tensor_apply"); }

// What only a server of models calls its own.
bool Serves(std::string_view name) {
  return StepNameOf(name).serves ||
         ContainsOneOf(name, {"vllm", "sglang", "sgl_kernel", "trtllm", "tensorrt", "enqueuev3"});
}

}  // namespace

std::string_view Name(Workload workload) {
  switch (workload) {
    case Workload::kUnknown:
      return "unknown";
    case Workload::kTraining:
      return "training";
    case Workload::kInference:
      return "inference";
  }
  return "unknown";
}

Workload WorkloadOf(const Trace& trace, const Steps& steps) {
  std::vector<bool> seen(trace.strings.size(), false);
  std::vector<bool> seen_functions(seen);
  const auto is_new = [](StringId name, std::vector<bool>& seen_before) {
    const bool was_seen = seen_before[Index(name)];
    seen_before[Index(name)] = true;
    return !was_seen;
  };
  bool has_operators = false;
  bool serves = false;
  bool of_many_tensors = false;
  size_t kernels = 0;
  for (uint32_t row = 0; row < trace.ranges.size(); ++row) {
    CancelPoint(row);
    const RangeKind kind = trace.ranges.kind[row];
    const StringId id = trace.ranges.name[row];
    const bool is_function = kind == RangeKind::kPythonFunction;
    if (!is_function && !IsOperator(kind)) continue;
    if (!is_new(id, is_function ? seen_functions : seen)) continue;
    const std::string_view name = trace.Text(id);
    serves |= Serves(name);
    if (is_function) continue;
    if (Trains(kind, trace.Facts(id), name)) return Workload::kTraining;
    has_operators |= kind == RangeKind::kCpuOp && name.starts_with("aten::");
  }
  for (uint32_t row = 0; row < trace.device_ops.size(); ++row) {
    CancelPoint(row);
    if (trace.device_ops.kind[row] == DeviceOpKind::kKernel) ++kernels;
    if (!is_new(trace.device_ops.name[row], seen)) continue;
    const std::string_view name = trace.Text(trace.device_ops.name[row]);
    if (KernelTrains(name)) return Workload::kTraining;
    of_many_tensors |= IsOfManyTensors(name);
    serves |= Serves(name);
  }
  const bool would_show = has_operators && (steps.count() > 0 || kernels >= kModelsKernels) &&
                          trace.device_ops.size() > 0;
  if (of_many_tensors && !serves) return Workload::kTraining;
  return serves || would_show ? Workload::kInference : Workload::kUnknown;
}

Server ServerOf(const Trace& trace) {
  Server server = Server::kNone;
  for (uint32_t id = 0; id < trace.strings.size(); ++id) {
    CancelPoint(id);
    // Of its own modules, operators and kernels: an environment may be called so as well.
    const std::string_view text = trace.Text(StringId{id});
    if (ContainsOneOf(text, {"sglang/srt/", "sgl_kernel::"})) return Server::kSglang;
    if (ContainsOneOf(text, {"vllm::", "vllm/v1/", "vllm/model_executor/", "vllm/worker/",
                             "vllm/engine/", "vllm/distributed/"})) {
      server = Server::kVllm;  // SGLang uses some of its kernels
    }
  }
  return server;
}

}  // namespace trainprof
