// How often the gate fails where nothing changed, and how often it sees what did: runs that differ by 1 % by
// themselves, of steps that differ by 2 % and depend on those before them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "profiler/gate/gate.h"
#include "tests/analysis/diff_jobs.h"
#include "tests/support/sanitized.h"

namespace trainprof {
namespace {

constexpr Date kDay{std::chrono::year{2026}, std::chrono::month{6}, std::chrono::day{15}};
constexpr double kStepUs = 10'000;
constexpr double kOfRuns = 0.01;
constexpr double kOfSteps = 0.02;
constexpr double kRho = 0.7;  // of a step and the next
constexpr int kSteps = 100;
constexpr int kRuns = 5;  // a side

class Lab {
 public:
  explicit Lab(uint64_t seed) : engine_(seed) {}

  std::vector<JobAnalysis> Side(double times) {
    std::vector<JobAnalysis> runs;
    for (int run = 0; run < kRuns; ++run) runs.push_back(Run(times));
    return runs;
  }

 private:
  JobAnalysis Run(double times) {
    const double mean = kStepUs * times * (1 + kOfRuns * normal_(engine_));
    std::string host = "thread 1\n";
    double state = kOfSteps * normal_(engine_);
    int64_t at = 0;
    for (int i = 0; i < kSteps; ++i) {
      const auto length = static_cast<int64_t>(mean * (1 + state));
      host += fmt::format("step {} {} ProfilerStep#{}\n", at, at + length, i);
      at += length;
      state = kRho * state + std::sqrt(1 - kRho * kRho) * kOfSteps * normal_(engine_);
    }
    return JobOfTraces({TraceFromScript(host)});
  }

  std::mt19937_64 engine_;
  std::normal_distribution<double> normal_;
};

// The share of trials in which the step is said to be slower than the baseline allows, or that it may be.
struct Shares {
  double failed = 0;
  double open = 0;
};
Shares Fails(double times, uint64_t seed) {
  const int trials = testing::Rounds(200);
  int failed = 0;
  int open = 0;
  for (int trial = 0; trial < trials; ++trial) {
    Lab lab(seed + static_cast<uint64_t>(trial));
    const std::vector<JobAnalysis> a = lab.Side(1);
    const std::vector<JobAnalysis> b = lab.Side(times);
    const GateResult gate = Judge(b, {}, kDay, BaselineRuns{"b.json", a});
    failed += gate.budgets.at(0).state == GateState::kFailed ? 1 : 0;
    open += gate.budgets.at(0).state == GateState::kInconclusive ? 1 : 0;
  }
  return {static_cast<double>(failed) / trials, static_cast<double>(open) / trials};
}

TEST(GateNoise, NothingThatChangedFailsOnceInTwentyAtMost) {
  const Shares shares = Fails(1, 1000);
  RecordProperty("false_alarms", fmt::format("{:.3f}", shares.failed));
  RecordProperty("inconclusive", fmt::format("{:.3f}", shares.open));
  EXPECT_LE(shares.failed + shares.open, 0.05);
}

TEST(GateNoise, FivePercentAreSeenInNineOfTen) {
  const Shares shares = Fails(1.05, 5000);
  RecordProperty("caught", fmt::format("{:.3f}", shares.failed));
  EXPECT_GE(shares.failed, 0.90);
}

}  // namespace
}  // namespace trainprof
