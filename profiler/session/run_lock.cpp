#include "profiler/session/run_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

#include <thread>

#include "trace/recording/layout.h"

namespace trainprof {
namespace {

constexpr std::chrono::milliseconds kLockPoll{10};

}  // namespace

bool LockRun(const std::filesystem::path& run_dir, std::chrono::steady_clock::time_point deadline) {
  const int file = open((run_dir / recording::kControlFile).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return true;
  while (flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(kLockPoll);
  }
  return true;
}

}  // namespace trainprof
