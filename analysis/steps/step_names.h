// What frameworks call their iterations, beyond IsStepName() (trace/base/names.h).
#pragma once

#include <string_view>

#include "trace/base/names.h"

namespace trainprof {

// How surely a range of that name is one iteration.
enum class StepKind : uint8_t {
  kNone,
  kPart,       // of an iteration, or one of another loop: a forward step, an evaluation step
  kIteration,  // "step 12", "train_step", "step[DECODE bs=16]"
  kProfiler,   // torch.profiler's own: "ProfilerStep#12"
};

struct StepName {
  StepKind kind = StepKind::kNone;
  // The same of all iterations of one loop: no counter, no sizes of a batch. A part of the name.
  std::string_view base;
  bool serves = false;  // of a server of requests: nothing is trained there
};

// O(length).
constexpr StepName StepNameOf(std::string_view name) {
  using names_internal::IsOneOf;
  // sglang: "step[DECODE bs=16]", "step[EXTEND bs=2 toks=4096]". ATOM: "prefill[bs=2 tok=16384]",
  // "decode[bs=16 ...]": both are iterations of one loop.
  if (name.starts_with("step[")) return {StepKind::kIteration, "step[", true};
  if (name.starts_with("prefill[") || name.starts_with("decode[")) {
    return {StepKind::kIteration, "decode[", true};
  }
  // vLLM: "execute_context_1(512)_generation_32(32)", "execute_new_1_cached_63", and with its tokens
  // "execute_544_context_1(sq512sk512)_generation_32(sq32sk55086)".
  if (name.starts_with("execute_")) {
    const std::string_view what = name.substr(8);
    const size_t behind_count = what.find_first_not_of("0123456789");
    if (what.starts_with("context_") || what.starts_with("new_") ||
        (behind_count != what.npos && what.substr(behind_count).starts_with("_context_"))) {
      return {StepKind::kIteration, name.substr(0, 8), true};
    }
  }
  // TensorRT-LLM: "[Executor] _forward_step 12: 1 ctx reqs, 8 gen reqs".
  if (name.starts_with("[Executor] _forward_step")) {
    return {StepKind::kIteration, "[Executor] _forward_step", true};
  }
  if (IsAnnotatedStep(name)) return {StepKind::kIteration, name.substr(0, name.find(":#"))};
  // Lightning: "[pl][profile]run_training_batch".
  while (name.starts_with('[') && name.find(']') != std::string_view::npos) {
    name.remove_prefix(name.find(']') + 1);
  }
  const std::string_view base = names_internal::WithoutCounter(name);
  if (names_internal::StartsWithNoCase(name, "profilerstep")) return {StepKind::kProfiler, base};
  if (IsStepName(name)) return {StepKind::kIteration, base};
  constexpr std::string_view kIterations[] = {
      "run_training_batch", "train_batch", "training_batch", "train_one_step", "train_one_iter",
      "training step",      "run_step",    "step_fn",        "iteration_step"};
  if (IsOneOf(base, kIterations)) return {StepKind::kIteration, base};
  constexpr std::string_view kServing[] = {
      "execute_model",   "_forward_step",  "decode_step", "prefill_step", "generate_step",
      "generation_step", "inference_step", "inference",   "engine_step",  "run_batch"};
  if (IsOneOf(base, kServing)) return {StepKind::kPart, base, true};
  constexpr std::string_view kParts[] = {
      "forward_step",   "eval_step",      "evaluation_step", "validation_step", "val_step",
      "test_step",      "predict_step",   "prediction_step", "denoise",         "denoise_step",
      "denoising_step", "diffusion_step", "sampling_step",   "denoising step",  "micro_step"};
  if (IsOneOf(base, kParts)) return {StepKind::kPart, base};
  return {};
}

}  // namespace trainprof
