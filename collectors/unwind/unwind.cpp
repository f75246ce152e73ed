#include "collectors/unwind/unwind.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <unwind.h>

#include <atomic>

#include "collectors/core/old_glibc.h"
#include "collectors/unwind/stack_scan.h"

namespace trainprof::collectors {
namespace {

// struct dl_find_object of glibc 2.35, whose headers may be older here.
struct FoundObject {
  unsigned long long flags;
  void* map_start;
  void* map_end;
  link_map* map;
  void* eh_frame;
  unsigned long long reserved[7];
};
using FindFunction = int (*)(void*, FoundObject*);

constinit std::atomic<FindFunction> g_find{nullptr};

// Before glibc 2.35: the same answer from a walk over all loaded objects.
struct Search {
  uint64_t address;
  FoundObject* result;
  bool found;
};
__thread link_map t_map __attribute__((tls_model("initial-exec")));

int Visit(dl_phdr_info* info, size_t, void* context) {
  auto* search = static_cast<Search*>(context);
  uint64_t begin = UINT64_MAX;
  uint64_t end = 0;
  uint64_t eh_frame = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    if (header.p_type == PT_LOAD) {
      if (header.p_vaddr < begin) begin = header.p_vaddr;
      if (header.p_vaddr + header.p_memsz > end) end = header.p_vaddr + header.p_memsz;
    } else if (header.p_type == PT_GNU_EH_FRAME) {
      eh_frame = info->dlpi_addr + header.p_vaddr;
    }
  }
  const uint64_t offset = search->address - info->dlpi_addr;
  if (offset < begin || offset >= end) return 0;
  t_map.l_addr = info->dlpi_addr;
  t_map.l_name = const_cast<char*>(info->dlpi_name);
  search->result->map_start = reinterpret_cast<void*>(info->dlpi_addr + begin);
  search->result->map_end = reinterpret_cast<void*>(info->dlpi_addr + end);
  search->result->map = &t_map;
  search->result->eh_frame = reinterpret_cast<void*>(eh_frame);
  search->found = true;
  return 1;
}

int FindByWalk(void* address, FoundObject* result) {
  Search search = {reinterpret_cast<uint64_t>(address), result, false};
  dl_iterate_phdr(Visit, &search);
  return search.found ? 0 : -1;
}

int FindAny(void* address, FoundObject* result) {
  FindFunction find = g_find.load(std::memory_order_acquire);
  if (find == nullptr) {
    find = reinterpret_cast<FindFunction>(dlsym(RTLD_DEFAULT, "_dl_find_object"));
    if (find == nullptr) find = FindByWalk;
    g_find.store(find, std::memory_order_release);
  }
  return find(address, result);
}

// nvcc links cudart statically by default: its frames are then the program's, as far as can be told.
constexpr const char* kCudaLibraries[] = {"libcuda.so", "libcudart", "libcupti",
                                          "libtrainprof_injection"};

// So many frames without one of CUDA's: the program's own have begun.
constexpr uint32_t kSettledFrames = 8;

struct WalkState {
  Frames* frames;
  bool (*go_on)(uint64_t site, void* context);
  void* context;
  bool asked;
  bool refused;
  uint64_t stack_in_cuda;  // of the latest frame if that is CUDA's, else 0

  bool Ask() {
    asked = true;
    uint64_t site = 0xCBF29CE484222325;
    for (uint32_t i = 0; i < frames->count && i < kSiteFrames; ++i) {
      site = (site ^ frames->address[i]) * 0x100000001B3;
    }
    refused = !go_on(site, context);
    return !refused;
  }
};

_Unwind_Reason_Code OnFrame(_Unwind_Context* unwind, void* context) {
  auto* state = static_cast<WalkState*>(context);
  const uint64_t address = _Unwind_GetIP(unwind);
  if (address == 0) return _URC_END_OF_STACK;
  Frames& frames = *state->frames;
  if (!state->asked && IsCuda(address)) {
    frames.count = 0;  // what lies between CUDA's own frames is a wrapper's
    state->stack_in_cuda = _Unwind_GetCFA(unwind);
    return _URC_NO_REASON;
  }
  state->stack_in_cuda = 0;
  frames.address[frames.count++] = address;
  if (frames.count == kSettledFrames && !state->Ask()) return _URC_END_OF_STACK;
  return frames.count == ThreadWriter::kMostFrames ? _URC_END_OF_STACK : _URC_NO_REASON;
}

}  // namespace

// The unwinder that is linked in (libgcc_eh) asks for glibc 2.35's function under this name: with
// ours in its place, hidden, the library loads on older systems as well.
[[gnu::visibility("hidden")]] int FindForUnwinder(void* address,
                                                  void* result) __asm__("_dl_find_object");
int FindForUnwinder(void* address, void* result) {
  return FindAny(address, static_cast<FoundObject*>(result));
}

bool IsCuda(uint64_t address) {
  LoadedObject object;
  if (!FindObject(address, &object)) return false;
  const char* base = strrchr(object.path, '/');
  base = base == nullptr ? object.path : base + 1;
  for (const char* library : kCudaLibraries) {
    if (strncmp(base, library, strlen(library)) == 0) return true;
  }
  return false;
}

bool FindObject(uint64_t address, LoadedObject* object) {
  FoundObject found{};
  if (FindAny(reinterpret_cast<void*>(address), &found) != 0 || found.map == nullptr) return false;
  object->path = found.map->l_name == nullptr ? "" : found.map->l_name;
  object->file_start = reinterpret_cast<uint64_t>(found.map_start);
  object->end = reinterpret_cast<uint64_t>(found.map_end);
  object->load_bias = found.map->l_addr;
  return true;
}

bool Walk(Frames* frames, bool (*go_on)(uint64_t site, void* context), void* context) {
  frames->count = 0;
  WalkState state = {frames, go_on, context, false, false, 0};
  _Unwind_Backtrace(OnFrame, &state);
  frames->scanned = state.stack_in_cuda != 0;
  if (frames->scanned) {
    frames->count = ScanStack(state.stack_in_cuda, frames->address, ThreadWriter::kMostFrames);
  }
  if (!state.asked && frames->count > 0) state.Ask();
  return frames->count > 0 && !state.refused;
}

}  // namespace trainprof::collectors
