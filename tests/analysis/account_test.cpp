// How time is accounted: small traces in, the account out as text.
#include "analysis/account/account.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/random_trace.h"
#include "tests/support/trace_script.h"

namespace trainprof {
namespace {

// "compute 50, idle_unknown 10" in us, classes with time only.
std::string DeviceText(const char* script) {
  const Trace trace = TraceFromScript(script);
  const Steps steps = FindSteps(trace);
  std::string text;
  for (const DeviceAccount& account : AccountDevices(trace, steps)) {
    Duration sum;
    for (size_t i = 0; i < kDeviceClasses; ++i) {
      const auto c = static_cast<DeviceClass>(i);
      sum += account.Of(c);
      if (account.Of(c).ns == 0) continue;
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", Name(c), account.Of(c).ns / 1000);
    }
    EXPECT_EQ(sum, steps.device_window.Total());
  }
  return text;
}

std::string HostText(const char* script) {
  const Trace trace = TraceFromScript(script);
  const Steps steps = FindSteps(trace);
  const HostAccount account = AccountHost(trace, steps);
  std::string text;
  Duration sum;
  for (size_t i = 0; i < kHostClasses; ++i) {
    const auto c = static_cast<HostClass>(i);
    sum += account.Of(c);
    if (account.Of(c).ns == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", Name(c), account.Of(c).ns / 1000);
  }
  EXPECT_EQ(sum, steps.window.Total());
  return text;
}

TEST(DeviceAccount, OverlapsGoToComputeThenCommunicationThenCopy) {
  EXPECT_EQ(DeviceText(R"(
    thread 1
    step 0 100 step
    stream 0 7
    kernel 0 50 gemm
    stream 0 8
    kernel 40 80 ncclDevKernel_AllReduce_Sum_f32
    stream 0 9
    copy 70 100 Memcpy HtoD (Pinned -> Device))"),
            "compute 50, exposed_communication 30, exposed_copy 20");
}

TEST(DeviceAccount, LoaderWaitBeforeALateLaunchIsInputWait) {
  EXPECT_EQ(DeviceText(R"(
    thread 1
    step 0 1000 step
    annotation 100 700 enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
    op 150 690 aten::stack
    call 720 730 cudaLaunchKernel | corr=1
    stream 0 7
    kernel 0 100 gemm
    kernel 735 1000 gemm | corr=1)"),
            "compute 365, idle_input_wait 600, idle_launch_bound 35");
}

TEST(DeviceAccount, IdleAfterASyncIsItsDrainButNotItsWait) {
  EXPECT_EQ(DeviceText(R"(
    thread 1
    step 0 1000 step
    call 10 405 cudaMemcpyAsync | corr=1
    call 460 470 cudaLaunchKernel | corr=2
    stream 0 7
    kernel 0 390 gemm
    copy 390 400 Memcpy DtoH (Device -> Pageable) | corr=1 bytes=4
    kernel 475 1000 gemm | corr=2)"),
            "compute 915, exposed_copy 10, idle_sync_drain 75");
}

// A call that begins with a range and lasts longer is around it. (It hid what the range says.)
TEST(DeviceAccount, OfARangeAndACallThatBeginTogetherTheLongerIsOutside) {
  EXPECT_EQ(DeviceText(R"(
    thread 1
    step 0 10000 step
    annotation 3635 3640 data_wait
    call 3635 4636 cudaStreamSynchronize
    call 5666 5667 cudaLaunchKernel | corr=1
    stream 0 7
    kernel 5685 5690 gemm | corr=1)"),
            "compute 5, idle_input_wait 5, idle_launch_bound 1015, idle_unknown 4665");
}

constexpr char kGraphThatWaits[] = R"(
    thread 1
    step 0 1000 step
    call 10 20 cudaGraphLaunch | corr=1
    stream 0 7
    kernel 0 100 gemm
    kernel 110 200 node_a | corr=1
    kernel 900 1000 node_b | corr=1)";

TEST(DeviceAccount, QueuedWorkThatWaitsLongIsUnrecorded) {
  EXPECT_EQ(DeviceText(kGraphThatWaits), "compute 290, idle_dependency 10, idle_unrecorded 700");
}

// CUPTI tells of all nodes where it is asked to.
TEST(DeviceAccount, OurOwnRecordingsHaveTheNodesOfAGraph) {
  const std::string script = std::string("recording\n") + kGraphThatWaits;
  const auto unrecorded = [&](const char* graphs) {
    Trace trace = TraceFromScript(script);
    trace.environment.emplace_back("cupti.graphs", graphs);
    return AccountDevices(trace, FindSteps(trace)).at(0).Of(DeviceClass::kIdleUnrecorded);
  };
  EXPECT_EQ(unrecorded("graph"), Microseconds(700));
  EXPECT_EQ(unrecorded("node"), Duration{});
}

// Its stream waits for it; the device does nothing.
TEST(DeviceAccount, AHostFunctionIsNoWorkOfTheDevice) {
  const std::string without = DeviceText(R"(
    thread 1
    step 0 1000 step
    call 10 20 cudaLaunchHostFunc | corr=1
    call 20 30 cudaLaunchKernel | corr=2
    stream 0 7
    kernel 0 100 gemm
    kernel 900 1000 gemm | corr=2)");
  const std::string with = DeviceText(R"(
    thread 1
    step 0 1000 step
    call 10 20 cudaLaunchHostFunc | corr=1
    call 20 30 cudaLaunchKernel | corr=2
    stream 0 7
    kernel 0 100 gemm
    host-function 100 890 Host Function | corr=1
    kernel 900 1000 gemm | corr=2)");
  EXPECT_TRUE(without.starts_with("compute 200, idle")) << without;
  EXPECT_EQ(with, "compute 200, idle_dependency 10, idle_host_function 790");
}

TEST(DeviceAccount, WorkWithoutALaunchLeavesItsGapUnknown) {
  EXPECT_EQ(DeviceText(R"(
    thread 1
    step 0 100 step
    stream 0 7
    kernel 0 40 gemm
    kernel 60 100 gemm)"),
            "compute 80, idle_unknown 20");
}

TEST(DeviceAccount, AllocationInTheGapIsAllocation) {
  EXPECT_EQ(DeviceText(R"(
    thread 1
    step 0 2000 step
    call 100 1500 cudaMalloc
    call 1510 1520 cudaLaunchKernel | corr=1
    stream 0 7
    kernel 0 100 gemm
    kernel 1525 2000 gemm | corr=1)"),
            "compute 575, idle_allocation 1400, idle_launch_bound 25");
}

TEST(DeviceAccount, LongSetUpCallIsNotAHostThatIssuesSlowly) {
  EXPECT_EQ(DeviceText(R"(
    thread 1
    step 0 9000 step
    call 100 8000 cudaDeviceGetStreamPriorityRange
    call 8010 8020 cudaLaunchKernel | corr=1
    stream 0 7
    kernel 0 100 gemm
    kernel 8025 9000 gemm | corr=1)"),
            "compute 1075, idle_launch_bound 25, idle_unknown 7900");
}

// Nothing names what the host did for 6 ms; what it used of the CPU tells of what kind it was.
TEST(DeviceAccount, LooksAtTheCpuTellWhatASilentHostDid) {
  const auto with = [](const std::string& look) {
    const std::string script = R"(
    thread 1
    step 0 8000 step
    call 7010 7020 cudaLaunchKernel | corr=1
    cpu 0 8000 )" + look + R"(
    stream 0 7
    kernel 0 1000 gemm
    kernel 7025 8000 gemm | corr=1)";
    return DeviceText(script.c_str());
  };
  constexpr const char* kAround = "compute 1975, idle_launch_bound 15, ";
  EXPECT_EQ(with("| used=7990"), std::string(kAround) + "idle_host_work 6010");
  EXPECT_EQ(with("| used=2000 waits=3"), std::string(kAround) + "idle_unknown 6010");
  EXPECT_EQ(with("| used=7000 waits=3"), std::string(kAround) + "idle_host_work 6010");
  EXPECT_EQ(with("| used=2000 interruptions=2"), std::string(kAround) + "idle_preempted 6010");
  EXPECT_EQ(with("| used=6000 interruptions=2"), std::string(kAround) + "idle_host_work 6010");
  EXPECT_EQ(with("| used=2000 waits=1 interruptions=2"),
            std::string(kAround) + "idle_unknown 6010");
}

// The host was silent for 2.8 ms, of which the device worked for 1.9: who issues too slowly is not silent for so long.
TEST(DeviceAccount, ASilenceThatBeganBeforeTheGapCountsAsAWhole) {
  const auto with = [](const std::string& look) {
    const std::string script = R"(
    thread 1
    step 0 4000 step
    call 10 20 cudaLaunchKernel | corr=1
    cpu 0 4000 )" + look + R"(
    call 2820 2830 cudaLaunchKernel | corr=2
    stream 0 7
    kernel 25 1925 gemm | corr=1
    kernel 2835 4000 gemm | corr=2)";
    return DeviceText(script.c_str());
  };
  constexpr const char* kAround = "compute 3065, idle_launch_bound 40, ";
  EXPECT_EQ(with("| used=3990"), std::string(kAround) + "idle_host_work 895");
  EXPECT_EQ(with("| used=100 waits=1"), std::string(kAround) + "idle_unknown 895");
}

