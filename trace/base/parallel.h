// A few independent jobs on several cores.
#pragma once

#include <functional>
#include <span>
#include <thread>
#include <vector>

namespace trainprof {

// How many threads make long work faster: the cores that this process may use, at least 1.
unsigned UsableCores();

// Has the threads share one heap, so that what one of them freed the next one takes; before the
// first thread starts. glibc gives each its own: ten million events opened in the viewer then took
// 1.1 to 1.7 GB instead of 0.6, and no less time.
void ShareOneHeap();

// Threads that help with a piece of work. They take no signals: those are for the program's own
// threads, some of which wait for one.
class Helpers {
 public:
  Helpers() = default;
  Helpers(const Helpers&) = delete;
  Helpers& operator=(const Helpers&) = delete;
  ~Helpers() { Join(); }

  // So many, or fewer, or none: as the system and memory have. That is no error.
  void Start(size_t wanted, const std::function<void()>& work);
  bool empty() const { return threads_.empty(); }
  void Join();

 private:
  std::vector<std::thread> threads_;
};

// Calls each job once, on this thread and on others, and returns when all are done. The first
// exception of a job is thrown again here. Where no thread can be started all jobs run here. What
// cancels this thread's work (cancel.h) cancels the others', too.
void RunAll(std::span<const std::function<void()>> jobs);

}  // namespace trainprof
