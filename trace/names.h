// The vocabulary of training traces: what a name says about a range, a call or a kernel. One place,
// shared by the collectors (which know steps), the importers and the analysis. Header-only and free
// of allocation: the in-process collectors include it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace trainprof {

enum class Phase : uint8_t { kNone, kInputWait, kCopy, kForward, kBackward, kOptimizer };

enum class ApiKind : uint8_t {
  kOther,
  kLaunch,       // cudaLaunchKernel, cuLaunchKernelEx, hipExtModuleLaunchKernel, ...
  kGraphLaunch,  // cudaGraphLaunch
  kCopy,         // cudaMemcpyAsync, hipMemcpyWithStream, ...
  kMemset,
  kSync,      // waits for the device: cudaStreamSynchronize, cudaDeviceSynchronize, ...
  kAllocate,  // cudaMalloc, cudaHostAlloc, ...: device or pinned host memory
  kFree,
  kStreamWait,  // cudaStreamWaitEvent: the device waits, the host does not
  kQuery,       // cudaEventQuery, cudaStreamQuery
};

enum class CopyDirection : uint8_t {
  kUnknown,
  kHostToDevice,
  kDeviceToHost,
  kDeviceToDevice,
  kPeer,
  kHostToHost
};

namespace names_internal {

constexpr char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

constexpr bool StartsWithNoCase(std::string_view text, std::string_view lower_prefix) {
  if (text.size() < lower_prefix.size()) return false;
  for (size_t i = 0; i < lower_prefix.size(); ++i) {
    if (Lower(text[i]) != lower_prefix[i]) return false;
  }
  return true;
}

constexpr bool EqualsNoCase(std::string_view text, std::string_view lower) {
  return text.size() == lower.size() && StartsWithNoCase(text, lower);
}

constexpr bool ContainsNoCase(std::string_view text, std::string_view lower) {
  for (size_t i = 0; i + lower.size() <= text.size(); ++i) {
    if (StartsWithNoCase(text.substr(i), lower)) return true;
  }
  return false;
}

template <size_t N>
constexpr bool IsOneOf(std::string_view text, const std::string_view (&lower)[N]) {
  for (std::string_view candidate : lower) {
    if (EqualsNoCase(text, candidate)) return true;
  }
  return false;
}

constexpr bool StartsWithOneOf(std::string_view text,
                               std::initializer_list<std::string_view> prefixes) {
  for (std::string_view prefix : prefixes) {
    if (text.starts_with(prefix)) return true;
  }
  return false;
}

// "cuCtxSynchronize_v2_ptsz" -> "cuCtxSynchronize".
constexpr std::string_view WithoutVersion(std::string_view name) {
  if (name.ends_with("_ptsz") || name.ends_with("_ptds")) name.remove_suffix(5);
  size_t end = name.size();
  while (end > 0 && name[end - 1] >= '0' && name[end - 1] <= '9') --end;
  if (end < name.size() && name.substr(0, end).ends_with("_v")) name = name.substr(0, end - 2);
  return name;
}

// "step 12", "step#12", "step_12", "step:12" -> "step".
constexpr std::string_view WithoutCounter(std::string_view name) {
  size_t end = name.size();
  while (end > 0 && name[end - 1] >= '0' && name[end - 1] <= '9') --end;
  while (end > 0 && (name[end - 1] == ' ' || name[end - 1] == '#' || name[end - 1] == '_' ||
                     name[end - 1] == ':' || name[end - 1] == '-')) {
    --end;
  }
  return name.substr(0, end);
}

}  // namespace names_internal

// A range that marks one training step: "step", "step 12", "ProfilerStep#12", "train_step",
// "iteration 7". Never "Optimizer.step#SGD.step".
constexpr bool IsStepName(std::string_view name) {
  constexpr std::string_view kStepNames[] = {
      "step",          "profilerstep",  "train_step", "train step", "training_step",
      "training step", "global_step",   "iteration",  "iter",       "train_iteration",
      "train_iter",    "training_iter", "trainstep"};
  return names_internal::IsOneOf(names_internal::WithoutCounter(name), kStepNames);
}

// The phase that torch's own annotations name, whatever kind of range carries them (files of 2021
// list them among the operators).
constexpr Phase PhaseOfTorchName(std::string_view name) {
  using names_internal::ContainsNoCase;
  if (name.starts_with("enumerate(DataLoader)#")) return Phase::kInputWait;
  if (name.starts_with("enumerate(DataPipe)#")) return Phase::kInputWait;
  if (name.starts_with("Optimizer.step#")) return Phase::kOptimizer;
  if (name.starts_with("Optimizer.zero_grad#")) return Phase::kOptimizer;
  if (name.starts_with("autograd::engine::evaluate_function")) return Phase::kBackward;
  return Phase::kNone;
}