// The silence of 6 ms lies over two looks, which tell of it together.
TEST(DeviceAccount, LooksTellTogetherOfWhatLiesOverThem) {
  const auto with = [](const std::string& first, const std::string& second) {
    const std::string script = R"(
    thread 1
    step 0 8000 step
    call 7010 7020 cudaLaunchKernel | corr=1
    cpu 0 5000 )" + first + R"(
    cpu 5000 8000 )" + second + R"(
    stream 0 7
    kernel 0 1000 gemm
    kernel 7025 8000 gemm | corr=1)";
    return DeviceText(script.c_str());
  };
  constexpr const char* kAround = "compute 1975, idle_launch_bound 15, ";
  EXPECT_EQ(with("| used=4900 waits=1", "| used=2990"),
            std::string(kAround) + "idle_host_work 6010");
  EXPECT_EQ(with("| used=900 waits=1", "| used=2990"), std::string(kAround) + "idle_unknown 6010");
  // The system counts at ticks: more than all of the CPU in one look was had in the look before.
  EXPECT_EQ(with("| used=0 waits=1", "| used=8000"), std::string(kAround) + "idle_host_work 6010");
  EXPECT_EQ(with("| used=0 waits=1", "| used=3000"), std::string(kAround) + "idle_unknown 6010");
}

