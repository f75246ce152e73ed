#include "trace/base/parallel.h"

#include <malloc.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <utility>

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
  for (size_t i = 0; i < wanted; ++i) {
    if (!StartOne(work)) return;
  }
}

bool Helpers::StartOne(const std::function<void()>& work) {
  const HeldSignals held(kSignalsToHold);
  const std::lock_guard lock(mutex_);
  try {
    threads_.emplace_back(work);
  } catch (const std::system_error&) {
    return false;
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

void Helpers::Join() {
  while (true) {
    std::thread thread;
    {
      const std::lock_guard lock(mutex_);
      if (threads_.empty()) return;
      thread = std::move(threads_.back());
      threads_.pop_back();
    }
    thread.join();
  }
}

namespace {

// Threads that are at work in RunAll, of all families. Who waits there for others is not.
std::atomic<unsigned> g_working{0};

// Counts one more where a core is left.
bool TakeCore() {
  const unsigned cores = UsableCores();
  unsigned working = g_working.load();
  while (working < cores) {
    if (g_working.compare_exchange_weak(working, working + 1)) return true;
  }
  return false;
}

class Family;
thread_local Family* t_family = nullptr;  // that this thread works for

// The jobs of one call.
struct Batch {
  explicit Batch(std::span<const std::function<void()>> of) : jobs(of) {}

  const std::span<const std::function<void()>> jobs;
  const CancelScope* const outer = CancelScope::Current();
  // Under the family's lock.
  size_t next = 0;
  size_t running = 0;
  std::exception_ptr failure;
  Batch* before = nullptr;  // that began before it, of those that go on
};

// A call that no other one is around, and all within it. Its helpers take jobs of the call that began first: these are
// the large ones, and each is worked on by whoever took it until others have nothing else to do.
class Family {
 public:
  Family() {
    ++g_working;
    t_family = this;
  }
  Family(const Family&) = delete;
  Family& operator=(const Family&) = delete;
  ~Family() {
    t_family = nullptr;
    --g_working;
    helpers_.Join();
  }

  // On the calling thread, which works for this family, and its helpers.
  void Run(std::span<const std::function<void()>> jobs) {
    Batch batch(jobs);
    std::unique_lock lock(mutex_);
    batch.before = std::exchange(last_, &batch);
    while (batch.next < jobs.size()) RunNext(batch, lock);
    if (batch.running > 0) {
      --g_working;
      GetHelp();
      is_done_.wait(lock, [&] { return batch.running == 0; });
      ++g_working;
    }
    Batch** link = &last_;
    while (*link != &batch) link = &(*link)->before;
    *link = batch.before;
    if (batch.failure) std::rethrow_exception(batch.failure);
  }

 private:
  void RunNext(Batch& batch, std::unique_lock<std::mutex>& lock) {
    const std::function<void()>& job = batch.jobs[batch.next++];
    ++batch.running;
    GetHelp();
    lock.unlock();
    std::exception_ptr failure;
    try {
      job();
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (!batch.failure) batch.failure = failure;
    if (--batch.running == 0) is_done_.notify_all();
  }

  Batch* FirstWithJobs() const {
    Batch* first = nullptr;
    for (Batch* batch = last_; batch != nullptr; batch = batch->before) {
      if (batch->next < batch->jobs.size()) first = batch;
    }
    return first;
  }

  // For jobs that nobody has taken, as far as cores are left.
  void GetHelp() {
    size_t left = 0;
    for (const Batch* batch = last_; batch != nullptr; batch = batch->before) {
      left += batch->jobs.size() - batch->next;
    }
    for (; left > 0 && !is_without_help_ && TakeCore(); --left) {
      is_without_help_ = !helpers_.StartOne([this] { Help(); });
      if (is_without_help_) --g_working;
    }
  }

  void Help() {
    t_family = this;
    std::unique_lock lock(mutex_);
    while (Batch* const batch = FirstWithJobs()) {
      const CancelScope* const outer = batch->outer;
      const CancelScope scope([outer] { return outer != nullptr && outer->IsCancelled(); });
      RunNext(*batch, lock);
    }
    --g_working;
  }

  std::mutex mutex_;
  std::condition_variable is_done_;  // a batch, but for what others take of it
  Batch* last_ = nullptr;
  bool is_without_help_ = false;  // none could be had
  Helpers helpers_;
};

}  // namespace

void RunAll(std::span<const std::function<void()>> jobs) {
  if (t_family != nullptr) return t_family->Run(jobs);
  Family family;
  family.Run(jobs);
}

}  // namespace trainprof
