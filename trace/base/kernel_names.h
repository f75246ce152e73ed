// What the names of kernels say. Header-only and free of allocation.
#pragma once

#include <string_view>

#include "trace/base/names.h"

namespace trainprof {

// What a kernel is called, without its return type, and template's and own arguments: of
// "void vllm::cross_device_reduce_1stage<__half, 2>(...)" "vllm::cross_device_reduce_1stage".
constexpr std::string_view QualifiedNameOf(std::string_view kernel) {
  if (kernel.starts_with("void ")) kernel.remove_prefix(5);
  constexpr std::string_view kUnnamed = "(anonymous namespace)";
  size_t end = kernel.find_first_of("<(");
  while (end != kernel.npos && kernel.substr(end).starts_with(kUnnamed)) {
    end = kernel.find_first_of("<(", end + kUnnamed.size());
  }
  return kernel.substr(0, end);
}

// The same without namespaces: "cross_device_reduce_1stage".
constexpr std::string_view FunctionOf(std::string_view kernel) {
  const std::string_view name = QualifiedNameOf(kernel);
  const size_t scope = name.rfind("::");
  return scope == name.npos ? name : name.substr(scope + 2);
}

// Sends tokens to their experts, or back: DeepEP, whatever namespace it was put into, MoRI, pplx, TensorRT-LLM.
constexpr bool ExchangesTokens(std::string_view kernel) {
  return names_internal::ContainsOneOf(
      QualifiedNameOf(kernel), {"deep_ep::", "internode", "intranode", "inter_node", "intra_node",
                                "moea2a", "a2a_dispatch", "a2a_combine"});
}

// A kernel that moves data between GPUs, or waits for another one's: NCCL, RCCL, NVSHMEM, MSCCL++,
// Transformer Engine's user buffers, torch's symmetric memory (multimem_*, one_shot_*, two_shot_*),
// the custom all-reduces of vLLM, SGLang, TensorRT-LLM, FlashInfer and AMD's quick reduce, and
// exchanges of tokens. Others are known by their streams and records (trace/build/communication_join.h).
// What says "all_reduce" within its template's arguments alone is none, nor is a matrix product that ends with it.
constexpr bool IsCommunicationKernel(std::string_view name) {
  using names_internal::ContainsOneOf;
  if (ContainsOneOf(name,
                    {"nccl", "rccl", "nvshmem", "mscclpp", "quickreduce", "cross_device_reduce",
                     "symm_mem::", "symmetric_memory", "userbuffers", "barrier_all_on_stream"}) ||
      ExchangesTokens(name)) {
    return true;
  }
  const std::string_view function = FunctionOf(name);
  return !ContainsOneOf(function, {"gemm", "matmul", "split_k", "splitk", "epilogue"}) &&
         ContainsOneOf(function,
                       {"allreduce", "all_reduce", "allgather", "all_gather", "reducescatter",
                        "reduce_scatter", "alltoall", "all_to_all", "multimem_", "quick_reduce"});
}

// A matrix product or a convolution of float32 that runs on CUDA cores: of cuBLAS, cuDNN and CUTLASS
// ("ampere_sgemm_128x64_tn", "cutlass_80_simt_sgemm_256x128", "sm80_xmma_gemm_f32f32_f32f32_f32_tn", "volta_scudnn_...").
// Those of TF32 ("f32f32_tf32f32", "s1688gemm"), and of halves that are added up in float32, are none.
constexpr bool IsFullPrecisionProduct(std::string_view name) {
  using names_internal::ContainsOneOf;
  return ContainsOneOf(name, {"sgemm", "scudnn", "f32f32_f32f32"}) &&
         !ContainsOneOf(name, {"tf32", "tensorop", "half", "bfloat16", "f16", "fp16"});
}

}  // namespace trainprof
