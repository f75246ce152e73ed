#include "trace/base/parallel.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "trace/base/cancel.h"

namespace trainprof {

// std::thread::hardware_concurrency() may count cores that a container has not.
unsigned UsableCores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof cores, &cores) != 0) return 1;
  return std::max(CPU_COUNT(&cores), 1);
}

void RunAll(std::span<const std::function<void()>> jobs) {
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto work = [&] {
    for (size_t job = next++; job < jobs.size(); job = next++) {
      try {
        jobs[job]();
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
      }
    }
  };
  const CancelScope* const outer = CancelScope::Current();
  const auto help = [&] {
    const CancelScope scope([outer] { return outer != nullptr && outer->IsCancelled(); });
    work();
  };
  std::vector<std::thread> others;
  const size_t wanted = std::min<size_t>(UsableCores(), jobs.size());
  try {
    const WithoutSignals without_signals;
    while (others.size() + 1 < wanted) others.emplace_back(help);
  } catch (const std::system_error&) {
    // No more threads here: those that there are do it all.
  }
  work();
  for (std::thread& other : others) other.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace trainprof
