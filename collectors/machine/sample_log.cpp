#include "collectors/machine/sample_log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <fmt/format.h>

#include <utility>

#include "trace/recording/files/run_files.h"

namespace trainprof {

namespace fs = std::filesystem;

Result<SampleLog> SampleLog::Create(const fs::path& run_dir, recording::HostHeader header,
                                    uint64_t max_bytes, const char* prefix) {
  const fs::path path = run_dir / fmt::format("{}{}-{}{}", prefix, header.pid,
                                              header.opened_realtime_ns, recording::kHostSuffix);
  const int fd = recording::OpenInRun(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND);
  if (fd < 0) {
    return Error{
        fmt::format("{}: cannot create the host samples: {}", path.string(), strerror(errno))};
  }
  SampleLog log(path, fd, max_bytes);
  header.magic = recording::kHostMagic;
  header.version = recording::kHostVersion;
  header.check = recording::CheckOf(&header, offsetof(recording::HostHeader, check));
  log.Append({reinterpret_cast<const char*>(&header), sizeof header});
  if (log.failed()) {
    const std::string cause = strerror(errno);
    unlink(path.c_str());
    return Error{fmt::format("{}: cannot write the host samples: {}", path.string(), cause)};
  }
  return log;
}

SampleLog::SampleLog(SampleLog&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      max_bytes_(other.max_bytes_),
      used_bytes_(other.used_bytes_.load()),
      failed_(other.failed_.load()) {}

SampleLog::~SampleLog() { Close(); }

void SampleLog::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

void SampleLog::Append(std::span<const char> frame) {
  if (frame.empty()) return;
  if (used_bytes_.fetch_add(frame.size()) + frame.size() > max_bytes_) {
    used_bytes_ -= frame.size();
    return;
  }
  const ssize_t written = write(fd_, frame.data(), frame.size());
  if (written != static_cast<ssize_t>(frame.size())) failed_ = true;
}

int64_t SampleLog::Slowdown() const {
  const uint64_t used = used_bytes_;
  int64_t slowdown = 1;
  for (uint64_t left = max_bytes_ / 2; left > 0 && used > max_bytes_ - left; left /= 2) {
    slowdown *= 2;
  }
  return slowdown;
}

}  // namespace trainprof
