#include "trace/base/parallel.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <fstream>
#include <future>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/support/sanitized.h"

namespace trainprof {
namespace {

TEST(RunAll, CallsEachJobOnceAndReturnsWhenAllAreDone) {
  std::array<std::atomic<int>, 50> calls{};
  std::vector<std::function<void()>> jobs;
  for (auto& count : calls) jobs.emplace_back([&count] { ++count; });
  RunAll(jobs);
  for (const auto& count : calls) EXPECT_EQ(count, 1);
  RunAll({});
}

TEST(RunAll, ThrowsAgainWhatAJobThrewWhenTheOthersAreDone) {
  std::atomic<int> done = 0;
  const std::function<void()> jobs[] = {
      [&] { ++done; }, [] { throw std::runtime_error("no room"); }, [&] { ++done; }};
  EXPECT_THROW(RunAll(jobs), std::runtime_error);
  EXPECT_EQ(done, 2);
}

TEST(RunParts, CoverAllOnceInPartsThatAreWorthIt) {
  for (const size_t count : {size_t{0}, size_t{1}, size_t{99}, size_t{100}, size_t{1001}}) {
    std::vector<std::atomic<int>> hits(count);
    std::atomic<size_t> parts = 0;
    RunParts(count, 50, [&](size_t first, size_t last) {
      ++parts;
      EXPECT_TRUE(count < 100 || last - first >= 50) << count;
      for (size_t i = first; i < last; ++i) ++hits[i];
    });
    for (const auto& hit : hits) EXPECT_EQ(hit, 1);
    EXPECT_EQ(parts, count < 100 ? 1 : std::min<size_t>(count / 50, UsableCores())) << count;
  }
}

// All that the process can still have.
void TakeAllMemory() {
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t now = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
  const rlimit limit = {now, now};
  setrlimit(RLIMIT_AS, &limit);
  for (size_t bytes = size_t{1} << 20; bytes >= 16; bytes /= 2) {
    while (operator new(bytes, std::nothrow) != nullptr) {
    }
  }
}

TEST(RunAll, WithoutMemoryForThreadsItsCallerDoesAll) {
  if (testing::kIsSanitized) GTEST_SKIP() << "sanitizers reserve terabytes, which no limit may cut";
  std::atomic<int> done = 0;
  const std::vector<std::function<void()>> jobs(4, [&] { ++done; });
  const pid_t child = fork();
  if (child == 0) {
    TakeAllMemory();
    try {
      RunAll(jobs);
    } catch (...) {
      _exit(2);
    }
    _exit(done == 4 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

// Exits with 0 if what threads freed was taken by others.
[[noreturn]] void ThreadsTakeInTurn() {
  ShareOneHeap();
  const auto most_kib = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  constexpr size_t kBlocks = 1000;
  constexpr size_t kBlockBytes = 64 << 10;  // below what glibc maps apart
  const long before = most_kib();
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) {
    std::promise<void> has_freed;
    threads.emplace_back([&] {
      std::vector<std::vector<char>> blocks(kBlocks);
      for (std::vector<char>& block : blocks) block.assign(kBlockBytes, 'x');
      blocks.erase(blocks.begin(), blocks.end() - 1);  // what is below the last stays in the heap
      has_freed.set_value();
      pause();  // its heap is not given to others, as those of threads that ended are
    });
    has_freed.get_future().wait();
  }
  _exit(most_kib() - before < 2 * static_cast<long>(kBlocks * kBlockBytes >> 10) ? 0 : 1);
}

TEST(ShareOneHeap, WhatAThreadFreedTheNextOneTakes) {
  if (testing::kIsSanitized) GTEST_SKIP() << "sanitizers have a heap of their own";
  // In a new process: the heaps of threads that there were before stay.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(ThreadsTakeInTurn(), ::testing::ExitedWithCode(0), "");
}

TEST(UsableCores, AreAtLeastOne) { EXPECT_GE(UsableCores(), 1u); }

}  // namespace
}  // namespace trainprof
