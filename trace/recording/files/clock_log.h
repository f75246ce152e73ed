// The supervisor's clock samples, clock.tpc: one each ~100 ms, so that ticks of processes that were
// killed early convert exactly too. A plain array of ClockSample behind a 16-byte header; a torn
// tail is ignored by the reader.
#pragma once

#include <filesystem>
#include <vector>

#include "trace/base/result.h"
#include "trace/recording/wire/layout.h"

namespace trainprof::recording {

// The clock that events of this machine are stamped with.
ClockKind HostClockKind();
// One triple now; the best of a few tries. ~0.2 us.
ClockSample SampleClocks(ClockKind kind);

class ClockLog {
 public:
  // Appends to run_dir/clock.tpc, creating it. A failure names the path and the cause.
  static Result<ClockLog> Open(const std::filesystem::path& run_dir);
  ClockLog(ClockLog&& other) noexcept;
  ClockLog& operator=(ClockLog&& other) noexcept;
  ClockLog(const ClockLog&) = delete;
  ClockLog& operator=(const ClockLog&) = delete;
  ~ClockLog();

  // Samples and appends. False when the write failed (disk full): the reader does without.
  bool Append();

 private:
  ClockLog(int fd, ClockKind kind) : fd_(fd), kind_(kind) {}
  int fd_ = -1;
  ClockKind kind_ = ClockKind::kNone;
};

struct ClockLogContents {
  bool damaged = false;  // there is a file, and it is no clock log
  ClockKind kind = ClockKind::kNone;
  std::vector<ClockSample> clocks;
};

// Empty contents when the file is absent or not a clock log.
ClockLogContents ReadClockLog(const std::filesystem::path& run_dir);

}  // namespace trainprof::recording
