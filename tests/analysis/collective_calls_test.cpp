#include "analysis/host/collective_calls.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/trace_script.h"

namespace trainprof {
namespace {

constexpr Row kFirst{0};

// One kernel that is launched within two ranges.
Trace Launched(std::string_view outer, std::string_view inner, std::string_view kernel) {
  return TraceFromScript(fmt::format(R"(
    thread 1
    op 0 100 {}
    annotation 1 90 {}
    call 5 10 cudaLaunchKernel | corr=1
    stream 0 7
    kernel 20 80 {} | corr=1)",
                                     outer, inner, kernel));
}

TEST(CollectiveCalls, AreCalledAsTorchsRangeAroundTheirLaunchIs) {
  constexpr char kKernel[] = "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)";
  EXPECT_EQ(OperationOf(Launched("step", "nccl:all_to_all", kKernel), kFirst), "all_to_all");
  EXPECT_EQ(OperationOf(Launched("nccl:all_to_all", "record", kKernel), kFirst), "all_to_all");
  EXPECT_EQ(OperationOf(Launched("step", "nccl:send 0->1", kKernel), kFirst), "send");
  EXPECT_EQ(OperationOf(Launched("step", "nccl:", kKernel), kFirst),
            "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t");
  EXPECT_EQ(OperationOf(Launched("step", "forward", kKernel), kFirst),
            "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t");
}

TEST(CollectiveCalls, WithoutACallTheKernelAloneTells) {
  const Trace trace = TraceFromScript(R"(
    stream 0 7
    kernel 20 80 void dpsk::ep::internode::combine<false, 8>(int4*))");
  EXPECT_EQ(OperationOf(trace, kFirst), "combine");
  EXPECT_EQ(UseOf(trace, kFirst), CollectiveUse::kExperts);
}

TEST(CollectiveCalls, AreForWhatTheirNamesSay) {
  struct Case {
    const char* range;
    const char* kernel;
    CollectiveUse use;
  };
  constexpr char kPairs[] = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)";
  for (const Case& is : {
           Case{"nccl:all_to_all", kPairs, CollectiveUse::kExchange},
           Case{"nccl:send 0->1", kPairs, CollectiveUse::kPair},
           Case{"nccl:recv 0<-1", kPairs, CollectiveUse::kPair},
           Case{"forward", kPairs, CollectiveUse::kOther},
           Case{"forward", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", CollectiveUse::kSum},
           Case{"forward", "void vllm::cross_device_reduce_1stage<__half, 2>(x)",
                CollectiveUse::kSum},
           Case{"nccl:_all_gather_base", "ncclDevKernel_AllGather_RING_LL(x)",
                CollectiveUse::kShards},
           Case{"forward", "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(x)",
                CollectiveUse::kShards},
           Case{"forward", "EpDispatchIntraNodeKernel_bf16", CollectiveUse::kExperts},
           Case{"forward", "ncclDevKernel_Broadcast_RING_LL(x)", CollectiveUse::kOther},
       }) {
    EXPECT_EQ(UseOf(Launched("step", is.range, is.kernel), kFirst), is.use)
        << is.range << ' ' << is.kernel;
  }
}

}  // namespace
}  // namespace trainprof
