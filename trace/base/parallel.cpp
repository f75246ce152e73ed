#include "trace/base/parallel.h"

#include <malloc.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>

#include "trace/base/cancel.h"
#include "trace/base/held_signals.h"

namespace trainprof {

void ShareOneHeap() {
#if defined(M_ARENA_MAX)  // other C libraries have one heap anyway
  mallopt(M_ARENA_MAX, 1);
#endif
#if defined(M_MMAP_THRESHOLD)
  mallopt(M_MMAP_THRESHOLD, 128 * 1024);
#endif
}

// std::thread::hardware_concurrency() may count cores that a container has not.
unsigned UsableCores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof cores, &cores) != 0) return 1;
  return std::max(CPU_COUNT(&cores), 1);
}

void Helpers::Start(size_t wanted, const std::function<void()>& work) {
  const HeldSignals held(kSignalsToHold);
  try {
    threads_.reserve(wanted);
    while (threads_.size() < wanted) threads_.emplace_back(work);
  } catch (const std::system_error&) {
  } catch (const std::bad_alloc&) {
  }
}

void Helpers::Join() {
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
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
  Helpers others;
  if (jobs.size() > 1) others.Start(std::min<size_t>(UsableCores(), jobs.size()) - 1, help);
  work();
  others.Join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace trainprof
