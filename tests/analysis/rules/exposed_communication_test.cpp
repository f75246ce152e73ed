#include <fmt/format.h>
#include <gtest/gtest.h>

#include <initializer_list>

#include "tests/analysis/rules/findings_text.h"

namespace trainprof {
namespace {

// Nothing waits for them but the host, and that for their end: hiding them would not bring it nearer.
TEST(ExposedCommunication, CollectivesThatNoKernelHides) {
  constexpr char kExposed[] = R"(
    thread 1
    repeat 5 every 1000
      step 0 1000 step
      call 1 2 cudaLaunchKernel | corr=1
      call 3 4 cudaLaunchKernel | corr=2
      call 5 1000 cudaDeviceSynchronize
    end
    stream 0 7
    repeat 5 every 1000
      kernel 10 700 gemm | corr=1
    end
    stream 0 9
    repeat 5 every 1000
      kernel 600 1000 ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*) | corr=2
    end)";
  EXPECT_EQ(OutcomeOf("exposed-communication", kExposed),
            "note count=5 cost=0.300 gain=0.000..0.000 where=:0  x5");
  for (const Finding& finding : Analyze(TraceFromScript(kExposed)).findings) {
    if (finding.rule != "exposed-communication") continue;
    EXPECT_EQ(finding.title,
              "Exposed communication: no kernel hides 0.30 ms/step of it: "
              "ncclDevKernel_AllReduce_Sum_f32_RING_LL 0.30 (1.0 a step)");
    EXPECT_LT(finding.confidence, 1);
  }
}

// By what most of it is: of embeddings an all-to-all, though torch launched a sum of gradients as well.
TEST(ExposedCommunication, AdviceIsOfWhatIsSent) {
  const auto advice = [](std::string_view range, std::string_view kernel, std::string_view other) {
    return AdviceOf("exposed-communication", fmt::format(R"(
    thread 1
    repeat 20 every 1000
      step 0 1000 step
      op 0 9 aten::mm
      annotation 1 8 {0}
      call 2 3 cudaLaunchKernel | corr=1
      call 10 11 cudaLaunchKernel | corr=2
      op 12 40 {2}
      call 15 1000 cudaDeviceSynchronize
    end
    stream 0 9
    repeat 20 every 1000
      kernel 20 700 {1} | corr=1
      kernel 700 990 ncclDevKernel_AllReduce_Sum_f32_RING_LL | corr=2
    end)",
                                                         range, kernel, other));
  };
  const auto expect = [](const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words) EXPECT_NE(text.find(word), text.npos) << word << "\n" << text;
  };
  constexpr char kTrains[] = "autograd::engine::evaluate_function: AddmmBackward0";
  constexpr char kSum[] = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL";
  constexpr char kPairs[] = "ncclDevKernel_SendRecv";
  expect(advice("backward", kSum, kTrains),
         {"whether a rank comes late", "gradients", "no_sync()"});
  expect(advice("layer", kSum, "aten::mm"), {"fewer GPUs", "halves of a batch"});
  expect(advice("forward", kSum, kTrains), {"within the forward pass", "tensor parallelism"});
  expect(advice("nccl:_all_gather_base", "ncclDevKernel_AllGather_RING_LL", kTrains),
         {"next layer's weights", "fully_shard("});
  expect(advice("nccl:all_to_all", kPairs, kTrains), {"embeddings", "all_to_all_single("});
  expect(advice("dispatch", "void deep_ep::internode::dispatch<8>(int4*)", kTrains),
         {"experts", "DeepEP"});
  expect(advice("nccl:send 0->1", kPairs, kTrains), {"pipeline", "micro-batches"});
  expect(advice("forward", "ncclDevKernel_Broadcast_RING_LL", kTrains),
         {"as soon as its input is there"});
}

TEST(ExposedCommunication, WhatComputeHidesIsFine) {
  EXPECT_EQ(OutcomeOf("exposed-communication", R"(
    thread 1
    repeat 5 every 1000
      step 0 1000 step
      call 1 2 cudaLaunchKernel | corr=1
      call 3 4 cudaLaunchKernel | corr=2
    end
    stream 0 7
    repeat 5 every 1000
      kernel 10 1000 gemm | corr=1
    end
    stream 0 9
    repeat 5 every 1000
      kernel 600 1000 ncclDevKernel_AllReduce_Sum_f32_RING_LL | corr=2
    end)"),
            "passed");
}

// One collective waits 300 us on the first device, another one as long on the second.
TEST(ExposedCommunication, ADeviceThatWaitsInACollectiveWaitsForAnotherOne) {
  const auto text = [](int64_t second_begins_on_first) {
    const RankAnalysis rank = Analyze(TraceFromScript(fmt::format(
        R"(
    thread 1
    repeat 20 every 2000
      step 0 2000 step
      call 1 2 cudaLaunchKernel | corr=1
      call 3 4 cudaLaunchKernel | corr=2
      call 5 6 cudaLaunchKernel | corr=3
      call 7 8 cudaLaunchKernel | corr=4
    end
    stream 0 7
    repeat 20 every 2000
      kernel 300 700 ncclDevKernel_AllReduce | corr=1
      kernel {} 1900 ncclDevKernel_AllGather | corr=2
    end
    stream 1 7
    repeat 20 every 2000
      kernel 600 701 ncclDevKernel_AllReduce | corr=3
      kernel 1500 1900 ncclDevKernel_AllGather | corr=4
    end)",
        second_begins_on_first)));
    for (const Finding& finding : rank.findings) {
      if (finding.title.starts_with("Waiting in")) {
        return fmt::format("{} {:.2f} to {:.2f} x{}", finding.title, finding.gain.low_ms_per_step,
                           finding.gain.high_ms_per_step, finding.count);
      }
    }
    return std::string("none");
  };
  EXPECT_EQ(text(1500),
            "Waiting in collectives: GPU 0 waits 0.30 ms/step in their kernels until GPU 1 comes "
            "0.00 to 0.30 x20");
  // In turns: none of them is the late one, and no device waits for itself.
  EXPECT_EQ(text(1800),
            "Waiting in collectives: GPU 0 waits 0.30 ms/step in their kernels until GPU 1 comes "
            "0.00 to 0.30 x20");
}

TEST(ExposedCommunication, WithoutDeviceWorkItIsNotChecked) {
  EXPECT_EQ(OutcomeOf("exposed-communication", "thread 1\nstep 0 100 step"),
            "skipped: the trace holds no device work");
}

}  // namespace
}  // namespace trainprof
