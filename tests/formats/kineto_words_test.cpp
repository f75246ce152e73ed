// What Kineto's words for device operations become.
#include "trace/formats/chrome/kineto_words.h"

#include <gtest/gtest.h>

namespace trainprof {
namespace {

using Kinds = std::pair<MemoryKind, MemoryKind>;

TEST(KinetoWords, ACopysNameTellsItsTwoKindsOfMemory) {
  using enum MemoryKind;
  EXPECT_EQ(MemoryKindsOf("Memcpy HtoD (Pageable -> Device)"), (Kinds{kPageable, kDevice}));
  EXPECT_EQ(MemoryKindsOf("Memcpy DtoH (Device -> Pageable)"), (Kinds{kDevice, kPageable}));
  EXPECT_EQ(MemoryKindsOf("Memcpy HtoD (Pinned -> Device)"), (Kinds{kPinned, kDevice}));
  EXPECT_EQ(MemoryKindsOf("memcpy htod pageable->device"), (Kinds{kPageable, kDevice}));
  EXPECT_EQ(MemoryKindsOf("Memcpy DtoA (Device Static -> Array)"), (Kinds{kDeviceStatic, kArray}));
  EXPECT_EQ(MemoryKindsOf("Memcpy HtoD (Unknown -> Managed)"), (Kinds{kUnknown, kManaged}));
  EXPECT_EQ(MemoryKindsOf("Memset (Managed Static)"), (Kinds{kUnknown, kManagedStatic}));
}

TEST(KinetoWords, ANameWithoutKindsTellsNone) {
  for (const char* name : {"CopyHostToDevice", "Memcpy", "", "(", "->", "Memset ()"}) {
    EXPECT_EQ(MemoryKindsOf(name), Kinds{}) << name;
  }
}

class Words : public ::testing::Test {
 protected:
  void Int(std::string_view key, int64_t value) {
    args_.push_back({builder_.Intern(key), {.type = ArgValue::Type::kInt, .integer = value}});
  }
  void Json(std::string_view key, std::string_view json) {
    args_.push_back(
        {builder_.Intern(key), {.type = ArgValue::Type::kJson, .text = builder_.Intern(json)}});
  }
  LaunchConfig Config() {
    const LaunchConfigId id = KinetoArguments(builder_).DetailsOf(args_).launch_config;
    return id == kNoLaunchConfig ? LaunchConfig{} : builder_.trace().launch_configs[Index(id)];
  }
  void Text(std::string_view key, std::string_view text) {
    args_.push_back(
        {builder_.Intern(key), {.type = ArgValue::Type::kString, .text = builder_.Intern(text)}});
  }
  TraceBuilder builder_;
  std::vector<Arg> args_;
};

TEST_F(Words, LaunchesAreReadFromArguments) {
  Int("context", 1);
  Int("registers per thread", 90);
  Int("shared memory", 0);
  Json("grid", "[4294967295,1,1]");
  Json("block", "[\n 128,\r\n\t1, 1 ]");
  Int("est. achieved occupancy %", 31);
  const LaunchConfig config = Config();
  EXPECT_EQ(config.context, 1);
  EXPECT_EQ(config.registers_per_thread, 90);
  EXPECT_EQ(config.shared_bytes, 0);
  EXPECT_EQ(config.grid, (LaunchConfig::Shape{4294967295, 1, 1}));
  EXPECT_EQ(config.block, (LaunchConfig::Shape{128, 1, 1}));
  EXPECT_EQ(config.estimated_occupancy_percent, 31);
  EXPECT_LT(config.theoretical_occupancy_percent, 0);
  EXPECT_EQ(config.graph_node, LaunchConfig::kUnknown);
}

TEST_F(Words, LaunchesOfOddValuesAreUnknown) {
  for (const char* shape : {"[1,2]", "[1,2,3,4]", "[]", "[-1,1,1]", "[1.5,1,1]", "[4294967296,1,1]",
                            "{}", "[1 2 3]", "[[1],2,3]"}) {
    args_.clear();
    Json("grid", shape);
    EXPECT_EQ(Config(), LaunchConfig{}) << shape;
  }
  args_.clear();
  Int("registers per thread", int64_t{1} << 40);
  Int("shared memory", -5);
  Json("block", "");
  Int("grid", 7);
  EXPECT_EQ(Config(), LaunchConfig{});
  EXPECT_TRUE(builder_.trace().launch_configs.empty());
}

TEST_F(Words, LaunchesThatAreEqualAreOne) {
  Int("context", 1);
  EXPECT_EQ(Config(), Config());
  EXPECT_EQ(builder_.trace().launch_configs.size(), 1u);
}

TEST_F(Words, ACollectiveIsReadFromArguments) {
  Text("Collective name", "allreduce");
  Text("Process Group Name", "tp");
  Json("Process Group Ranks", "[0, 1]");
  Int("Seq", 0);
  const CollectiveId id = KinetoArguments(builder_).DetailsOf(args_).collective;
  ASSERT_NE(id, kNoCollective);
  const Collective call = builder_.trace().collectives[Index(id)];
  EXPECT_EQ(call, (Collective{builder_.Intern("allreduce"), builder_.Intern("tp"),
                              builder_.Intern("[0, 1]"), 0}));
}

TEST_F(Words, AKernelWhoseArgumentsNameNoCollectiveIsNone) {
  Int("stream", 7);
  Int("Collective name", 7);
  Text("Seq", "7");
  EXPECT_EQ(KinetoArguments(builder_).DetailsOf(args_).collective, kNoCollective);
  EXPECT_TRUE(builder_.trace().collectives.empty());
}

TEST_F(Words, AnAllocationIsReadFromArguments) {
  Int("Total Reserved", 2629828608);
  args_.push_back({builder_.Intern("Total Allocated"),
                   {.type = ArgValue::Type::kDouble, .real = 1003059712.0}});
  Int("Bytes", -18317312);
  Int("Addr", 137877174353920);
  Int("Device Id", 1);
  Text("kind", "Managed");
  Int("pool bytes", 5);
  Int("pool used bytes", 4);
  Text("source", "libx.so");
  KinetoArguments words(builder_);
  EXPECT_EQ(words.AllocationOf(builder_.Intern("mark"), args_), kNoAllocation);
  const AllocationId id = words.AllocationOf(builder_.Intern("[memory]"), args_);
  ASSERT_NE(id, kNoAllocation);
  Allocation expected;
  expected.bytes = -18317312;
  expected.address = 137877174353920;
  expected.device_id = 1;
  expected.totals = {1003059712, 2629828608, Allocation::kUnknown};
  expected.pool_bytes = 5;
  expected.pool_used_bytes = 4;
  expected.source = builder_.Intern("libx.so");
  expected.kind = MemoryKind::kManaged;
  EXPECT_EQ(builder_.trace().allocations[Index(id)], expected);
  EXPECT_EQ(words.AllocationOf(builder_.Intern("[memory]"), {}), kNoAllocation);
}

}  // namespace
}  // namespace trainprof
