#include "profiler/session/recover.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "collectors/cupti/salvage.h"
#include "collectors/cupti/slot_file.h"
#include "profiler/session/run_lock.h"
#include "trace/recording/layout.h"

namespace trainprof {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kRecoverLimit{5};

bool HasSlots(const fs::path& run_dir) {
  std::error_code error;
  for (const auto& folder : fs::directory_iterator(run_dir, error)) {
    for (const auto& entry : fs::directory_iterator(folder.path(), error)) {
      if (entry.path().extension() == collectors::kSlotFileSuffix) return true;
    }
  }
  return false;
}

// The run directory that `path` is or lies in; empty when it is neither.
fs::path RunOf(const fs::path& path) {
  std::error_code error;
  for (const fs::path& folder :
       {path, fs::absolute(path, error).lexically_normal().parent_path()}) {
    if (fs::exists(folder / recording::kControlFile, error)) return folder;
  }
  return {};
}

}  // namespace

void RecoverDead(const fs::path& path) {
  const fs::path run_dir = RunOf(path);
  if (run_dir.empty() || !HasSlots(run_dir)) return;
  // In a process of its own: it takes over the collector's state, and damaged files end there.
  const pid_t worker = fork();
  if (worker == 0) {
    const auto deadline = std::chrono::steady_clock::now() + kRecoverLimit;
    if (LockRun(run_dir, std::chrono::steady_clock::now())) {
      collectors::SalvageSlots(run_dir, deadline);
    }
    _exit(0);
  }
  while (worker > 0 && waitpid(worker, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace trainprof
