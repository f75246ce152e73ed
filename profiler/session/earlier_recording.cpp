// Replacing an earlier recording: whether a folder is one that may go, and taking it out of the
// way.
#include "profiler/session/earlier_recording.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "trace/recording/files/host_file.h"
#include "trace/recording/files/recorded_files.h"
#include "trace/recording/files/run_directory.h"
#include "trace/recording/files/run_state.h"
#include "trace/recording/segments/segment_liveness.h"

namespace fs = std::filesystem;

namespace trainprof {
namespace {

bool IsSameFile(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// True while `path` still names the open file.
bool Names(const fs::path& path, int fd) {
  struct stat named {};
  struct stat opened {};
  return lstat(path.c_str(), &named) == 0 && fstat(fd, &opened) == 0 && IsSameFile(named, opened);
}

bool EndsIn(const std::string& name, std::initializer_list<const char*> endings) {
  for (const char* ending : endings) {
    if (name.ends_with(ending)) return true;
  }
  return false;
}

bool IsOurFile(const std::string& name, const char* lock_file) {
  if (name == lock_file || name == recording::kControlFile || name == recording::kClockFile ||
      name.starts_with(recording::kManifestFile)) {
    return true;
  }
  if (name.starts_with(recording::kHostPrefix) || name.starts_with(recording::kStacksPrefix)) {
    return EndsIn(name, {".tph", ".tphz", ".tmp"});
  }
  return name.starts_with("sampler-") && name.ends_with(".lock");
}

bool IsOurFileOfARank(const std::string& name) {
  return EndsIn(name, {".tps", ".tpz", ".drained", ".slots", ".tmp", ".new", ".symbols.json"});
}

// The first thing in the folder that no trainprof has put there.
std::optional<fs::path> Foreign(const fs::path& directory, const char* lock_file) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    const fs::file_type type = entry.symlink_status(error).type();
    if (type == fs::file_type::regular && IsOurFile(name, lock_file)) continue;
    if (type != fs::file_type::directory || !recording::IsRankFolderName(name)) return name;
    for (const auto& inner : fs::directory_iterator(entry.path(), error)) {
      const std::string inner_name = inner.path().filename().string();
      const bool ours = inner.symlink_status(error).type() == fs::file_type::regular &&
                        IsOurFileOfARank(inner_name);
      if (!ours) return fs::path(name) / inner_name;
    }
  }
  return std::nullopt;
}

// Another machine's run whose end nobody has written down: whether it goes on cannot be seen here.
std::optional<std::string> UnendedOnAnotherHost(const fs::path& directory) {
  const recording::RunState state = recording::ReadRunState(directory);
  char here[256] = {};
  gethostname(here, sizeof here - 1);
  if (state.ended || state.host.empty() || state.host == here) return std::nullopt;
  return state.host;
}

// Why the folder must stay; empty when it may go.
std::string ReasonToKeep(const fs::path& directory, const char* lock_file) {
  struct stat status {};
  if (lstat(directory.c_str(), &status) != 0) return strerror(errno);
  if (S_ISLNK(status.st_mode)) return "it is a symbolic link";
  if (!S_ISDIR(status.st_mode)) return "it is not a folder";
  if (!recording::ReadControl(directory)) return "it is not a recording of trainprof";
  if (geteuid() != 0 && status.st_uid != geteuid()) return "it belongs to another user";
  if (const auto foreign = Foreign(directory, lock_file)) {
    return fmt::format("it also holds {}, which is not part of a recording", foreign->string());
  }
  if (recording::IsStillRecorded(directory)) return "its run is still going on";
  if (const auto host = UnendedOnAnotherHost(directory)) {
    return fmt::format("its run on the machine {} may still be going on", *host);
  }
  return {};
}

}  // namespace

RunClaim::RunClaim(RunClaim&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

RunClaim& RunClaim::operator=(RunClaim&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

RunClaim::~RunClaim() {
  if (fd_ >= 0) close(fd_);
}

bool RunClaim::Take(const fs::path& file) {
  if (fd_ >= 0) close(fd_);
  fd_ = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd_ < 0) return false;
  // A file system without locks: there the segments and the manifest must tell.
  if (flock(fd_, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK) return false;
  return Names(file, fd_);
}

SetAsideOutcome SetAside(const fs::path& directory, const char* lock_file, const fs::path& aside) {
  const recording::OwnedFd folder(open(directory.c_str(), O_PATH | O_CLOEXEC | O_NOFOLLOW));
  if (folder.get() < 0 && errno == ENOENT) return {SetAsideResult::kChanged, {}};
  // Recordings of earlier versions have no such file; their control file serves.
  fs::path locked = directory / lock_file;
  if (access(locked.c_str(), F_OK) != 0) locked = directory / recording::kControlFile;
  const recording::OwnedFd lock(open(locked.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (lock.get() >= 0 && flock(lock.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return {SetAsideResult::kChanged, "its run is still going on"};
  }
  // From here on no other rank moves it. What is said of a folder that was moved before is void.
  std::string why = ReasonToKeep(directory, lock_file);
  if (!Names(directory, folder.get()) || (lock.get() >= 0 && !Names(locked, lock.get()))) {
    return {SetAsideResult::kChanged, {}};
  }
  if (why.empty() && rename(directory.c_str(), aside.c_str()) != 0) why = strerror(errno);
  if (!why.empty()) return {SetAsideResult::kRefused, std::move(why)};
  return {SetAsideResult::kDone, {}};
}

}  // namespace trainprof
