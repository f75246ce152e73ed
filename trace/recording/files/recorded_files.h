// The one way to the files of a recording. A recording may come from anybody: what lies in it is
// read without following links and without waiting for a pipe or waking a device, and written
// without touching a file elsewhere. The folder that the user names may be a link; nothing in it.
//
//   run/                  OpenFolder(run, Links::kFollow)
//   run/rank-00003/       OpenFolder(folder, Links::kRefuse)
//   run/rank-00003/x.tps  folder.Read("x.tps")
//
// A folder stays the same one while it is open, wherever its path leads by then.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trace/base/result.h"

namespace trainprof::recording {

// A file descriptor that closes itself.
class OwnedFd {
 public:
  explicit OwnedFd(int fd = -1) : fd_(fd) {}
  OwnedFd(OwnedFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~OwnedFd();

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

// A regular file. Two of them are the same where device and inode are.
struct RecordedFile {
  OwnedFd fd;
  uint64_t bytes = 0;  // when it was opened
  uint64_t device = 0;
  uint64_t inode = 0;
};

enum class Links { kFollow, kRefuse };

class RecordedFolder {
 public:
  const std::filesystem::path& path() const { return path_; }
  int fd() const { return fd_.get(); }
  uint32_t owner() const { return owner_; }  // user id

  // A folder in it, which must be no link.
  Result<RecordedFolder> Enter(const std::string& name) const;

  std::vector<std::string> Names() const;  // sorted; without . and ..
  // Fails on what is no regular file, saying what it is. Never blocks.
  Result<RecordedFile> Read(const std::string& name) const;
  // To read and write what is there: a regular file of the folder's owner that has no second name,
  // which might be one elsewhere.
  Result<RecordedFile> Change(const std::string& name) const;
  // To write a new file in the place of whatever has that name, which is not written to. -1, errno.
  int Create(const std::string& name) const;
  bool Rename(const std::string& from, const std::string& to) const;
  // A file of this text, whole or not at all, in the place of whatever has that name. Else errno.
  bool Replace(const std::string& name, std::string_view text) const;
  bool Remove(const std::string& name) const;
  bool Has(const std::string& name) const;  // of any kind

 private:
  friend Result<RecordedFolder> OpenFolder(const std::filesystem::path& path, Links links);
  RecordedFolder(std::filesystem::path path, OwnedFd fd);
  Result<RecordedFile> Open(const std::string& name, int flags) const;

  std::filesystem::path path_;
  OwnedFd fd_;
  uint32_t owner_ = 0;
};

// Of a recording's own folders (Links::kRefuse) the last name must be none.
Result<RecordedFolder> OpenFolder(const std::filesystem::path& path, Links links);

// A file of a run's folder, or (Links::kRefuse) of one of the folders in it.
Result<RecordedFile> OpenRecorded(const std::filesystem::path& path, Links links);

// All of it; fails when it is longer than `most_bytes`.
Result<std::string> ReadRecorded(const std::filesystem::path& path, Links links,
                                 uint64_t most_bytes);

// The whole of [offset, offset + size), across interrupted and short reads.
bool ReadFully(int fd, uint64_t offset, void* out, size_t size);

}  // namespace trainprof::recording
