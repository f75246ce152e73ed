#include "trace/recording/files/recorded_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "trace/io/write_all.h"
#include "trace/recording/wire/access.h"

namespace trainprof::recording {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kOwnersMode = 0600;

const char* WhatItIs(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFLNK:
      return "a link; what lies in a recording is read where it is (copy it with cp -rL)";
    case S_IFIFO:
      return "a pipe, not a file";
    case S_IFSOCK:
      return "a socket, not a file";
    case S_IFCHR:
    case S_IFBLK:
      return "a device, not a file";
    case S_IFDIR:
      return "a folder, not a file";
    default:
      return "not a file";
  }
}

Error CannotOpen(const fs::path& path, int error) {
  return {path.string() + ": cannot open: " + strerror(error)};
}

fs::path FolderOf(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

}  // namespace

OwnedFd::~OwnedFd() {
  if (fd_ >= 0) close(fd_);
}

RecordedFolder::RecordedFolder(fs::path path, OwnedFd fd)
    : path_(std::move(path)), fd_(std::move(fd)) {
  struct stat status {};
  owner_ = fstat(fd_.get(), &status) == 0 ? status.st_uid : UINT32_MAX;
}

Result<RecordedFolder> RecordedFolder::Enter(const std::string& name) const {
  OwnedFd inner(openat(fd(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!inner.is_open()) return CannotOpen(path_ / name, errno);
  return RecordedFolder(path_ / name, std::move(inner));
}

std::vector<std::string> RecordedFolder::Names() const {
  std::vector<std::string> names;
  // Opened anew: who reads it moves its position.
  const int fd = openat(fd_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const folder = fd < 0 ? nullptr : fdopendir(fd);
  if (folder == nullptr) {
    if (fd >= 0) close(fd);
    return names;
  }
  while (const dirent* const entry = readdir(folder)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  closedir(folder);
  std::sort(names.begin(), names.end());
  return names;
}

Result<RecordedFile> RecordedFolder::Open(const std::string& name, int flags) const {
  const fs::path path = path_ / name;
  struct stat status {};
  // To open a pipe or a device may already do something to it: it is asked what it is first.
  if (fstatat(fd(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    return CannotOpen(path, errno);
  }
  if (!S_ISREG(status.st_mode)) return Error{path.string() + ": is " + WhatItIs(status.st_mode)};
  RecordedFile file;
  file.fd =
      OwnedFd(openat(fd(), name.c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file.fd.is_open()) return CannotOpen(path, errno);
  // Another one may have taken the name in between.
  if (fstat(file.fd.get(), &status) != 0) return CannotOpen(path, errno);
  if (!S_ISREG(status.st_mode)) return Error{path.string() + ": is " + WhatItIs(status.st_mode)};
  file.bytes = static_cast<uint64_t>(status.st_size);
  file.device = status.st_dev;
  file.inode = status.st_ino;
  return file;
}

Result<RecordedFile> RecordedFolder::Read(const std::string& name) const {
  return Open(name, O_RDONLY);
}

Result<RecordedFile> RecordedFolder::Change(const std::string& name) const {
  Result<RecordedFile> file = Open(name, O_RDWR);
  if (!file.ok()) return file;
  struct stat status {};
  if (fstat(file.value().fd.get(), &status) != 0) return CannotOpen(path_ / name, errno);
  if (status.st_uid != owner_ || status.st_nlink != 1) {
    return Error{(path_ / name).string() +
                 ": is not changed: it belongs to another user, or has a second name elsewhere"};
  }
  return file;
}

int RecordedFolder::Create(const std::string& name) const {
  struct stat status {};
  if (fstat(fd(), &status) != 0) return -1;
  unlinkat(fd(), name.c_str(), 0);
  const int created =
      openat(fd(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kOwnersMode);
  // Who may look into the folder may read it; file systems without modes refuse, and need none.
  if (created >= 0) (void)!fchmod(created, FileModeIn(status.st_mode));
  return created;
}

bool RecordedFolder::Rename(const std::string& from, const std::string& to) const {
  return renameat(fd(), from.c_str(), fd(), to.c_str()) == 0;
}

bool RecordedFolder::Replace(const std::string& name, std::string_view text) const {
  const std::string fresh = name + ".tmp";
  const OwnedFd file(Create(fresh));
  if (!file.is_open()) return false;
  int cause = WriteAll(file.get(), text);
  if (cause == 0 && Rename(fresh, name)) return true;
  if (cause == 0) cause = errno;
  Remove(fresh);
  errno = cause;
  return false;
}

bool RecordedFolder::Remove(const std::string& name) const {
  return unlinkat(fd(), name.c_str(), 0) == 0;
}

bool RecordedFolder::Has(const std::string& name) const {
  struct stat status {};
  return fstatat(fd(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
}

Result<RecordedFolder> OpenFolder(const fs::path& path, Links links) {
  const int no_follow = links == Links::kRefuse ? O_NOFOLLOW : 0;
  OwnedFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | no_follow));
  if (fd.is_open()) return RecordedFolder(path, std::move(fd));
  const int error = errno;
  struct stat status {};
  if (lstat(path.c_str(), &status) == 0 && !S_ISDIR(status.st_mode)) {
    return Error{path.string() + ": is " + WhatItIs(status.st_mode)};
  }
  return CannotOpen(path, error);
}

Result<RecordedFile> OpenRecorded(const fs::path& path, Links links) {
  const Result<RecordedFolder> folder = OpenFolder(FolderOf(path), links);
  if (!folder.ok()) return Error{folder.error()};
  return folder.value().Read(path.filename().string());
}

Result<std::string> ReadRecorded(const fs::path& path, Links links, uint64_t most_bytes) {
  const Result<RecordedFile> file = OpenRecorded(path, links);
  if (!file.ok()) return Error{file.error()};
  if (file.value().bytes > most_bytes) {
    return Error{path.string() + ": is longer than " + std::to_string(most_bytes) +
                 " bytes; trainprof writes no such file"};
  }
  std::string text(file.value().bytes, '\0');
  if (!ReadFully(file.value().fd.get(), 0, text.data(), text.size())) {
    return Error{path.string() + ": cannot be read"};
  }
  return text;
}

bool ReadFully(int fd, uint64_t offset, void* out, size_t size) {
  auto* p = static_cast<char*>(out);
  while (size > 0) {
    const ssize_t n = pread(fd, p, size, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    p += n;
    offset += static_cast<uint64_t>(n);
    size -= static_cast<size_t>(n);
  }
  return true;
}

}  // namespace trainprof::recording
