// Calls that block, copy or make streams wait keep their stacks, down to the function of the program.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <set>

#include "tests/collectors/cuda_run.h"

namespace trainprof::testing {
namespace {

// The function's addresses in cuda_program, as the linker placed them.
std::pair<uint64_t, uint64_t> AddressesOf(const std::string& function) {
  FILE* pipe = popen("nm -S " TEST_CUDA_PROGRAM, "r");
  std::array<char, 1024> line;
  std::pair<uint64_t, uint64_t> found{0, 0};
  while (fgets(line.data(), line.size(), pipe) != nullptr) {
    unsigned long address = 0;
    unsigned long size = 0;
    char kind = 0;
    std::array<char, 512> name;
    const int read = sscanf(line.data(), "%lx %lx %c %511s", &address, &size, &kind, name.data());
    if (read != 4 || (kind != 't' && kind != 'T'))
      continue;  // code, not a constant of the function
    if (std::string(name.data()).find(function) != std::string::npos) found = {address, size};
  }
  pclose(pipe);
  return found;
}

// Whether a frame of the stack lies in the function.
bool PassesThrough(const RecordedRows& rows, const RecordedStack& stack,
                   std::pair<uint64_t, uint64_t> function) {
  for (const uint64_t frame : stack.frames) {
    for (const RecordedModule& module : rows.modules) {
      if (module.path.find("cuda_program") == std::string::npos) continue;
      const uint64_t address = frame - 1 - module.facts.load_bias;
      if (address - function.first < function.second) return true;
    }
  }
  return false;
}

// With a fault of the virtual GPU, or none.
class CuptiStacks : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { Record(); }
  void Record() {
    run_.emplace();
    run_->environment["VGPU_FAULTS"] = GetParam();
    ASSERT_EQ(run_->Run({"stacks", "30"}), 0);
    rows_ = run_->Rows();
  }
  // Anew until there are enough stacks: a thread that loses its core while its stack is taken has used up what stacks may
  // cost, so that later calls have none.
  template <class HasEnough>
  void RecordUntil(HasEnough has_enough) {
    constexpr int kMostRuns = 5;
    for (int run = 1; run < kMostRuns && !has_enough(); ++run) Record();
    EXPECT_TRUE(has_enough()) << "in none of " << kMostRuns << " runs";
  }
  std::set<uint32_t> CorrelationsOf(const std::string& call) const {
    std::set<uint32_t> found;
    for (const auto& row : rows_.calls) {
      if (rows_.names[row.name] == call) found.insert(row.correlation);
    }
    return found;
  }
  // Of so many stacks, those that there are where taking them is slow: their cost is bounded.
  static int Least(int stacks) {
    return kIsSanitized ? 1 : GetParam()[0] != 0 ? stacks / 4 : stacks;
  }
  // Stacks of such calls, and how many of them pass through the function.
  std::pair<int, int> StacksOf(const std::string& call, const std::string& function) const {
    const auto addresses = AddressesOf(function);
    EXPECT_GT(addresses.second, 0u) << function;
    const std::set<uint32_t> correlations = CorrelationsOf(call);
    std::pair<int, int> counts{0, 0};
    for (const RecordedStack& stack : rows_.stacks) {
      if (correlations.count(stack.correlation) == 0) continue;
      ++counts.first;
      counts.second += PassesThrough(rows_, stack, addresses) ? 1 : 0;
    }
    return counts;
  }
  // Calls that took less time than this, by CUPTI's clock. A thread that loses its core between CUPTI's look at the clock
  // and the library's own makes a quick call seem long: so many may have a stack.
  static constexpr int kMostInterrupted = 2;
  static constexpr int kFirstOfSite = 8;
  int OneEach10Ms() const {
    int64_t first = INT64_MAX;
    int64_t last = INT64_MIN;
    for (const auto& row : rows_.calls) {
      first = std::min(first, row.begin_ns);
      last = std::max(last, row.end_ns);
    }
    return static_cast<int>((last - first) / 10'000'000) + 1;
  }
  std::set<uint32_t> QuickerThan(int64_t duration_ns) const {
    std::set<uint32_t> quick;
    for (const auto& row : rows_.calls) {
      if (row.end_ns - row.begin_ns < duration_ns) quick.insert(row.correlation);
    }
    return quick;
  }
  std::optional<CudaRun> run_;
  RecordedRows rows_;
};

TEST_P(CuptiStacks, ABlockingCopyLeadsToTheFunctionThatReadsTheLoss) {
  RecordUntil([this] {
    const auto [stacks, right] = StacksOf("cudaMemcpy", "ReadsTheLoss");
    EXPECT_EQ(right, stacks);
    return stacks >= Least(20);
  });
}

TEST_P(CuptiStacks, QuickCopiesLeadToTheFunctionsThatMakeThem) {
  RecordUntil([this] {
    const auto [stacks, right] = StacksOf("cudaMemcpyAsync", "MakesTensorsOnTheHost");
    const int on_device = StacksOf("cudaMemcpyAsync", "CopiesOnTheDevice").second;
    EXPECT_EQ(right + on_device, stacks);
    return right >= Least(8) && on_device >= Least(8);
  });
}

TEST_P(CuptiStacks, WhatMakesAStreamWaitLeadsToItsFunction) {
  for (const auto& [call, function] : {std::pair("cudaStreamWaitEvent", "WaitsForAnEvent"),
                                       std::pair("cudaLaunchHostFunc", "CallsTheHost")}) {
    RecordUntil([this, call = call, function = function] {
      const auto [stacks, right] = StacksOf(call, function);
      EXPECT_EQ(right, stacks) << call;
      return stacks >= Least(8);
    });
  }
}

// A copy whose call takes long has a stack each time.
TEST_P(CuptiStacks, OfQuickCallsSomeOfEachSiteDo) {
  constexpr int64_t kNearlyLongNs = 10'000;
  const auto function = AddressesOf("CopiesOnTheDevice");
  ASSERT_GT(function.second, 0u);
  const std::set<uint32_t> quick = QuickerThan(kNearlyLongNs);
  int with_stack = 0;
  for (const RecordedStack& stack : rows_.stacks) {
    const bool is_quick = quick.count(stack.correlation) != 0;
    with_stack += is_quick && PassesThrough(rows_, stack, function) ? 1 : 0;
  }
  EXPECT_LE(with_stack, kFirstOfSite + OneEach10Ms() + kMostInterrupted);
  EXPECT_GE(CorrelationsOf("cudaMemcpyAsync").size(), 40u) << "of both functions";
}

TEST_P(CuptiStacks, LaunchesHaveNone) {
  constexpr int64_t kNearlyLongNs =
      500'000;  // one that takes a thousand times its usual time has one
  const std::set<uint32_t> quick = QuickerThan(kNearlyLongNs);
  const std::set<uint32_t> launches = CorrelationsOf("cudaLaunchKernel");
  EXPECT_GE(launches.size(), 30u);
  int with_stack = 0;
  for (const RecordedStack& stack : rows_.stacks) {
    with_stack +=
        quick.count(stack.correlation) != 0 && launches.count(stack.correlation) != 0 ? 1 : 0;
  }
  EXPECT_LE(with_stack, kMostInterrupted);
}

TEST_P(CuptiStacks, EveryFrameLiesInAModuleWithABuildId) {
  int unknown = 0;
  for (const RecordedStack& stack : rows_.stacks) {
    for (const uint64_t frame : stack.frames) {
      bool known = false;
      for (const RecordedModule& module : rows_.modules) {
        known = known || (frame > module.facts.begin && frame <= module.facts.end);
      }
      unknown += known ? 0 : 1;
    }
  }
  EXPECT_EQ(unknown, 0);
  for (const RecordedModule& module : rows_.modules) {
    EXPECT_GT(module.facts.build_id_bytes, 0u) << module.path;
  }
}

TEST_P(CuptiStacks, ThoseThatCannotBeUnwoundAreCounted) {
  const bool can = GetParam()[0] == 0;
  EXPECT_EQ(rows_.Fact("cupti.stacks_scanned").empty(), can);
}

INSTANTIATE_TEST_SUITE_P(Unwinding, CuptiStacks, ::testing::Values("", "no_unwind_info"));

// It loads modules, or compiles: seconds, at the first step.
TEST(CuptiLaunchStacks, ALongLaunchLeadsToTheFunctionThatLaunches) {
  CudaRun run;
  run.environment["VGPU_SETTINGS"] = "launch_call_ns=2e6:3e6";
  ASSERT_EQ(run.Run({"kernels", "10"}), 0);
  const RecordedRows rows = run.Rows();
  const auto function = AddressesOf("LaunchMany");
  ASSERT_GT(function.second, 0u);
  std::set<uint32_t> launches;
  for (const auto& row : rows.calls) {
    if (rows.names[row.name] == "cudaLaunchKernel") launches.insert(row.correlation);
  }
  EXPECT_EQ(launches.size(), 10u);
  int right = 0;
  for (const RecordedStack& stack : rows.stacks) {
    if (launches.count(stack.correlation) == 0) continue;
    EXPECT_TRUE(PassesThrough(rows, stack, function));
    ++right;
  }
  EXPECT_GE(right, kIsSanitized ? 1 : 8);
}

}  // namespace
}  // namespace trainprof::testing
