#include "trace/recording/files/clock_log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "trace/recording/files/recorded_files.h"
#include "trace/recording/files/run_files.h"
#include "trace/recording/wire/tick_clock.h"

namespace trainprof::recording {
namespace {

struct LogHeader {
  static constexpr uint64_t kMagic = 0x3130435054505254;  // "TRPTPC01"
  uint64_t magic;
  ClockKind kind;
  uint32_t reserved;
};
static_assert(sizeof(LogHeader) == 16);

// 24 hours at ten samples a second, several times over: a longer file is none of ours.
constexpr size_t kMostSamples = 8'000'000;

bool WriteWhole(int fd, const void* data, size_t size) {
  // One write a sample: a torn tail is at most one sample, and O_APPEND keeps them apart.
  return write(fd, data, size) == static_cast<ssize_t>(size);
}

}  // namespace

ClockKind HostClockKind() { return DetectClockKind(); }
ClockSample SampleClocks(ClockKind kind) { return SampleClockTriple(kind); }

Result<ClockLog> ClockLog::Open(const std::filesystem::path& run_dir) {
  const std::filesystem::path path = run_dir / kClockFile;
  const auto failed = [&](const char* what) {
    return Error{path.string() + ": cannot " + what + ": " + strerror(errno)};
  };
  const int fd = OpenInRun(path, O_WRONLY | O_CREAT | O_APPEND);
  if (fd < 0) return failed("create the clock log");
  ClockLog log(fd, HostClockKind());
  const LogHeader header = {LogHeader::kMagic, log.kind_, 0};
  if (lseek(fd, 0, SEEK_END) == 0 && !WriteWhole(fd, &header, sizeof header)) {
    return failed("write the clock log");
  }
  if (!log.Append()) return failed("write the clock log");
  return log;
}

ClockLog::ClockLog(ClockLog&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), kind_(other.kind_) {}

ClockLog& ClockLog::operator=(ClockLog&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(kind_, other.kind_);
  return *this;
}

ClockLog::~ClockLog() {
  if (fd_ >= 0) close(fd_);
}

bool ClockLog::Append() {
  const ClockSample sample = SampleClocks(kind_);
  return WriteWhole(fd_, &sample, sizeof sample);
}

ClockLogContents ReadClockLog(const std::filesystem::path& run_dir) {
  ClockLogContents contents;
  const Result<RecordedFile> file = OpenRecorded(run_dir / kClockFile, Links::kFollow);
  LogHeader header{};
  if (!file.ok()) return contents;
  const int fd = file.value().fd.get();
  // The size is that of when it was opened: the header may have been written since.
  if (file.value().bytes < sizeof header || !ReadFully(fd, 0, &header, sizeof header) ||
      header.magic != LogHeader::kMagic) {
    contents.damaged = true;
    return contents;
  }
  contents.kind = header.kind;
  const uint64_t samples = (file.value().bytes - sizeof header) / sizeof(ClockSample);
  contents.clocks.resize(std::min<uint64_t>(samples, kMostSamples));
  if (!ReadFully(fd, sizeof header, contents.clocks.data(),
                 contents.clocks.size() * sizeof(ClockSample))) {
    contents.clocks.clear();
  }
  return contents;
}

}  // namespace trainprof::recording
