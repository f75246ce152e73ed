// The file that samples are appended to: a frame a write, so that a kill tears at most the last
// one, and two threads need no lock between them. It never outgrows its bound: each time half of
// what is left is used, samples are to come half as often.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <span>

#include "trace/base/result.h"
#include "trace/recording/files/host_format.h"

namespace trainprof {

class SampleLog {
 public:
  // Makes run_dir/<prefix><pid>-<realtime ns>.tph. `header` needs its times, ids and names only.
  static Result<SampleLog> Create(const std::filesystem::path& run_dir,
                                  recording::HostHeader header, uint64_t max_bytes,
                                  const char* prefix = recording::kHostPrefix);
  SampleLog(SampleLog&& other) noexcept;
  SampleLog& operator=(SampleLog&&) = delete;
  ~SampleLog();

  // A frame that does not fit, or that the disk does not take, is left out.
  void Append(std::span<const char> frame);

  // By what periods are to be stretched now: 1, 2, 4, ...
  int64_t Slowdown() const;
  // Whether the disk refused something.
  bool failed() const { return failed_; }
  const std::filesystem::path& path() const { return path_; }
  int fd() const { return fd_; }
  void Close();

 private:
  SampleLog(std::filesystem::path path, int fd, uint64_t max_bytes)
      : path_(std::move(path)), fd_(fd), max_bytes_(max_bytes) {}

  std::filesystem::path path_;
  int fd_;
  uint64_t max_bytes_;
  std::atomic<uint64_t> used_bytes_{0};
  std::atomic<bool> failed_{false};
};

}  // namespace trainprof