// Nor is what it counts at a tick, or as it takes the processor away, all of that look's time: the thread had none of
// the 4 ms in which somebody else had it.
TEST(DeviceAccount, WhatWasUsedAndNotCountedYetIsCountedLater) {
  const auto with = [](const std::string& before, const std::string& look) {
    const std::string script = R"(
    thread 1
    step 0 8000 step
    cpu 0 1900 )" + before + R"(
    cpu 1900 3800 )" + before + R"(
    cpu 3800 8000 )" + look + R"(
    call 7810 7820 cudaLaunchKernel | corr=1
    stream 0 7
    kernel 0 3900 gemm
    kernel 7825 8000 gemm | corr=1)";
    return DeviceText(script.c_str());
  };
  constexpr const char* kAround = "compute 4075, idle_launch_bound 15, ";
  EXPECT_EQ(with("| used=0", "| used=4000 interruptions=1"),
            std::string(kAround) + "idle_preempted 3910");
  EXPECT_EQ(with("| used=1900", "| used=4000 interruptions=1"),
            std::string(kAround) + "idle_host_work 3910");
}

// What of the CPU was not used is as long as the wait for the device: there was no other one.
TEST(DeviceAccount, ARecordedWaitIsNoneOfTheSilenceBehindIt) {
  const auto with = [](const std::string& look) {
    const std::string script = R"(
    thread 1
    step 0 8000 step
    call 10 20 cudaLaunchKernel | corr=2
    call 30 3005 cudaStreamSynchronize | corr=3
    call 7010 7020 cudaLaunchKernel | corr=1
    cpu 0 8000 )" + look + R"(
    stream 0 7
    kernel 25 3000 gemm | corr=2
    sync 30 3005 Stream Sync | corr=3
    kernel 7025 8000 gemm | corr=1)";
    return DeviceText(script.c_str());
  };
  constexpr const char* kRest = "compute 3950, idle_sync_drain 5, idle_launch_bound 40, ";
  EXPECT_EQ(with("| used=5000 waits=1"), std::string(kRest) + "idle_host_work 4005");
  EXPECT_EQ(with("| used=4000 waits=2"), std::string(kRest) + "idle_unknown 4005");
  EXPECT_EQ(with("| used=3000 waits=2"), std::string(kRest) + "idle_unknown 4005");
  // It gave the CPU up once, for longer than it was silent: in that wait. For the rest somebody else had it.
  EXPECT_EQ(with("| used=2000 waits=1 interruptions=1"),
            std::string(kRest) + "idle_preempted 4005");
  EXPECT_EQ(with("| used=2000 waits=2 interruptions=1"), std::string(kRest) + "idle_unknown 4005");
  EXPECT_EQ(with("| used=3000 waits=1 interruptions=1"), std::string(kRest) + "idle_unknown 4005")
      << "it may have waited in silence, and not given the CPU up in the sync";
}

