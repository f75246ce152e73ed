#include <gtest/gtest.h>

#include "tests/analysis/rules/findings_text.h"

namespace trainprof {
namespace {

constexpr char kDataParallel[] = R"(
    thread 1
    repeat 5 every 1000
      step 0 1000 step
      annotation 0 600 DataParallel.forward
      python 1 100 torch/nn/parallel/scatter_gather.py(71): scatter
      op 10 90 Scatter
      python 100 300 torch/nn/parallel/replicate.py(78): replicate
      op 110 290 Broadcast
      call 310 320 cudaLaunchKernel | corr=1
      call 320 330 cudaLaunchKernel | corr=2
      python 500 560 torch/nn/parallel/scatter_gather.py(99): gather
    end
    stream 0 7
    repeat 5 every 1000
      kernel 325 1000 gemm | corr=1
    end
    stream 1 9
    repeat 5 every 1000
      kernel 335 800 gemm | corr=2
    end)";

TEST(DataParallel, OneProcessThatDrivesSeveralDevices) {
  // 0.299 ms of replicate and scatter on an idle device, and the first one's 0.210 of extra work.
  EXPECT_EQ(OutcomeOf("data-parallel", kDataParallel).substr(0, 25), "error count=15 cost=0.509");
  for (const Finding& finding : Analyze(TraceFromScript(kDataParallel)).findings) {
    if (finding.rule != "data-parallel") continue;
    EXPECT_EQ(finding.title,
              "DataParallel: one process drives 2 GPUs: replicate 0.20, scatter 0.10, gather 0.06 "
              "ms/step; GPU 0 works 0.68 ms/step, the others 0.47");
  }
}

TEST(DataParallel, OneDeviceIsNone) {
  EXPECT_EQ(OutcomeOf("data-parallel", R"(
    thread 1
    repeat 5 every 1000
      step 0 1000 step
      annotation 0 600 DataParallel.forward
      call 310 320 cudaLaunchKernel | corr=1
    end
    stream 0 7
    repeat 5 every 1000
      kernel 325 1000 gemm | corr=1
    end)"),
            "passed");
}

// A pipeline over two devices.
TEST(DataParallel, SeveralDevicesAloneAreNoEvidence) {
  static constexpr char kTwoDevices[] = R"(
    thread 1
    repeat 5 every 1000
      step 0 1000 step
      {}
      call 310 320 cudaLaunchKernel | corr=1
      call 320 330 cudaLaunchKernel | corr=2
    end
    stream 0 7
    repeat 5 every 1000
      kernel 325 1000 gemm | corr=1
    end
    stream 1 9
    repeat 5 every 1000
      kernel 335 800 gemm | corr=2
    end)";
  EXPECT_EQ(
      OutcomeOf("data-parallel", fmt::format(fmt::runtime(kTwoDevices), "op 300 330 aten::mm")),
      "passed");
  EXPECT_EQ(
      OutcomeOf("data-parallel", fmt::format(fmt::runtime(kTwoDevices), "")),
      "skipped: without operators or Python frames the trace does not show how the process shares "
      "its devices' work (--ops records operators)");
}

// Without a name: what two devices run, and what goes between them. `second`: the kernels of the second device.
std::string WithTraffic(std::string_view second, std::string_view back) {
  return fmt::format(R"(
    thread 1
    repeat 5 every 1000
      step 0 1000 step
      call 5 10 cudaMemcpyPeerAsync | corr=1
      call 10 12 cudaEventRecord | corr=9
      call 12 14 cudaStreamWaitEvent | corr=10
      call 14 20 cudaLaunchKernel | corr=2
      call 20 30 cudaLaunchKernel | corr=3
      call 30 40 cudaMemcpyPeerAsync | corr=4
      call 40 42 cudaEventRecord | corr=6
      call 42 44 cudaStreamWaitEvent | corr=7
      call 44 50 cudaLaunchKernel | corr=5
      call 51 1000 cudaDeviceSynchronize | corr=8
    end
    stream 0 7
    repeat 5 every 1000
      stream-wait 44 900 | corr=7 record=6 stream=9 device=1
      copy 15 200 Memcpy PtoP | corr=1 bytes=1000000
      kernel 205 700 gemm | corr=2
      kernel 910 1000 adam | corr=5
    end
    stream 1 9
    repeat 5 every 1000
      stream-wait 14 200 | corr=10 record=9 stream=7 device=0
      {}
      {}
    end)",
                     second, back);
}

