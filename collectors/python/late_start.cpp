#include "collectors/python/late_start.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>

#include "collectors/core/old_glibc.h"
#include "collectors/python/python_api.h"

namespace trainprof::collectors {
namespace {

constinit std::atomic<bool> g_asked{false};

// sitecustomize.py, under another name than that of the user's own; nothing is imported for it.
constexpr char kText[] = R"(
import os, sys
place = os.path.join(os.environ["TRAINPROF_PYTHON"], "sitecustomize.py")
loader = sys.modules["_frozen_importlib_external"].SourceFileLoader("trainprof_start", place)
names = {"__name__": "trainprof_start", "__file__": place}
exec(loader.get_code("trainprof_start"), names)
names["late"]()
)";

// On the main thread, where Python may run.
int Start(void*) {
  if (const PythonApi* python = FindPython()) python->run_apart(kText);
  return 0;
}

// Takes this library out of LD_PRELOAD, where `trainprof run` has put it last: neither the program nor
// what it starts is to see it there. False where it does not stand there.
bool WasPreloaded() {
  char* const preload = getenv("LD_PRELOAD");
  Dl_info here;
  if (preload == nullptr || dladdr(reinterpret_cast<void*>(&Start), &here) == 0) return false;
  char* const last_colon = strrchr(preload, ':');
  if (strcmp(last_colon == nullptr ? preload : last_colon + 1, here.dli_fname) != 0) return false;
  if (last_colon == nullptr) {
    unsetenv("LD_PRELOAD");
  } else {
    *last_colon = 0;
  }
  return true;
}

// An audit hook, of all that the interpreter tells such: it begins the program.
int SeesTheProgramBegin(const char* event, void*, void*) {
  if (strncmp(event, "cpython.run_", 12) == 0 && !g_asked.exchange(true)) Start(nullptr);
  return 0;
}

// Before the interpreter begins, in whatever process the library lies: shells that start it hand it on.
[[gnu::constructor]] void AwaitProgram() {
  const auto add = reinterpret_cast<int (*)(int (*)(const char*, void*, void*), void*)>(
      dlsym(RTLD_DEFAULT, "PySys_AddAuditHook"));
  if (add != nullptr && WasPreloaded()) add(SeesTheProgramBegin, nullptr);
}

}  // namespace

void StartHooksLate() {
  if (getenv("TRAINPROF_PYTHON") == nullptr) return;
  const auto is_up = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "Py_IsInitialized"));
  const auto add =
      reinterpret_cast<int (*)(int (*)(void*), void*)>(dlsym(RTLD_DEFAULT, "Py_AddPendingCall"));
  if (is_up == nullptr || add == nullptr || is_up() == 0 || g_asked.exchange(true)) return;
  if (add(Start, nullptr) != 0) g_asked = false;  // its list is full
}

}  // namespace trainprof::collectors
