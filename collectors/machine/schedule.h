// When each source is asked: at the wanted rate, or less often where its answers cost more of a
// core than it may take.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include "trace/recording/files/host_encoder.h"

namespace trainprof {

// CPU time of the calling thread.
int64_t ThreadCpuNs();

class Schedule {
 public:
  using Task = std::function<void(recording::HostEncoder&)>;

  explicit Schedule(std::chrono::nanoseconds period) : period_(period) {}

  // `share` of one core is the most that the task may take on average; `every` periods is how often
  // it is wanted.
  void Add(double share, int64_t every, Task task);

  // Runs the tasks that are due. `slowdown` stretches all periods.
  void RunDue(int64_t now_ns, int64_t slowdown, recording::HostEncoder& out);
  // Runs them all, due or not: the last sample of a run.
  void RunAll(recording::HostEncoder& out);

 private:
  struct Entry {
    double share;
    int64_t every;
    Task task;
    int64_t due_ns = 0;
    double cost_ns = 0;  // of CPU time, smoothed
    int64_t runs = 0;
  };
  std::chrono::nanoseconds period_;
  std::vector<Entry> entries_;
};

}  // namespace trainprof