constexpr char kSame[] = "kernel 205 705 gemm | corr=3";
constexpr char kBack[] = "copy 710 900 Memcpy PtoP | corr=4 bytes=1000000";

TEST(DataParallel, IsKnownByWhatDevicesRunAndSend) {
  // Weights go for 0.185 ms, or gradients, too.
  EXPECT_EQ(OutcomeOf("data-parallel", WithTraffic(kSame, kBack)),
            "error count=10 cost=0.375 gain=0.175..0.390 where=:0  x5");
}

// The host only asks for what is sent: 10 us in the operator that is named so, and 0.185 ms on the device.
TEST(DataParallel, ThatIsNamedCostsNoLess) {
  std::string script = WithTraffic(kSame, kBack);
  script.insert(script.find("    end"), "op 9 60 DataParallel.forward\n op 10 20 Broadcast\n");
  EXPECT_TRUE(OutcomeOf("data-parallel", script)
                  .starts_with("error count=10 cost=0.375 gain=0.175..0.390 where="))
      << OutcomeOf("data-parallel", script);
}

constexpr char kNotChecked[] =
    "skipped: without operators or Python frames the trace does not show how the process shares its devices' "
    "work (--ops records operators)";

TEST(DataParallel, StagesOfAPipelineAreNone) {
  // Other kernels.
  EXPECT_EQ(OutcomeOf("data-parallel", WithTraffic("kernel 205 705 conv | corr=3", kBack)),
            kNotChecked);
  // In turns.
  EXPECT_EQ(OutcomeOf("data-parallel", WithTraffic("kernel 701 708 gemm | corr=3", kBack)),
            kNotChecked);
  // Sent while they work.
  EXPECT_EQ(OutcomeOf("data-parallel",
                      WithTraffic(kSame, "copy 400 590 Memcpy PtoP | corr=4 bytes=1000000")),
            kNotChecked);
  // Less comes back than goes out.
  EXPECT_EQ(OutcomeOf("data-parallel",
                      WithTraffic(kSame, "copy 710 900 Memcpy PtoP | corr=4 bytes=1000")),
            kNotChecked);
}

// With NCCL: all devices broadcast and reduce. `send` and `take`: what the kernels are called.
std::string WithNccl(std::string_view send, std::string_view take) {
  return fmt::format(R"(
    thread 1
    repeat 5 every 1000
      step 0 1000 step
      call 5 8 cudaLaunchKernel | corr=1
      call 8 10 cudaLaunchKernel | corr=2
      call 10 12 cudaLaunchKernel | corr=3
      call 12 14 cudaLaunchKernel | corr=4
      call 14 16 cudaLaunchKernel | corr=5
      call 16 18 cudaLaunchKernel | corr=6
      call 20 1000 cudaDeviceSynchronize | corr=7
    end
    stream 0 7
    repeat 5 every 1000
      kernel 15 200 ncclDevKernel_{0}_RING_LL(ncclDevComm*) | corr=1
      kernel 205 700 gemm | corr=3
      kernel 705 900 ncclDevKernel_{1}_f32_RING_LL(ncclDevComm*) | corr=5
    end
    stream 1 9
    repeat 5 every 1000
      kernel 15 200 ncclDevKernel_{0}_RING_LL(ncclDevComm*) | corr=2
      kernel 205 700 gemm | corr=4
      kernel 705 900 ncclDevKernel_{1}_f32_RING_LL(ncclDevComm*) | corr=6
    end)",
                     send, take);
}

TEST(DataParallel, IsKnownByWhatNcclSends) {
  EXPECT_EQ(OutcomeOf("data-parallel", WithNccl("Broadcast", "Reduce_Sum")).substr(0, 26),
            "error count=16 cost=0.304 ");
  // Replicas that keep their weights.
  EXPECT_EQ(OutcomeOf("data-parallel", WithNccl("AllGather", "ReduceScatter_Sum")), kNotChecked);
  EXPECT_EQ(OutcomeOf("data-parallel", WithNccl("AllReduce_Sum", "AllReduce_Sum")), kNotChecked);
}

}  // namespace
}  // namespace trainprof
