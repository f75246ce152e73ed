#include "trace/base/parallel.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <fstream>
#include <future>
#include <new>
#include <random>
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

// A job's jobs, and theirs: all are done when it returns, whoever did them, and what one throws ends at the top.
TEST(RunAll, JobsMayHaveJobsOfTheirOwn) {
  struct Tree {
    std::mt19937_64 random;
    std::atomic<int> leaves = 0;
    std::atomic<int> throwing = 0;  // the leaf of that number; 0: none

    void Run(int depth, uint64_t seed) {
      if (depth == 0) {
        if (++leaves == throwing) throw std::runtime_error("leaf");
        return;
      }
      std::vector<std::function<void()>> jobs;
      for (uint64_t i = 0; i < 1 + seed % 4; ++i) {
        jobs.emplace_back([this, depth, seed, i] { Run(depth - 1, seed / 5 + i); });
      }
      const int before = leaves;
      RunAll(jobs);
      EXPECT_GE(leaves - before, static_cast<int>(jobs.size()));
    }
    static int Count(int depth, uint64_t seed) {
      if (depth == 0) return 1;
      int count = 0;
      for (uint64_t i = 0; i < 1 + seed % 4; ++i) count += Count(depth - 1, seed / 5 + i);
      return count;
    }
  };
  std::mt19937_64 random(3);
  for (int round = 0; round < testing::Rounds(400); ++round) {
    const uint64_t seed = random() % 100'000;
    const int count = Tree::Count(4, seed);
    Tree whole;
    whole.Run(4, seed);
    EXPECT_EQ(whole.leaves, count);
    Tree broken;
    broken.throwing = static_cast<int>(1 + random() % static_cast<uint64_t>(count));
    EXPECT_THROW(broken.Run(4, seed), std::runtime_error);
    EXPECT_EQ(broken.leaves, count) << "the others are done all the same";
  }
}

// Two jobs of a job meet, once the other thread has done all else that there was: it comes to help.
TEST(RunAll, ACoreThatIsDoneHelpsWithWhatIsLeft) {
  if (UsableCores() < 2) GTEST_SKIP() << "there is no other core";
  for (int round = 0; round < 100; ++round) {
    std::atomic<bool> first_is_done = false;
    std::atomic<int> at_once = 0;
    const auto wait_for = [](const auto& holds) {
      const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (!holds() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
      return holds();
    };
    const auto meet = [&] {
      ++at_once;
      EXPECT_TRUE(wait_for([&] { return at_once == 2; }));
    };
    const std::function<void()> inner[] = {meet, meet};
    const std::function<void()> outer[] = {
        [&] { first_is_done = true; },
        [&] {
          EXPECT_TRUE(wait_for([&] { return first_is_done.load(); }));
          RunAll(inner);
        },
    };
    RunAll(outer);
    ASSERT_EQ(at_once, 2);
  }
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
