#include "trace/io/input_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "trace/io/output_target.h"

namespace trainprof {
namespace {

constexpr int kBetweenStopsMs = 50;

bool ReadsOnce(mode_t mode) { return S_ISFIFO(mode) || S_ISSOCK(mode) || S_ISCHR(mode); }

Error NoTrace(const std::string& path, std::string_view what) {
  return Error{fmt::format("{}: is {}, a trace file was expected", path, what)};
}

}  // namespace

Result<std::unique_ptr<InputFile>> InputFile::Open(const std::string& path) {
  struct stat info {};
  int fd = -1;
  const int own = OwnDescriptorNamed(path);
  if (own >= 0 && fstat(own, &info) == 0 && ReadsOnce(info.st_mode)) {
    // Opened anew, a pipe whose writer has ended already would never end, and a socket not open.
    fd = fcntl(own, F_DUPFD_CLOEXEC, 0);
  } else {
    // Without O_NONBLOCK this would wait here for a FIFO's writer, deaf to `stop`.
    fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0 && errno == ENXIO) return NoTrace(path, "a socket or a device without hardware");
  }
  if (fd < 0 || fstat(fd, &info) != 0) {
    const int error = errno;
    if (fd >= 0) close(fd);
    return Error{fmt::format("{}: cannot open: {}", path, std::strerror(error))};
  }
  std::unique_ptr<InputFile> file(new InputFile(fd, ReadsOnce(info.st_mode)));
  if (S_ISDIR(info.st_mode)) return NoTrace(path, "a folder");
  if (S_ISBLK(info.st_mode)) return NoTrace(path, "a disk (a block device)");
  if (isatty(fd) != 0) return NoTrace(path, "a terminal");
  return file;
}

InputFile::~InputFile() { close(fd_); }

ssize_t InputFile::Read(char* out, size_t capacity, const std::function<bool()>& stop) {
  while (true) {
    // A FIFO that nobody writes to yet reads as ended; poll() tells the two apart.
    pollfd ready{.fd = fd_, .events = POLLIN, .revents = 0};
    if (is_stream_ && poll(&ready, 1, kBetweenStopsMs) <= 0) {
      if (!stop()) continue;
      errno = ECANCELED;
      return -1;
    }
    const ssize_t got = read(fd_, out, capacity);
    if (got >= 0) return got;
    if (errno != EINTR && !(is_stream_ && errno == EAGAIN)) return -1;
  }
}

bool IsStream(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && ReadsOnce(info.st_mode);
}

}  // namespace trainprof