// The phase that a user's own range (NVTX, record_function) names.
constexpr Phase PhaseOfUserName(std::string_view name) {
  using names_internal::IsOneOf;
  constexpr std::string_view kInput[] = {
      "data_wait",    "data wait",   "data",        "dataloader", "data_loader", "data_loading",
      "data loading", "dataloading", "load_data",   "load data",  "input_wait",  "input",
      "get_batch",    "next_batch",  "fetch_batch", "batch_wait", "data_load",   "data_fetch",
      "loader",       "dataload",    "load_batch"};
  constexpr std::string_view kCopy[] = {"h2d",
                                        "h2d_copy",
                                        "h2d copy",
                                        "to_device",
                                        "to device",
                                        "copy",
                                        "copy_to_device",
                                        "copy to device",
                                        "host_to_device",
                                        "host to device",
                                        "batch_to_device",
                                        "data_to_device",
                                        "transfer",
                                        "to_gpu",
                                        "data_copy",
                                        "transfer_batch_to_device"};
  constexpr std::string_view kForward[] = {
      "forward", "fwd", "forward_pass", "forward pass", "model_forward", "training_step_forward"};
  constexpr std::string_view kBackward[] = {"backward",      "bwd",           "backward_pass",
                                            "backward pass", "loss_backward", "loss.backward"};
  constexpr std::string_view kOptimizer[] = {
      "optimizer", "optimizer_step", "optimizer step", "optimizer.step", "opt",
      "opt_step",  "optim",          "optim_step",     "zero_grad",      "optimizer_zero_grad",
      "update",    "weight_update"};
  std::string_view base = names_internal::WithoutCounter(name);
  // TorchRec: "## forward ##".
  while (base.starts_with('#') || base.starts_with(' ')) base.remove_prefix(1);
  if (const Phase torch = PhaseOfTorchName(name); torch != Phase::kNone) return torch;
  // Lightning: "[pl][profile][_TrainingEpochLoop].train_dataloader_next".
  if (name.ends_with("dataloader_next")) return Phase::kInputWait;
  if (IsOneOf(base, kInput)) return Phase::kInputWait;
  if (IsOneOf(base, kCopy)) return Phase::kCopy;
  if (IsOneOf(base, kForward)) return Phase::kForward;
  if (IsOneOf(base, kBackward)) return Phase::kBackward;
  if (IsOneOf(base, kOptimizer)) return Phase::kOptimizer;
  return Phase::kNone;
}

// "cudaMemcpyAsync" -> kCopy; driver (cu*) and ROCm (hip*) names alike, with or without the version
// that CUPTI appends ("cudaStreamSynchronize_v3020").
constexpr ApiKind ApiKindOf(std::string_view name) {
  std::string_view rest = names_internal::WithoutVersion(name);
  if (rest.starts_with("cuda")) {
    rest.remove_prefix(4);
  } else if (rest.starts_with("hip")) {
    rest.remove_prefix(3);
  } else if (rest.starts_with("cu") && rest.size() > 2 && rest[2] >= 'A' && rest[2] <= 'Z') {
    rest.remove_prefix(2);
  } else {
    return ApiKind::kOther;
  }
  if (rest.starts_with("GraphLaunch")) return ApiKind::kGraphLaunch;
  if (rest.starts_with("Launch") && !rest.starts_with("LaunchHost")) return ApiKind::kLaunch;
  if (rest.starts_with("ExtLaunch") || rest.starts_with("ModuleLaunch") ||
      rest.starts_with("ExtModuleLaunch") || rest.starts_with("HccModuleLaunch")) {
    return ApiKind::kLaunch;
  }
  if (rest.starts_with("Memcpy")) return ApiKind::kCopy;
  if (rest.starts_with("Memset")) return ApiKind::kMemset;
  if (rest.starts_with("StreamWaitEvent")) return ApiKind::kStreamWait;
  if (rest.starts_with("EventQuery") || rest.starts_with("StreamQuery")) return ApiKind::kQuery;
  if (rest.ends_with("Synchronize")) return ApiKind::kSync;
  if (names_internal::StartsWithOneOf(
          rest, {"Malloc", "MemAlloc", "HostAlloc", "HostRegister", "MemCreate", "MemHostAlloc",
                 "MemHostRegister", "HostMalloc", "ExtMalloc"})) {
    return ApiKind::kAllocate;
  }
  if (names_internal::StartsWithOneOf(rest, {"Free", "MemFree", "HostFree", "HostUnregister",
                                             "MemHostUnregister", "MemRelease"})) {
    return ApiKind::kFree;
  }
  return ApiKind::kOther;
}

// The range that says how long a program waited for its GPU recording to be set up.
inline constexpr std::string_view kCuptiSetup = "CUPTI set-up";

// A kernel that moves data between GPUs: NCCL, RCCL, NVSHMEM and the custom all-reduces.
constexpr bool IsCommunicationKernel(std::string_view name) {
  using names_internal::ContainsNoCase;
  return ContainsNoCase(name, "nccl") || ContainsNoCase(name, "rccl") ||
         ContainsNoCase(name, "nvshmem") || ContainsNoCase(name, "cross_device_reduce");
}

// "Memcpy HtoD (Pageable -> Device)" -> kHostToDevice.
constexpr CopyDirection CopyDirectionOf(std::string_view name) {
  using names_internal::ContainsNoCase;
  if (ContainsNoCase(name, "htod") || ContainsNoCase(name, "hosttodevice")) {
    return CopyDirection::kHostToDevice;
  }
  if (ContainsNoCase(name, "dtoh") || ContainsNoCase(name, "devicetohost")) {
    return CopyDirection::kDeviceToHost;
  }
  if (ContainsNoCase(name, "ptop") || ContainsNoCase(name, "peer")) return CopyDirection::kPeer;
  if (ContainsNoCase(name, "dtod") || ContainsNoCase(name, "devicetodevice")) {
    return CopyDirection::kDeviceToDevice;
  }
  if (ContainsNoCase(name, "htoh")) return CopyDirection::kHostToHost;
  return CopyDirection::kUnknown;
}

// True when the copy's host side is pageable memory. ROCm never says so.
constexpr bool IsPageableCopy(std::string_view name) {
  return names_internal::ContainsNoCase(name, "pageable");
}

}  // namespace trainprof