// A logger's copies cut the gap into pieces; the thread's looks tell of all of them together: of 8 ms it used 5,
// so that most of 7 silent ones were work, whichever of them the rest lies in.
TEST(DeviceAccount, ASilenceInPiecesIsOneSilence) {
  EXPECT_EQ(DeviceText(R"(
    thread 1
    step 0 8000 step
    call 7510 7520 cudaLaunchKernel | corr=1
    cpu 0 8000 | used=5000 waits=3
    thread 2
    call 3000 3003 cudaMemcpyAsync | corr=2
    call 5500 5503 cudaMemcpyAsync | corr=3
    stream 0 7
    kernel 0 1000 gemm
    kernel 7525 8000 gemm | corr=1
    stream 0 9
    copy 3005 3010 Memcpy DtoH (Device -> Pinned) | corr=2 bytes=4
    copy 5505 5510 Memcpy DtoH (Device -> Pinned) | corr=3 bytes=4)"),
            "compute 1475, exposed_copy 10, idle_launch_bound 15, idle_host_work 6500");
}

TEST(DeviceAccount, HostThatPausesLongIsNotIssuingSlowly) {
  EXPECT_EQ(DeviceText(R"(
    thread 1
    step 0 9000 step
    op 100 8000 aten::stack
    call 8010 8020 cudaLaunchKernel | corr=1
    stream 0 7
    kernel 0 100 gemm
    kernel 8025 9000 gemm | corr=1)"),
            "compute 1075, idle_launch_bound 25, idle_host_work 7900");
}

TEST(DeviceAccount, GapOfAnotherThreadsLaunchAsksTheSteppingThread) {
  EXPECT_EQ(DeviceText(R"(
    thread 1
    step 0 1000 step
    annotation 100 800 data_wait
    thread 2
    call 850 860 cudaLaunchKernel | corr=1
    stream 0 7
    kernel 0 100 gemm
    kernel 865 1000 gemm | corr=1)"),
            "compute 235, idle_input_wait 700, idle_launch_bound 65");
}

TEST(DeviceAccount, IdleTailWithoutACauseIsUnknown) {
  EXPECT_EQ(DeviceText(R"(
    thread 1
    step 0 200 step
    stream 0 7
    kernel 0 100 gemm)"),
            "compute 100, idle_unknown 100");
}

TEST(DeviceAccount, PageableCopyIsStagedByTheHostFirst) {
  // 8 MB: staging of up to 4 MiB at 4 GB/s is the host's part, 1048 us, and 20 us to hand over.
  EXPECT_EQ(DeviceText(R"(
    thread 1
    step 0 5000 step
    call 100 4000 cudaMemcpyAsync | corr=1
    stream 0 7
    kernel 0 100 gemm
    copy 600 4000 Memcpy HtoD (Pageable -> Device) | corr=1 bytes=8000000
    kernel 4000 5000 gemm)"),
            "compute 1100, exposed_copy 3400, idle_launch_bound 500");
}

TEST(DeviceAccount, LoaderRangeCountsNoLongerThanItLastsWhereAnotherCrossesIt) {
  EXPECT_EQ(DeviceText(R"(
    thread 1
    step 0 900 step
    annotation 0 100 data_wait
    annotation 50 700 forward
    call 700 705 cudaLaunchKernel | corr=1
    stream 0 7
    kernel 720 900 gemm | corr=1)"),
            "compute 180, idle_input_wait 100, idle_launch_bound 620");
}

