#include "collectors/machine/schedule.h"

#include <time.h>

#include <algorithm>

namespace trainprof {
namespace {

// Of the newest measurement in the smoothed cost.
constexpr double kNewest = 0.2;

}  // namespace

int64_t ThreadCpuNs() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

void Schedule::Add(double share, int64_t every, Task task) {
  entries_.push_back({share, every, std::move(task)});
}

void Schedule::RunDue(int64_t now_ns, int64_t slowdown, recording::HostEncoder& out) {
  // A tick that comes a little early must not put its tasks off to the next one.
  const int64_t tolerance_ns = period_.count() / 4;
  for (Entry& entry : entries_) {
    if (now_ns + tolerance_ns < entry.due_ns) continue;
    const int64_t begin = ThreadCpuNs();
    entry.task(out);
    const auto cost = static_cast<double>(ThreadCpuNs() - begin);
    // The first time opens files and finds everything new: it says nothing about the next.
    if (entry.runs == 1) entry.cost_ns = cost;
    if (entry.runs > 1) entry.cost_ns += kNewest * (cost - entry.cost_ns);
    ++entry.runs;
    const int64_t wanted = period_.count() * entry.every * slowdown;
    const auto affordable = static_cast<int64_t>(entry.cost_ns / entry.share);
    entry.due_ns = now_ns + std::max(wanted, affordable);
  }
}

void Schedule::RunAll(recording::HostEncoder& out) {
  for (Entry& entry : entries_) entry.task(out);
}

}  // namespace trainprof
