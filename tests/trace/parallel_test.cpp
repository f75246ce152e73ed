#include "trace/base/parallel.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <stdexcept>
#include <vector>

namespace trainprof {
namespace {

TEST(RunAll, CallsEachJobOnceAndReturnsWhenAllAreDone) {
  std::array<std::atomic<int>, 50> calls{};
  std::vector<std::function<void()>> jobs;
  for (auto& count : calls) jobs.emplace_back([&count] { ++count; });
  RunAll(jobs);
  for (const auto& count : calls) EXPECT_EQ(count, 1);
  RunAll({});
}

TEST(RunAll, ThrowsAgainWhatAJobThrewWhenTheOthersAreDone) {
  std::atomic<int> done = 0;
  const std::function<void()> jobs[] = {
      [&] { ++done; }, [] { throw std::runtime_error("no room"); }, [&] { ++done; }};
  EXPECT_THROW(RunAll(jobs), std::runtime_error);
  EXPECT_EQ(done, 2);
}

TEST(UsableCores, AreAtLeastOne) { EXPECT_GE(UsableCores(), 1u); }

}  // namespace
}  // namespace trainprof
