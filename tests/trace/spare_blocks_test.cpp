#include "trace/base/spare_blocks.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "tests/support/sanitized.h"
#include "trace/base/parallel.h"

namespace trainprof {
namespace {

constexpr size_t kMegabyte = size_t{1} << 20;

std::unique_ptr<char[]> Block(size_t bytes) {
  std::unique_ptr<char[]> block(new char[bytes]);
  std::memset(block.get(), 'x', bytes);
  return block;
}

long PageFaults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

long MostKib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

void Keep() {
  ShareOneHeap();
  KeepSpareBlocks();
}

int AFreedBlockIsTakenAgain() {
  Keep();
  Block(8 * kMegabyte);
  const size_t kept = SpareBytes();
  if (kept < 8 * kMegabyte) return 1;
  const long faults = PageFaults();
  const auto again = Block(7 * kMegabyte);
  if (PageFaults() - faults > 16) return 2;  // of 1,792 pages
  return SpareBytes() == 0 ? 0 : 3;
}

int WhatIsTooLargeIsCut() {
  Keep();
  Block(32 * kMegabyte);
  const auto small = Block(4 * kMegabyte);
  return SpareBytes() == 0 ? 0 : 1;
}

// Blocks in turn, each larger than those that were freed: none of these may stay beside it.
int NothingGrowsBeyondWhatWasInUse() {
  Keep();
  size_t most = 0;
  for (size_t megabytes = 100; megabytes < 200; megabytes += 5) {
    most = megabytes;
    const auto block = Block(megabytes * kMegabyte);
  }
  return MostKib() * 1024 < static_cast<long>((most + 40) * kMegabyte) ? 0 : 1;
}

int LittleIsKeptWhenAllIsFree() {
  Keep();
  {
    std::vector<std::unique_ptr<char[]>> blocks;
    for (int i = 0; i < 50; ++i) blocks.push_back(Block(10 * kMegabyte));
  }
  if (SpareBytes() > 64 * kMegabyte) return 1;
  ReturnSpareBlocks();
  return SpareBytes() == 0 ? 0 : 2;
}

// Blocks of all sizes, freed in any order by any thread, hold what their owner wrote.
int BlocksBelongToOneOwner() {
  Keep();
  std::vector<std::thread> threads;
  std::atomic<int> failed{0};
  for (unsigned seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] {
      std::mt19937 random(seed);
      std::vector<std::vector<uint32_t>> columns;
      for (uint32_t i = 0; i < 3000; ++i) {
        const size_t words = size_t{1} << (10 + random() % 9);
        columns.emplace_back(words + random() % words, seed << 24 | i);
        if (columns.size() < 20) continue;
        std::swap(columns[random() % columns.size()], columns.back());
        const std::vector<uint32_t>& column = columns.back();
        if (column.front() != column.back() || column.front() >> 24 != seed) failed = 1;
        if (column[column.size() / 2] != column.front()) failed = 1;
        columns.pop_back();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return failed;
}

// A child that was forked while others asked for blocks could wait for ever.
int AForkedChildMayAsk() {
  Keep();
  std::atomic<bool> done{false};
  std::vector<std::thread> busy;
  for (int i = 0; i < 2; ++i) {
    busy.emplace_back([&] {
      while (!done) Block(kMegabyte / 4);
    });
  }
  int failed = 0;
  for (int i = 0; i < 200 && failed == 0; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      Block(kMegabyte);
      _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    failed = status;
  }
  done = true;
  for (std::thread& thread : busy) thread.join();
  return failed == 0 ? 0 : 1;
}

// Each in a new process, which keeps blocks from its start on.
class SpareBlocksTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (testing::kIsSanitized) GTEST_SKIP() << "sanitizers have an operator new of their own";
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }
};

TEST_F(SpareBlocksTest, AFreedBlockIsTakenAgain) {
  EXPECT_EXIT(_exit(AFreedBlockIsTakenAgain()), ::testing::ExitedWithCode(0), "");
}
TEST_F(SpareBlocksTest, WhatIsTooLargeIsCut) {
  EXPECT_EXIT(_exit(WhatIsTooLargeIsCut()), ::testing::ExitedWithCode(0), "");
}
TEST_F(SpareBlocksTest, NothingGrowsBeyondWhatWasInUse) {
  EXPECT_EXIT(_exit(NothingGrowsBeyondWhatWasInUse()), ::testing::ExitedWithCode(0), "");
}
TEST_F(SpareBlocksTest, LittleIsKeptWhenAllIsFree) {
  EXPECT_EXIT(_exit(LittleIsKeptWhenAllIsFree()), ::testing::ExitedWithCode(0), "");
}
TEST_F(SpareBlocksTest, BlocksBelongToOneOwner) {
  EXPECT_EXIT(_exit(BlocksBelongToOneOwner()), ::testing::ExitedWithCode(0), "");
}
TEST_F(SpareBlocksTest, AForkedChildMayAsk) {
  EXPECT_EXIT(_exit(AForkedChildMayAsk()), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace trainprof
