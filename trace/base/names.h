// The vocabulary of training traces: what a name says about a range, a call or a kernel. One place,
// shared by the collectors (which know steps), the importers and the analysis. Header-only and free
// of allocation: the in-process collectors include it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace trainprof {

enum class Phase : uint8_t { kNone, kInputWait, kCopy, kForward, kBackward, kOptimizer, kRankWait };

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

constexpr bool StartsKernels(ApiKind kind) {
  return kind == ApiKind::kLaunch || kind == ApiKind::kGraphLaunch;
}

// Of a device.
constexpr bool StartsWork(ApiKind kind) {
  return StartsKernels(kind) || kind == ApiKind::kCopy || kind == ApiKind::kMemset;
}

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
  if (lower.empty()) return true;
  const char first = lower.front();
  const char upper = first >= 'a' && first <= 'z' ? static_cast<char>(first - 32) : first;
  for (size_t i = 0; i + lower.size() <= text.size(); ++i) {
    if (text[i] != first && text[i] != upper) continue;
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

// `lower` in lower case, as above.
constexpr bool ContainsOneOf(std::string_view text, std::initializer_list<std::string_view> lower) {
  for (std::string_view part : lower) {
    if (ContainsNoCase(text, part)) return true;
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

// "cuCtxSynchronize_v2_ptsz", "cuCtxSynchronize_ptsz_v7000" -> "cuCtxSynchronize".
constexpr std::string_view WithoutVersion(std::string_view name) {
  for (int suffixes = 0; suffixes < 2; ++suffixes) {
    if (name.ends_with("_ptsz") || name.ends_with("_ptds")) name.remove_suffix(5);
    size_t end = name.size();
    while (end > 0 && name[end - 1] >= '0' && name[end - 1] <= '9') --end;
    if (end < name.size() && name.substr(0, end).ends_with("_v")) name = name.substr(0, end - 2);
  }
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

// The letters of a name, in lower case: without separators and numbers, but with digits inside a
// word ("h2d"). Empty for what is no plain name, or longer than any that is known.
class Letters {
 public:
  constexpr explicit Letters(std::string_view name) {
    for (size_t i = 0; i < name.size(); ++i) {
      const char c = Lower(name[i]);
      const bool in_word = IsDigit(c) && i > 0 && IsLetter(name[i - 1]) && i + 1 < name.size() &&
                           IsLetter(name[i + 1]);
      if (!IsLetter(c) && !in_word) {
        if (IsDigit(c) || IsSeparator(c)) continue;
        size_ = 0;
        return;
      }
      if (size_ == kMost) {
        size_ = 0;
        return;
      }
      text_[size_++] = c;
    }
  }
  constexpr std::string_view text() const { return {text_, size_}; }

 private:
  static constexpr size_t kMost = 48;
  static constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }
  static constexpr bool IsLetter(char c) { return Lower(c) >= 'a' && Lower(c) <= 'z'; }
  static constexpr bool IsSeparator(char c) {
    return std::string_view(" \t_-.:#/()[]{}<>|,=*~'\"").find(c) != std::string_view::npos;
  }
  char text_[kMost] = {};
  size_t size_ = 0;
};

// What a word says in the name of a range that loads batches.
enum LoadingWord : uint32_t {
  kGet = 1 << 0,
  kNext = 1 << 1,
  kLoad = 1 << 2,
  kFetch = 1 << 3,
  kRead = 1 << 4,
  kWait = 1 << 5,
  kIter = 1 << 6,  // "iter" by itself is a step
  kIterator = 1 << 7,
  kData = 1 << 8,
  kInput = 1 << 9,
  kBatch = 1 << 10,
  kExample = 1 << 11,  // "get samples" may well be generating them
  kDataset = 1 << 12,  // loaded once, at start-up
  kLoader = 1 << 13,
  kMaker = 1 << 14,
  kWhich = 1 << 15,
  kFiller = 1 << 16,
};

struct KnownWord {
  std::string_view text;
  LoadingWord says;
};

// Longer ones before their beginnings.
inline constexpr KnownWord kLoadingWords[] = {
    {"get", kGet},        {"next", kNext},         {"loader", kLoader},     {"loading", kLoad},
    {"load", kLoad},      {"prefetching", kFetch}, {"prefetcher", kLoader}, {"prefetch", kFetch},
    {"fetching", kFetch}, {"fetch", kFetch},       {"reading", kRead},      {"read", kRead},
    {"waiting", kWait},   {"wait", kWait},         {"iterator", kIterator}, {"iter", kIter},
    {"enumerate", kIter}, {"dataset", kDataset},   {"data", kData},         {"inputs", kInput},
    {"input", kInput},    {"batches", kBatch},     {"batch", kBatch},       {"samples", kExample},
    {"sample", kExample}, {"examples", kExample},  {"example", kExample},   {"images", kExample},
    {"image", kExample},  {"generator", kMaker},   {"pipeline", kMaker},    {"trainer", kWhich},
    {"training", kWhich}, {"train", kWhich},       {"validation", kWhich},  {"valid", kWhich},
    {"val", kWhich},      {"evaluation", kWhich},  {"eval", kWhich},        {"test", kWhich},
    {"mini", kFiller},    {"micro", kFiller},      {"self", kFiller},       {"queue", kFiller},
    {"from", kFiller},    {"for", kFiller},        {"the", kFiller},        {"on", kFiller},
    {"time", kFiller}};

// What the words of `text` say, or'ed; 0 where it does not fall into known words. `words` counts
// them. "iterator" stands for an "iter" that is followed by "next", too.
constexpr uint32_t WordsOf(std::string_view text, int& words) {
  if (text.empty()) return 0;
  for (const KnownWord& word : kLoadingWords) {
    if (!text.starts_with(word.text)) continue;
    const std::string_view rest = text.substr(word.text.size());
    int more = 0;
    const uint32_t after = WordsOf(rest, more);
    if (!rest.empty() && after == 0) continue;
    words = more + 1;
    const bool is_iterator = word.says == kIter && (after & kNext) != 0;
    return after | (is_iterator ? kIterator : word.says);
  }
  return 0;
}

// Whether `text`, of lower-case letters, names a wait for input: a verb of loading and what is
// loaded, the loader, or a few words by themselves. One word more ("load_state_dict", "load
// checkpoint", "prefetch_to_device", "download"), and it names something else.
constexpr bool NamesLoading(std::string_view text) {
  int words = 0;
  const uint32_t says = WordsOf(text, words);
  if (says == 0) return false;
  const auto any = [&](uint32_t of) { return (says & of) != 0; };
  if (words == 1) return any(kLoad | kFetch | kData | kLoader) || text == "input";
  const uint32_t kThings = kData | kInput | kBatch | kExample;
  // "get_train_dataloader" makes one.
  if (any(kLoader)) return !any(kGet | kLoad) || any(kBatch | kExample | kNext);
  if (any(kWait | kLoad | kFetch | kRead)) return any(kThings);
  if (any(kNext)) return any(kThings | kDataset | kIterator);
  if (any(kGet)) return any(kData | kInput | kBatch);
  if (any(kIterator)) return any(kThings | kDataset);
  if (any(kIter)) return any(kData | kInput | kDataset);
  if (any(kMaker)) return any(kData | kInput | kBatch);  // Megatron: "batch-generator"
  // "input data", "batch_input" (DeepSpeed), "data time" (timm, mmengine): not "train data".
  return any(kData | kInput) && !any(kWhich | kExample) && (!any(kData) || !any(kBatch));
}

}  // namespace names_internal

// JAX's StepTraceAnnotation, as XLA tells NVTX of it: "train:#step_num=12,_r=1#".
constexpr bool IsAnnotatedStep(std::string_view name) {
  const size_t fields = name.find(":#");
  return fields != name.npos && name.find("step_num=", fields) != name.npos;
}

// A compiled program of XLA's runs: "XlaModule:#hlo_module=jit_update,program_id=6634#". Those that it tries out while it
// compiles have no id.
constexpr bool IsXlaProgram(std::string_view name) {
  return name.starts_with("XlaModule:#hlo_module=") && name.find(",program_id=") != name.npos;
}

// A range that marks one training step: "step", "step 12", "ProfilerStep#12", "train_step",
// "iteration 7", JAX's annotation. Never "Optimizer.step#SGD.step".
constexpr bool IsStepName(std::string_view name) {
  if (IsAnnotatedStep(name)) return true;
  constexpr std::string_view kStepNames[] = {
      "step",          "profilerstep",  "train_step", "train step", "training_step",
      "training step", "global_step",   "iteration",  "iter",       "train_iteration",
      "train_iter",    "training_iter", "trainstep"};
  return names_internal::IsOneOf(names_internal::WithoutCounter(name), kStepNames);
}

// Python's hooks: the training thread waited in queue.Queue.get() for its batch.
inline constexpr std::string_view kQueueGet = "Queue.get";

// The same hooks, in a loop that no loader feeds: from the end of a step to the first call of a module,
// which is where such a loop gets its batch.
inline constexpr std::string_view kOwnBatch = "next batch (own code)";

// The same hooks, in a loader's worker: it made a batch.
inline constexpr std::string_view kFetches[] = {"_MapDatasetFetcher.fetch",
                                                "_IterableDatasetFetcher.fetch"};

// Python's hooks: a thread was inside a collective of torch.distributed ("c10d::all_reduce"), where it
// waits for other ranks. torch's own operators of that library only start it, and end in '_'.
constexpr bool IsRankWait(std::string_view name) {
  return name.starts_with("c10d::") && !name.ends_with('_');
}

// A node of autograd's graph, which is all that files of 2021 have of a backward pass: "AddmmBackward",
// "ReluBackward1", "torch::autograd::AccumulateGrad".
constexpr bool IsAutogradNode(std::string_view name) {
  if (name.starts_with("torch::autograd::")) return true;
  while (!name.empty() && name.back() >= '0' && name.back() <= '9') name.remove_suffix(1);
  return !name.empty() && name.front() >= 'A' && name.front() <= 'Z' &&
         name.ends_with("Backward") && name.find_first_of(" :.") == std::string_view::npos;
}

// The phase that torch's own annotations name, whatever kind of range carries them (files of 2021
// list them among the operators).
constexpr Phase PhaseOfTorchName(std::string_view name) {
  using names_internal::ContainsNoCase;
  if (name.starts_with("enumerate(DataLoader)#")) return Phase::kInputWait;
  if (name.starts_with("enumerate(DataPipe)#")) return Phase::kInputWait;
  if (name.starts_with("Optimizer.step#")) return Phase::kOptimizer;
  if (name.starts_with("Optimizer.zero_grad#")) return Phase::kOptimizer;
  if (name.starts_with("GradScaler.")) return Phase::kOptimizer;
  if (name == kQueueGet || name == kOwnBatch) return Phase::kInputWait;
  if (name.starts_with("autograd::engine::evaluate_function") || IsAutogradNode(name)) {
    return Phase::kBackward;
  }
  if (IsRankWait(name)) return Phase::kRankWait;
  return Phase::kNone;
}

// The phase that a user's own range (NVTX, record_function) names. Case, separators and numbers are
// not looked at: "data_wait", "Data Wait 12", "dataWait" and "data-wait #3" are one name.
constexpr Phase PhaseOfUserName(std::string_view name) {
  using names_internal::IsOneOf;
  constexpr std::string_view kCopy[] = {"h2d",           "h2dcopy",      "todevice",
                                        "copy",          "copytodevice", "hosttodevice",
                                        "batchtodevice", "datatodevice", "transfer",
                                        "togpu",         "datacopy",     "transferbatchtodevice"};
  constexpr std::string_view kForward[] = {"forward", "fwd", "forwardpass", "modelforward",
                                           "trainingstepforward"};
  constexpr std::string_view kBackward[] = {"backward", "bwd", "backwardpass", "lossbackward"};
  constexpr std::string_view kOptimizer[] = {
      "optimizer", "optimizerstep",     "opt",    "optstep",     "optim", "optimstep",
      "zerograd",  "optimizerzerograd", "update", "weightupdate"};
  if (const Phase torch = PhaseOfTorchName(name); torch != Phase::kNone) return torch;
  // Lightning: "[pl][profile][_TrainingEpochLoop].train_dataloader_next".
  if (name.ends_with("dataloader_next")) return Phase::kInputWait;
  const names_internal::Letters letters(name);
  const std::string_view text = letters.text();
  if (text.empty()) return Phase::kNone;
  if (names_internal::NamesLoading(text)) return Phase::kInputWait;
  if (IsOneOf(text, kCopy)) return Phase::kCopy;
  if (IsOneOf(text, kForward)) return Phase::kForward;
  if (IsOneOf(text, kBackward)) return Phase::kBackward;
  if (IsOneOf(text, kOptimizer)) return Phase::kOptimizer;
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

// What a call of the host returns behind, beside its own work.
enum class HostWait : uint8_t {
  kNone,
  kItsCopy,  // cudaMemcpy: for the copy itself, and so for all before it on its stream
  kEvent,
  kStream,
  kContext,  // all streams: cudaDeviceSynchronize, and cudaFree, which may not say so in its name
};

// "cudaStreamSynchronize" -> kStream. By CUDA's manuals; a blocking copy to the device from pageable
// memory of at most 64 KiB returns earlier, and whether memory that is given back had to be waited
// for is the driver's business.
constexpr HostWait HostWaitOf(std::string_view name) {
  using names_internal::StartsWithOneOf;
  std::string_view rest = names_internal::WithoutVersion(name);
  const ApiKind kind = ApiKindOf(name);
  if (kind == ApiKind::kSync) {
    const auto says = [&](std::string_view word) { return rest.find(word) != rest.npos; };
    if (says("EventSync")) return HostWait::kEvent;
    return says("StreamSync") ? HostWait::kStream : HostWait::kContext;
  }
  const bool is_ordered = rest.ends_with("Async");  // by a stream
  if (kind == ApiKind::kCopy) return is_ordered ? HostWait::kNone : HostWait::kItsCopy;
  if (kind != ApiKind::kFree || is_ordered) return HostWait::kNone;
  return StartsWithOneOf(rest, {"cudaHostUnregister", "cuMemHostUnregister", "hipHostUnregister",
                                "cuMemRelease"})
             ? HostWait::kNone
             : HostWait::kContext;
}

// The stream calls a function of the host when its turn has come.
constexpr bool LaunchesHostFunction(std::string_view call) {
  return call.find("LaunchHostFunc") != call.npos || call.find("StreamAddCallback") != call.npos;
}

// Where a stream's work begins, or ends, to go into a CUDA graph instead of a device.
enum class CaptureEdge : uint8_t { kNone, kBegin, kEnd };
constexpr CaptureEdge CaptureEdgeOf(std::string_view call) {
  if (call.find("StreamBeginCapture") != call.npos) return CaptureEdge::kBegin;
  return call.find("StreamEndCapture") != call.npos ? CaptureEdge::kEnd : CaptureEdge::kNone;
}

// "prof.step()", "Profiler::Step": the profiler's own business, and not the line that matters.
constexpr bool IsProfilerStep(std::string_view function) {
  const names_internal::Letters letters(function);
  constexpr std::string_view kNames[] = {"profstep", "profilerstep", "torchprofilerprofilestep",
                                         "kinetoprofilestep"};
  return names_internal::IsOneOf(letters.text(), kNames);
}

// Where a process that Python's multiprocessing made begins: with a fork, the frames around it are
// those of its parent.
constexpr bool IsForkedStart(std::string_view function, std::string_view file) {
  return function.ends_with("_bootstrap") && file.ends_with("multiprocessing/process.py");
}

// The file of a function without Python code: its name is the call as its caller's source spells it.
inline constexpr std::string_view kBuiltInFile = "<built-in>";

// What recorded frames call such a function, without what changes from run to run: "randn" of
// "<built-in method randn of type object at 0x7f41a8c6f8a0>" (torch.profiler). Other names as they are.
constexpr std::string_view WithoutAddress(std::string_view function) {
  for (const std::string_view kind : {"<built-in method ", "<built-in function "}) {
    if (!function.starts_with(kind)) continue;
    const std::string_view name = function.substr(kind.size());
    const size_t end = name.find_first_of(" >");
    return end == 0 ? function : name.substr(0, end);
  }
  return function;
}

// A wait for a batch that who waits makes itself: torch's loader without workers.
constexpr bool MakesBatchItself(std::string_view wait) {
  return wait.find("_SingleProcessDataLoaderIter") != wait.npos;
}

// Saving, loading, logging. torch/utils/checkpoint.py, which computes activations again, is no I/O:
// a checkpoint must be saved or loaded to count.
constexpr bool IsIoName(std::string_view name) {
  using names_internal::ContainsNoCase;
  if (ContainsNoCase(name, "torch/serialization.py") || name == "torch.save" ||
      ContainsNoCase(name, "json/__init__.py") ||
      names_internal::StartsWithOneOf(name, {"SummaryWriter.", "wandb.log", "mlflow.log_"}) ||
      (name.starts_with("logging.") && name.ends_with(".emit"))) {
    return true;
  }
  return ContainsNoCase(name, "checkpoint") &&
         (ContainsNoCase(name, "save") || ContainsNoCase(name, "load") ||
          ContainsNoCase(name, "write"));
}

constexpr bool IsGarbageCollection(std::string_view name) {
  return names_internal::ContainsNoCase(name, "built-in method collect") || name == "gc" ||
         name == "gc.collect" || name.starts_with("gc.collect (generation ");
}

// CUPTI's word for a call that waited until the device's queue had room.
inline constexpr std::string_view kQueueFull = "Command Buffer Full";

// The range that says how long a program waited for its GPU recording to be set up.
inline constexpr std::string_view kCuptiSetup = "CUPTI set-up";

// The counter of what a process and its devices hold at the end of each step (trainprof run --memory).
inline constexpr std::string_view kMemoryCounter = "Step memory MiB";

// The range of the steps during which `trainprof run --memory` looked for what keeps memory.
inline constexpr std::string_view kMemorySearch = "trainprof --memory";

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

}  // namespace trainprof
