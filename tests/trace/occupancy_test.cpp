#include "trace/tables/occupancy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>

#include "trace/formats/importer.h"

namespace trainprof {
namespace {

constexpr MultiprocessorLimits kV100{7, 0, 64, 32, 65536, 98304};
constexpr MultiprocessorLimits kT4{7, 5, 32, 16, 65536, 65536};
constexpr MultiprocessorLimits kA100{8, 0, 64, 32, 65536, 167936};
constexpr MultiprocessorLimits kRtx3090{8, 6, 48, 16, 65536, 102400};
constexpr MultiprocessorLimits kH100{9, 0, 64, 32, 65536, 233472};
constexpr MultiprocessorLimits kP100{6, 0, 64, 32, 65536, 65536};

struct Known {
  MultiprocessorLimits limits;
  BlockNeeds needs;
  int64_t blocks;
  double percent;
};

// As NVIDIA's occupancy calculator gives them.
TEST(Occupancy, AgreesWithNvidiasCalculator) {
  const Known known[] = {
      {kA100, {256, 32, 2048}, 8, 100},  // limited by warps
      {kA100, {128, 255, 0}, 2, 12.5},   // by registers: 8192 a warp
      {kRtx3090, {128, 255, 0}, 2, 100 / 6.0},
      {kA100, {128, 168, 0}, 3, 18.75},        // 5376 a warp, three in each quarter of the file
      {kA100, {128, 32, 48 << 10}, 3, 18.75},  // by shared memory: 1 KiB more a block
      {kV100, {128, 32, 48 << 10}, 2, 12.5},
      {kV100, {32, 16, 0}, 32, 50},  // by blocks
      {kT4, {1024, 64, 0}, 1, 100},
      {kT4, {1024, 65, 0}, 0, 0},  // does not fit
      {kH100, {384, 168, 200 << 10}, 1, 18.75},
      {kP100, {64, 72, 0}, 14, 43.75},  // two halves of the register file
      {kA100, {33, 16, 0}, 32, 100},    // a block of 33 threads takes two warps
  };
  for (const Known& k : known) {
    EXPECT_EQ(BlocksPerMultiprocessor(k.limits, k.needs), k.blocks)
        << k.limits.compute_major << "." << k.limits.compute_minor << " " << k.needs.threads << " "
        << k.needs.registers_per_thread << " " << k.needs.shared_bytes;
    EXPECT_NEAR(100 * TheoreticalOccupancy(k.limits, k.needs), k.percent, 1e-9);
  }
}

TEST(Occupancy, OfUnknownLimitsIsUnknown) {
  EXPECT_EQ(TheoreticalOccupancy({}, {128, 32, 0}), 0);
  EXPECT_EQ(TheoreticalOccupancy(kA100, {0, 32, 0}), 0);
}

double Number(const Trace& trace, ArgsId args, const char* key) {
  const auto value = trace.args.Find(args, trace.strings.Find(key));
  if (!value) return std::nan("");
  return value->type == ArgValue::Type::kInt ? static_cast<double>(value->integer) : value->real;
}

// Kineto computes with NVIDIA's own header; where the grid fills the device its figure is the
// theoretical one.
void CompareWithKineto(const std::string& file, const MultiprocessorLimits& limits, int least) {
  const std::filesystem::path path = std::filesystem::path(TRAINPROF_CORPUS) / file;
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no corpus at " << TRAINPROF_CORPUS;
  const auto trace = ImportTrace(path.string(), {});
  ASSERT_TRUE(trace.ok()) << trace.error();
  const Trace& t = trace.value();
  int compared = 0;
  for (uint32_t i = 0; i < t.device_ops.size(); ++i) {
    const LaunchConfig* const config = t.ConfigOf(Row{i});
    if (config == nullptr || config->block == LaunchConfig::kNoShape) continue;
    const LaunchConfig::Shape& block = config->block;
    const BlockNeeds needs{int64_t{block[0]} * block[1] * block[2], config->registers_per_thread,
                           config->shared_bytes};
    const int64_t blocks = BlocksPerMultiprocessor(limits, needs);
    if (Number(t, t.device_ops.args[i], "blocks per SM") < static_cast<double>(blocks)) continue;
    if (needs.threads % 32 != 0) continue;  // Kineto counts threads, not warps
    // Kineto says 0: it does not know that a kernel may opt in to more.
    if (needs.shared_bytes > 48 << 10) continue;
    ++compared;
    EXPECT_NEAR(100 * TheoreticalOccupancy(limits, needs), config->estimated_occupancy_percent, 1)
        << t.Text(t.device_ops.name[i]);
  }
  EXPECT_GE(compared, least);
}

TEST(Occupancy, EqualsKinetosOnAV100) {
  CompareWithKineto("kineto_resnet50/workers0.pt.trace.json.gz", kV100, 100);
}
TEST(Occupancy, EqualsKinetosOnAnA100) {
  CompareWithKineto("hta/ddp_item_a100.json.gz", kA100, 100);
}
TEST(Occupancy, EqualsKinetosOnAnH100) {
  CompareWithKineto("tracelens/h100_qwen_chat.json.gz", kH100, 100);
}

// 132 multiprocessors of 64 warps: at half of them, 8 blocks of 4 warps each.
TEST(Occupancy, ShareOfADevice) {
  EXPECT_DOUBLE_EQ(ShareOfDevice({9, 0}, 132, 0.5, 132, 128), 1.0 / 8);
  EXPECT_DOUBLE_EQ(ShareOfDevice({9, 0}, 132, 0.5, 2 * 8 * 132, 128), 2);
  EXPECT_DOUBLE_EQ(ShareOfDevice({8, 6}, 84, 1, 84, 97), 1.0 / 12);  // 48 warps; 97 threads are 4
  EXPECT_DOUBLE_EQ(ShareOfDevice({7, 5}, 40, 1, 40, 32), 1.0 / 32);
  EXPECT_DOUBLE_EQ(ShareOfDevice({.warps = 16}, 10, 1, 10, 32), 1.0 / 16);  // as recorded
}

TEST(Occupancy, ShareOfADeviceThatIsNotKnown) {
  EXPECT_EQ(ShareOfDevice({}, 132, 0.5, 132, 128), 0);
  EXPECT_EQ(ShareOfDevice({9, 0}, 0, 0.5, 132, 128), 0);
  EXPECT_EQ(ShareOfDevice({9, 0}, 132, 0, 132, 128), 0);
  EXPECT_EQ(ShareOfDevice({9, 0}, 132, 0.5, 132, 0), 0);
}

}  // namespace
}  // namespace trainprof
