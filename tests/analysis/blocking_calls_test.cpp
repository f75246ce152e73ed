// Which calls of copies waited for the device.
#include <gtest/gtest.h>

#include "analysis/host/timeline.h"
#include "tests/support/trace_script.h"

namespace trainprof {
namespace {

// Of a call of 10 us from 100 on, whose copy ends `copy_end` within it or behind it.
bool Blocks(const std::string& call, const std::string& copy, int copy_end, int bytes = 64) {
  const Trace trace = TraceFromScript(
      "thread 1\n call 100 110 " + call + " | corr=1\nstream 0 7\n copy 102 " +
      std::to_string(copy_end) + " " + copy + " | corr=1 bytes=" + std::to_string(bytes) + "\n");
  return FindBlockingCalls(trace).at(0);
}

constexpr char kToDevice[] = "Memcpy HtoD (Pageable -> Device)";
constexpr char kPinnedToHost[] = "Memcpy DtoH (Device -> Pinned)";

TEST(BlockingCalls, ACopyThatWasDoneAtOnceWasNotWaitedForWhereItNeedNotBe) {
  EXPECT_FALSE(Blocks("cudaMemcpyAsync", kToDevice, 108));
  EXPECT_FALSE(Blocks("cuMemcpyHtoDAsync_v2", kToDevice, 108));
  EXPECT_FALSE(Blocks("cudaMemcpyAsync", kPinnedToHost, 108));
  EXPECT_FALSE(Blocks("cudaMemcpyAsync", kToDevice, 150)) << "nor one that went on behind its call";
}

TEST(BlockingCalls, OtherwiseACallThatEndsNoEarlierThanItsCopyWaitedForIt) {
  EXPECT_TRUE(Blocks("cudaMemcpy", kToDevice, 108)) << "the manual says so";
  EXPECT_TRUE(Blocks("cudaMemcpyAsync", "CopyHostToDevice", 108)) << "of what memory?";
  EXPECT_TRUE(Blocks("cudaMemcpyAsync", "Memcpy DtoH (Device -> Pageable)", 150));
  EXPECT_TRUE(Blocks("cudaMemcpyAsync", kToDevice, 150, 65537));
  const Trace late = TraceFromScript(R"(
      thread 1
      call 100 200 cudaMemcpyAsync | corr=1
      stream 0 7
      copy 180 190 Memcpy HtoD (Pinned -> Device) | corr=1 bytes=64)");
  EXPECT_TRUE(FindBlockingCalls(late).at(0)) << "it seems that this call did wait";
}

}  // namespace
}  // namespace trainprof
