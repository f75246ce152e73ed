#include "trace/recording/files/run_lock.h"

#include <errno.h>
#include <sys/file.h>

#include <thread>

#include "trace/recording/files/recorded_files.h"
#include "trace/recording/wire/layout.h"

namespace trainprof::recording {
namespace {

constexpr std::chrono::milliseconds kLockPoll{10};

}  // namespace

bool LockRun(const std::filesystem::path& run_dir, std::chrono::steady_clock::time_point deadline) {
  Result<RecordedFile> file = OpenRecorded(run_dir / kControlFile, Links::kFollow);
  if (!file.ok()) return true;
  const int fd = file.value().fd.Release();
  while (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(kLockPoll);
  }
  return true;
}

}  // namespace trainprof::recording
