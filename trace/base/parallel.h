// A few independent jobs on several cores.
#pragma once

#include <algorithm>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace trainprof {

// How many threads make long work faster: the cores that this process may use, at least 1.
unsigned UsableCores();

// Has the threads share one heap, so that what one of them freed the next one takes; before the
// first thread starts. glibc gives each its own: ten million events opened in the viewer then took
// 1.1 to 1.7 GB instead of 0.6, and no less time. And has large blocks go back to the system when they are freed:
// glibc's bound for that rises to the largest one freed, and what is freed below it stays. A report of 1.9 million
// events: 112 MB at most instead of 120, 53 to 44 in a folder of ranks.
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
  // One more; false: there is none to be had. May be called on several threads.
  bool StartOne(const std::function<void()>& work);
  bool empty() const { return threads_.empty(); }  // while nobody starts any
  // Until all have ended, those as well that others of them start meanwhile.
  void Join();

 private:
  std::mutex mutex_;  // of threads_
  std::vector<std::thread> threads_;
};

// Calls each job once, on this thread and on others, and returns when all are done. A job may do the same with jobs of
// its own, which others help with when they have none of the outer call left to take. All calls share the cores: a
// thread is started where one is left, be it in the middle of the work. The first exception of a job is thrown again here. Where no thread can be
// started all jobs run here. What cancels this thread's work (cancel.h) cancels the others', too.
void RunAll(std::span<const std::function<void()>> jobs);

// Calls `work(first, last)` for parts of [0, count) that are all of it together, on several cores, and with at least
// `least` in each: on this thread alone where there are fewer than twice as many. As RunAll.
template <class Work>
void RunParts(size_t count, size_t least, const Work& work) {
  const size_t parts = std::clamp<size_t>(count / std::max<size_t>(1, least), 1, UsableCores());
  if (parts == 1) return work(size_t{0}, count);
  std::vector<std::function<void()>> jobs;
  for (size_t part = 0; part < parts; ++part) {
    jobs.emplace_back([&work, first = count * part / parts, last = count * (part + 1) / parts] {
      work(first, last);
    });
  }
  RunAll(jobs);
}

}  // namespace trainprof
