// Files written through a temporary name.
#include "trace/formats/file_sink.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace trainprof {
namespace {

constexpr size_t kCompressedBytes = 256 << 10;
// Level 1 is three times as fast as zlib's default and costs some 30 % in size on traces.
constexpr int kGzipLevel = 1;
constexpr int kGzipWindow = 15 + 16;
constexpr int kMemoryLevel = 9;

std::string WhatToDo(int error) {
  if (error == ENOSPC || error == EDQUOT) return "; free some space or choose another folder";
  if (error == EACCES || error == EPERM || error == EROFS)
    return "; choose a folder you may write to";
  if (error == ENOENT) return "; create the folder first";
  return "";
}

}  // namespace

Result<std::unique_ptr<FileSink>> FileSink::Open(const std::string& path, bool overwrite) {
  struct stat info {};
  if (!overwrite && stat(path.c_str(), &info) == 0) {
    return Error{fmt::format(
        "{}: exists already; remove it, choose another name, or ask to overwrite", path)};
  }
  std::string temporary = fmt::format("{}.part-{}", path, getpid());
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) {
    const int error = errno;
    return Error{
        fmt::format("{}: cannot create: {}{}", temporary, std::strerror(error), WhatToDo(error))};
  }
  return std::unique_ptr<FileSink>(new FileSink(path, std::move(temporary), fd, overwrite));
}

FileSink::FileSink(std::string path, std::string temporary, int fd, bool overwrite)
    : path_(std::move(path)),
      temporary_(std::move(temporary)),
      fd_(fd),
      overwrite_(overwrite),
      gzip_(path_.ends_with(".gz")) {
  if (!gzip_) return;
  compressed_.resize(kCompressedBytes);
  if (deflateInit2(&zlib_, kGzipLevel, Z_DEFLATED, kGzipWindow, kMemoryLevel, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    failure_ = fmt::format("{}: zlib could not start (out of memory?)", path_);
  }
}

FileSink::~FileSink() {
  if (gzip_) deflateEnd(&zlib_);
  if (fd_ >= 0) close(fd_);
  if (!committed_) unlink(temporary_.c_str());
}

void FileSink::Write(std::string_view bytes) {
  if (gzip_) {
    Compress(bytes, Z_NO_FLUSH);
  } else {
    WriteOut(bytes.data(), bytes.size());
  }
}

void FileSink::Compress(std::string_view bytes, int flush) {
  constexpr size_t kMostAtOnce = 1u << 30;  // zlib counts in 32 bits
  do {
    const std::string_view part = bytes.substr(0, kMostAtOnce);
    bytes.remove_prefix(part.size());
    zlib_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(part.data()));
    zlib_.avail_in = static_cast<uInt>(part.size());
    do {
      if (!failure_.empty()) return;
      zlib_.next_out = reinterpret_cast<Bytef*>(compressed_.data());
      zlib_.avail_out = static_cast<uInt>(compressed_.size());
      deflate(&zlib_, bytes.empty() ? flush : Z_NO_FLUSH);
      WriteOut(compressed_.data(), compressed_.size() - zlib_.avail_out);
    } while (zlib_.avail_out == 0);
  } while (!bytes.empty());
}

void FileSink::WriteOut(const char* data, size_t size) {
  while (size > 0 && failure_.empty()) {
    const ssize_t wrote = write(fd_, data, size);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) {
      const int error = errno;
      failure_ = fmt::format("{}: writing failed after {} bytes: {}{}", path_, written_,
                             std::strerror(error), WhatToDo(error));
      return;
    }
    data += wrote;
    size -= static_cast<size_t>(wrote);
    written_ += static_cast<uint64_t>(wrote);
  }
}

Result<void> FileSink::Commit() {
  if (gzip_) Compress({}, Z_FINISH);
  const int fd = fd_;
  fd_ = -1;
  // close() is where a network or quota file system reports what it could not store.
  if (close(fd) != 0 && failure_.empty()) {
    failure_ =
        fmt::format("{}: writing failed: {}{}", path_, std::strerror(errno), WhatToDo(errno));
  }
  if (!failure_.empty()) return Error{failure_};
  // link() fails where the name has come up meanwhile; rename() would replace it.
  const bool linked = !overwrite_ && link(temporary_.c_str(), path_.c_str()) == 0;
  if (linked) return {};
  if (!overwrite_ && errno == EEXIST) {
    return Error{fmt::format("{}: exists already; it came up while writing", path_)};
  }
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    return Error{
        fmt::format("{}: cannot rename {} to it: {}", path_, temporary_, std::strerror(errno))};
  }
  committed_ = true;
  return {};
}

}  // namespace trainprof
