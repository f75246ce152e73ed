// Making folders and files of a recording.
#include "trace/recording/files/run_files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/recording/wire/access.h"

namespace trainprof::recording {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kPermissions = 0777;

mode_t ModeOf(const fs::path& folder) {
  struct stat status {};
  return stat(folder.empty() ? "." : folder.c_str(), &status) == 0 ? status.st_mode : 0;
}

}  // namespace

bool MakeFolder(const fs::path& path, mode_t mode) {
  if (mkdir(path.c_str(), mode) != 0) return false;
  struct stat made {};
  if (stat(path.c_str(), &made) != 0 || (made.st_mode & kPermissions) == mode) return true;
  return chmod(path.c_str(), mode | (made.st_mode & S_ISGID)) == 0;
}

bool MakeFolderInRun(const fs::path& path) {
  return MakeFolder(path, FolderModeIn(ModeOf(path.parent_path())));
}

int OpenInRun(const fs::path& path, int flags) {
  const mode_t mode = FileModeIn(ModeOf(path.parent_path()));
  const int fd = open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, mode);
  struct stat opened {};
  const bool differs = fd >= 0 && (flags & O_CREAT) != 0 && fstat(fd, &opened) == 0 &&
                       (opened.st_mode & kPermissions) != mode;
  if (differs) {
    const int before = errno;
    if (fchmod(fd, mode) != 0) errno = before;  // not ours: its owner chose
  }
  return fd;
}

}  // namespace trainprof::recording
