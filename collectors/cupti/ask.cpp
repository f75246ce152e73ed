// This library as a program: the loader starts it here when it is executed, and it asks a libcupti
// what the collector would, in a process that nobody misses when it crashes. See library_answer.h.
//
// usage: LOADER libtrainprof_injection.so DRIVER [LIBRARY], the reports go to descriptor 3
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collectors/core/old_glibc.h"
#include "collectors/core/own_process.h"
#include "collectors/cupti/api.h"
#include "collectors/cupti/library_answer.h"
#include "collectors/cupti/records.h"

namespace trainprof::collectors {
namespace {

constinit LibraryReport g_report{};

void Tell() { syscall(SYS_write, kOwnProcessOutput, &g_report, sizeof g_report); }

[[noreturn]] void EndWith(LibraryVerdict verdict) {
  g_report.verdict = verdict;
  Tell();
  for (;;) syscall(SYS_exit_group, 0);
}

// What comes next calls `function`: should it not return, this is known.
void Announce(const char* function) {
  snprintf(g_report.asking, sizeof g_report.asking, "%s", function);
  Tell();
}

template <class Function>
Function Find(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

void* LoadDriver(const char* path) {
  // For everybody: libcupti looks for the driver by its name and must find this one.
  void* driver = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  if (driver == nullptr) return nullptr;
  const auto get_version = Find<int (*)(int*)>(driver, "cuDriverGetVersion");
  Announce("cuDriverGetVersion");
  if (get_version != nullptr) get_version(&g_report.driver_version);
  return driver;
}

[[noreturn]] void StartDriver(void* driver) {
  if (driver == nullptr) {
    snprintf(g_report.detail, sizeof g_report.detail, "libcuda.so.1 is not installed");
    EndWith(LibraryVerdict::kNotLoaded);
  }
  const auto init = Find<int (*)(unsigned)>(driver, "cuInit");
  const auto get_name = Find<int (*)(int, const char**)>(driver, "cuGetErrorName");
  Announce("cuInit");
  if (init != nullptr) g_report.error = init(0);
  const char* name = nullptr;
  if (g_report.error != 0 && get_name != nullptr && get_name(g_report.error, &name) == 0 &&
      name != nullptr) {
    snprintf(g_report.detail, sizeof g_report.detail, "%s", name);
  }
  EndWith(LibraryVerdict::kUsable);
}

// "libcupti.so.13" of a loaded library, or "".
const char* SonameOf(const link_map* map) {
  const char* strings = nullptr;
  ElfW(Xword) offset = 0;
  bool named = false;
  for (const ElfW(Dyn)* entry = map->l_ld; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_STRTAB) strings = reinterpret_cast<const char*>(entry->d_un.d_ptr);
    if (entry->d_tag == DT_SONAME) offset = entry->d_un.d_val, named = true;
  }
  return named && strings != nullptr ? strings + offset : "";
}

void* LoadCandidate(const char* name) {
  Announce("");
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    snprintf(g_report.detail, sizeof g_report.detail, "%s", why == nullptr ? "?" : why);
    EndWith(LibraryVerdict::kNotLoaded);
  }
  link_map* map = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr) {
    snprintf(g_report.path, sizeof g_report.path, "%s", map->l_name);
    const int major = MajorOf(SonameOf(map));
    g_report.cupti_version = major * 1000;
    if (!FitsDriver(major, g_report.driver_version)) EndWith(LibraryVerdict::kTooNew);
  }
  return library;
}

void CUPTIAPI NoCall(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}

// What begins a recording, so that it happens here first. Its results are the collector's business:
// what CUPTI refuses here it refuses there, in words that say more.
void BeginRecording(const CuptiApi& api) {
  CUpti_SubscriberHandle subscriber{};
  char holder[kHolderBytes];
  bool unnamed = false;
  Announce("cuptiSubscribe");
  if (SubscribeTo(api, &subscriber, NoCall, nullptr, false, holder, &unnamed) != CUPTI_SUCCESS)
    return;
  Announce("cuptiActivityEnable");
  api.enable(static_cast<CUpti_ActivityKind>(kKernelActivity));
}

[[noreturn]] void AskAll(const char* name) {
  void* library = LoadCandidate(name);
  CuptiApi api{};
  if (const char* missing = FindFunctions(library, &api)) {
    snprintf(g_report.detail, sizeof g_report.detail, "%s", missing);
    EndWith(LibraryVerdict::kIncomplete);
  }
  Announce("cuptiGetVersion");
  g_report.error = api.get_version(&api.version);
  if (g_report.error != CUPTI_SUCCESS) EndWith(LibraryVerdict::kRefuses);
  g_report.cupti_version = CudaVersionOf(api.version, g_report.cupti_version / 1000);
  if (!FitsDriver(g_report.cupti_version / 1000, g_report.driver_version)) {
    EndWith(LibraryVerdict::kTooNew);
  }
  Announce("cuptiActivityGetNextRecord");
  uint32_t record_bytes[kActivityKinds];
  if (!MeasureRecords(api, record_bytes)) EndWith(LibraryVerdict::kNoSizes);
  BeginRecording(api);
  EndWith(LibraryVerdict::kUsable);
}

}  // namespace

// `stack`: as the kernel hands it over, the number of arguments and then these.
extern "C" [[noreturn, gnu::visibility("hidden"), gnu::used]] void TrainprofAsk(
    const uintptr_t* stack) {
  const auto count = static_cast<size_t>(stack[0]);
  const auto* arguments = reinterpret_cast<const char* const*>(stack + 1);
  if (count < 2) {
    // Somebody executes the library by hand.
    constexpr char kText[] = "This is a library that `trainprof run` puts into programs.\n";
    syscall(SYS_write, STDERR_FILENO, kText, sizeof kText - 1);
    for (;;) syscall(SYS_exit_group, 2);
  }
  prctl(PR_SET_NAME, "trainprof-ask");
  // The driver's helpers must not keep the answer waiting.
  fcntl(kOwnProcessOutput, F_SETFD, FD_CLOEXEC);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  void* driver = LoadDriver(arguments[1]);
  if (count < 3 || arguments[2][0] == 0) StartDriver(driver);
  AskAll(arguments[2]);
}

}  // namespace trainprof::collectors

// A program's entry is jumped to, not called: with the arguments on the stack, and no frame below.
#if defined(__x86_64__)
__asm__(
    ".text\n"
    ".hidden TrainprofEntry\n"
    ".globl TrainprofEntry\n"
    ".type TrainprofEntry, @function\n"
    "TrainprofEntry:\n"
    "  xor %ebp, %ebp\n"
    "  mov %rsp, %rdi\n"
    "  and $-16, %rsp\n"
    "  call TrainprofAsk\n"
    "  hlt\n"
    ".size TrainprofEntry, . - TrainprofEntry\n");
#elif defined(__aarch64__)
__asm__(
    ".text\n"
    ".hidden TrainprofEntry\n"
    ".globl TrainprofEntry\n"
    ".type TrainprofEntry, %function\n"
    "TrainprofEntry:\n"
    "  mov x29, #0\n"
    "  mov x30, #0\n"
    "  mov x0, sp\n"
    "  bl TrainprofAsk\n"
    "  brk #1\n"
    ".size TrainprofEntry, . - TrainprofEntry\n");
#else
#error "no entry for this processor: see TrainprofEntry"
#endif
