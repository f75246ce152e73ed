#include "collectors/python/late_start.h"

#include <dlfcn.h>
#include <stdlib.h>

#include <atomic>

#include "collectors/core/old_glibc.h"
#include "collectors/python/python_api.h"

namespace trainprof::collectors {
namespace {

constinit std::atomic<bool> g_asked{false};

// sitecustomize.py, under another name than that of the user's own.
constexpr char kText[] = R"(
import importlib.util, os
place = os.path.join(os.environ["TRAINPROF_PYTHON"], "sitecustomize.py")
spec = importlib.util.spec_from_file_location("trainprof_start", place)
start = importlib.util.module_from_spec(spec)
spec.loader.exec_module(start)
start.late()
)";

// On the main thread, between two instructions of Python.
int Start(void*) {
  if (const PythonApi* python = FindPython()) python->run_apart(kText);
  return 0;
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
