#include <gtest/gtest.h>

#include "tests/analysis/rules/findings_text.h"

namespace trainprof {
namespace {

// Two streams, each kernel behind the other's by an event.
std::string TwoStreams(std::string_view device, std::string_view grid, std::string_view wait) {
  return fmt::format(R"(
    {0}
    thread 1
    repeat 5 every 1000
      step 0 1000 step
      call 1 2 cudaLaunchKernel | corr=1
      call 3 4 cudaEventRecord | corr=2
      call 5 6 cudaStreamWaitEvent | corr=3
      call 7 8 cudaLaunchKernel | corr=4
      call 9 1000 cudaDeviceSynchronize
    end
    stream 0 7
    repeat 5 every 1000
      kernel 10 500 branch_a | corr=1 {1}
    end
    stream 0 9
    repeat 5 every 1000
      {2}
      kernel 502 1000 branch_b | corr=4 {1}
    end)",
                     device, grid, wait);
}

constexpr char kWait[] = "stream-wait 5 500 | corr=3 record=2 stream=7 device=0";

TEST(SerialisedStreams, SmallKernelsThatWaitForEachOther) {
  EXPECT_EQ(OutcomeOf("serialised-streams", TwoStreams("device 0 108", "grid=40", kWait)),
            "warning count=5 cost=0.490 gain=0.000..0.496 where=:0  x5");
}

TEST(SerialisedStreams, KernelsThatFillTheDeviceWouldTakeTurnsAnyway) {
  EXPECT_EQ(OutcomeOf("serialised-streams", TwoStreams("device 0 108", "grid=80", kWait)),
            "passed");
}

// 160 blocks of 4 warps are more than the device has multiprocessors, but each of those holds 8 of them: both
// kernels need 15 % of the device.
TEST(SerialisedStreams, KernelsThatFitByTheirOccupancy) {
  EXPECT_EQ(
      OutcomeOf("serialised-streams", TwoStreams("device 0 132 9", "grid=160 occupancy=50", kWait)),
      "warning count=5 cost=0.490 gain=0.000..0.496 where=:0  x5");
  EXPECT_EQ(
      OutcomeOf("serialised-streams", TwoStreams("device 0 132 9", "grid=600 occupancy=50", kWait)),
      "passed");
}

// All of a stream behind the wait begins earlier, not its first kernel alone.
TEST(SerialisedStreams, WhatFollowsTheWaitMovesWithIt) {
  EXPECT_EQ(OutcomeOf("serialised-streams", R"(
    device 0 108
    thread 1
    repeat 5 every 1000
      step 0 1000 step
      call 1 2 cudaLaunchKernel | corr=1
      call 3 4 cudaEventRecord | corr=2
      call 5 6 cudaStreamWaitEvent | corr=3
      call 7 8 cudaLaunchKernel | corr=4
      call 8 9 cudaLaunchKernel | corr=5
      call 9 1000 cudaDeviceSynchronize
    end
    stream 0 7
    repeat 5 every 1000
      kernel 10 500 branch_a | corr=1 grid=40
    end
    stream 0 9
    repeat 5 every 1000
      stream-wait 5 500 | corr=3 record=2 stream=7 device=0
      kernel 502 520 branch_b | corr=4 grid=40
      kernel 522 1000 branch_b | corr=5 grid=40
    end)"),
            "warning count=5 cost=0.490 gain=0.000..0.496 where=:0  x5");
}

// A short kernel of the default stream between those of two others.
std::string AroundTheNullStream(std::string_view order) {
  return fmt::format(R"(
    device 0 108
    thread 1
    repeat 5 every 1000
      step 0 1000 step
      call 1 2 cudaLaunchKernel | corr=1
      call 3 4 cudaLaunchKernel | corr=2
      call 5 6 cudaLaunchKernel | corr=3
      call 9 1000 cudaDeviceSynchronize
    end
    stream 0 1 null
    repeat 5 every 1000
      kernel 502 507 norm | corr=2 grid=1
    end
    stream 0 7 {0}
    repeat 5 every 1000
      kernel 10 500 branch_a | corr=1 grid=40
    end
    stream 0 9 {0}
    repeat 5 every 1000
      kernel 509 1000 branch_b | corr=3 grid=40
    end)",
                     order);
}

TEST(SerialisedStreams, TheNullStreamPutsBlockingStreamsInARow) {
  EXPECT_EQ(OutcomeOf("serialised-streams", AroundTheNullStream("blocking")),
            "warning count=15 cost=0.495 gain=0.000..0.505 where=:0  x15");
  EXPECT_EQ(OutcomeOf("serialised-streams", AroundTheNullStream("non-blocking")), "passed");
}

TEST(SerialisedStreams, WithoutSizesItIsNotChecked) {
  EXPECT_EQ(OutcomeOf("serialised-streams", TwoStreams("device 0 108", "", kWait)),
            "skipped: the trace does not say how large kernels and devices are");
  EXPECT_EQ(OutcomeOf("serialised-streams", TwoStreams("device 0 0", "grid=40", kWait)),
            "skipped: the trace does not say how large kernels and devices are");
}

TEST(SerialisedStreams, WithoutWhatStreamsWaitedForItIsNotChecked) {
  EXPECT_EQ(OutcomeOf("serialised-streams", TwoStreams("device 0 108", "grid=40", "")),
            "skipped: the trace does not say what streams waited for");
}

}  // namespace
}  // namespace trainprof
