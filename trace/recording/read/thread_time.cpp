#include "trace/recording/read/thread_time.h"

#include <algorithm>

namespace trainprof::recording {

void ThreadTime::Take(TrackId thread, TraceTime at, std::span<const uint64_t> words) {
  constexpr uint64_t kMostNs = uint64_t{1} << 62;  // a file may say anything
  const Reading now = {at, static_cast<int64_t>(std::min(words[0], kMostNs)),
                       static_cast<uint32_t>(words[1]), static_cast<uint32_t>(words[1] >> 32)};
  if (last_ && last_->at < at && last_->cpu_ns <= now.cpu_ns) {
    TraceBuilder& b = builder_;
    const Event event = {
        .begin = at, .end = at, .name = b.Intern(CpuTimeTable::kTitle), .track = thread};
    b.AddRow(b.trace().cpu_times, event, kEmptyString, (at - last_->at).ns,
             now.cpu_ns - last_->cpu_ns, int64_t{now.waits - last_->waits},
             int64_t{now.interruptions - last_->interruptions});
  }
  last_ = now;
}

}  // namespace trainprof::recording