TEST(DeviceAccount, ComputingActivationsAgainIsNoIo) {
  EXPECT_EQ(DeviceText(R"(
    thread 1
    step 0 2000 step
    python 0 1200 torch/utils/checkpoint.py(493): checkpoint
    python 1200 1900 trainer.py(7): save_checkpoint
    call 1900 1905 cudaLaunchKernel | corr=1
    stream 0 7
    kernel 1910 2000 gemm | corr=1)"),
            "compute 90, idle_launch_bound 10, idle_python 1200, idle_io 700");
}

TEST(HostAccount, InnermostPhaseWinsAndTheRestIsOther) {
  EXPECT_EQ(HostText(R"(
    thread 1
    repeat 2 every 100
      step 0 100 step
      annotation 0 30 data_wait
      annotation 30 35 h2d_copy
      annotation 35 55 forward
      annotation 55 85 backward
      annotation 85 95 optimizer
    end)"),
            "input_wait 60, copy 10, forward 40, backward 60, optimizer 20, other 10");
}

TEST(HostAccount, BackwardOnAutogradsThreadIsBackward) {
  EXPECT_EQ(HostText(R"(
    thread 1
    step 0 100 ProfilerStep#1
    call 0 20 cudaMemcpyAsync | corr=1
    thread 2
    op 40 90 autograd::engine::evaluate_function: AddmmBackward0
    stream 0 7
    copy 5 19 Memcpy HtoD (Pageable -> Device) | corr=1 bytes=100)"),
            "copy 20, backward 50, other 30");
}

// What the timeline's ribbon shows: the steps' own accounts add up to that of all of them.
TEST(Accounts, OfStepsSumToTheirTotal) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const Trace trace = BuildTrace(DrawTrace(seed));
    const Steps steps = FindSteps(trace);
    const HostAccount host = AccountHost(trace, steps);
    std::array<Duration, kHostClasses> host_sum{};
    for (const Interval& part : steps.window.intervals()) {
      const auto within = host.Within(part);
      for (size_t c = 0; c < kHostClasses; ++c) host_sum[c] += within[c];
    }
    EXPECT_EQ(host_sum, host.total) << "seed " << seed;
    for (const DeviceAccount& device : AccountDevices(trace, steps)) {
      std::array<Duration, kDeviceClasses> sum{};
      for (const Step& step : steps.steps) {
        const auto within = device.Within(step.device);
        Duration all;
        for (size_t c = 0; c < kDeviceClasses; ++c) {
          sum[c] += within[c];
          all += within[c];
        }
        EXPECT_EQ(all, step.device.Length()) << "seed " << seed;
      }
      if (steps.steps.empty()) continue;
      EXPECT_EQ(sum, device.total) << "seed " << seed;
    }
  }
}

// Where nothing names the forward pass: from the loader to the backward pass, less what the user named.
TEST(HostAccount, WhatLiesBetweenLoaderAndBackwardPassIsForward) {
  const auto account_of = [](const std::string& script) {
    const Trace trace = TraceFromScript(script);
    const HostAccount account = AccountHost(trace, FindSteps(trace));
    return fmt::format("forward {} other {}", account.Of(HostClass::kForward).ns / 1000,
                       account.Of(HostClass::kOther).ns / 1000);
  };
  const std::string loop = R"(
    thread 1
    step 0 1000 ProfilerStep#0
    annotation 0 200 enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__
    op 250 300 aten::conv2d
    step 1000 1400 ProfilerStep#1
    annotation 1000 1100 enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__
    op 1200 1300 aten::conv2d
  )";
  const std::string backward = R"(
    thread 2
    op 500 900 autograd::engine::evaluate_function: AddmmBackward0
  )";
  EXPECT_EQ(account_of(loop + backward), "forward 300 other 400")
      << "the second batch is validation's";
  EXPECT_EQ(account_of(loop), "forward 0 other 1100");
  EXPECT_EQ(account_of(loop + "annotation 320 350 tokenize\n" + backward), "forward 270 other 430");
  EXPECT_EQ(account_of(loop + "annotation 250 300 forward\n" + backward), "forward 50 other 650");
}

}  // namespace
}  // namespace trainprof
