#include "analysis/account/collective_waits.h"

#include <gtest/gtest.h>

#include "analysis/steps/device_rows.h"
#include "tests/support/trace_script.h"

namespace trainprof {
namespace {

// "row until": until when each of them waited, in us.
std::vector<std::pair<uint32_t, int64_t>> WaitsIn(const char* script) {
  const Trace trace = TraceFromScript(script);
  DeviceRows order(trace);
  std::vector<std::pair<uint32_t, int64_t>> waits;
  for (const auto& [op, until] :
       FindCollectiveWaits(trace, std::span(order.ops()).first(trace.devices.size()))) {
    EXPECT_LT(trace.device_ops.begin[Index(op)], until);
    waits.emplace_back(trace.device_ops.begin[Index(op)].ns / 1000, until.ns / 1000);
  }
  std::sort(waits.begin(), waits.end());
  return waits;
}

using Waits = std::vector<std::pair<uint32_t, int64_t>>;

TEST(CollectiveWaits, LastUntilTheLastDeviceComes) {
  EXPECT_EQ(WaitsIn(R"(
    stream 0 7
      kernel 100 1000 ncclDevKernel_AllReduce
    stream 1 7
      kernel 400 1001 ncclDevKernel_AllReduce
    stream 2 7
      kernel 700 999 ncclDevKernel_AllReduce)"),
            (Waits{{100, 700}, {400, 700}}));
}

TEST(CollectiveWaits, AreNoneOfOneDeviceOrOfOtherKernels) {
  EXPECT_EQ(WaitsIn(R"(
    stream 0 7
      kernel 100 1000 ncclDevKernel_AllReduce
    stream 0 8
      kernel 400 1000 ncclDevKernel_AllReduce)"),
            Waits{});
  EXPECT_EQ(WaitsIn(R"(
    stream 0 7
      kernel 100 1000 gemm
    stream 1 7
      kernel 400 1000 gemm)"),
            Waits{});
}

TEST(CollectiveWaits, APartEndsWithTheOthersAndHasTheirName) {
  EXPECT_EQ(WaitsIn(R"(
    stream 0 7
      kernel 100 1000 ncclDevKernel_AllReduce
    stream 1 7
      kernel 400 1500 ncclDevKernel_AllReduce
    stream 2 7
      kernel 500 1000 ncclDevKernel_AllGather)"),
            Waits{});
}

// One long on the first device, two behind one another on the second.
TEST(CollectiveWaits, OfSeveralItIsTheOneThatEndsClosest) {
  EXPECT_EQ(WaitsIn(R"(
    stream 0 7
      kernel 100 1000 ncclDevKernel_AllReduce
    stream 1 7
      kernel 300 985 ncclDevKernel_AllReduce
    stream 1 8
      kernel 600 1002 ncclDevKernel_AllReduce)"),
            (Waits{{100, 600}}));
}

}  // namespace
}  // namespace trainprof
