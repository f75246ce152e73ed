// Intervals of differences: as often right as they say, on steps that depend on each other; and the
// same as a slow twin's, which draws one step after the other.
#include "analysis/job/resample.h"
#include "analysis/students_t.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/support/sanitized.h"

namespace trainprof {
namespace {

using testing::Rounds;

// Steps of about 100 ms: each depends on the one before by `rho`, and all of a run lie off by chance.
class Machine {
 public:
  explicit Machine(uint64_t seed) : engine_(seed) {}

  std::vector<double> Steps(size_t count, double mean, double deviation, double rho) {
    std::vector<double> steps(count);
    double state = normal_(engine_) * deviation;
    for (double& step : steps) {
      step = mean + state;
      state = rho * state + std::sqrt(1 - rho * rho) * deviation * normal_(engine_);
    }
    return steps;
  }
  double Normal() { return normal_(engine_); }

 private:
  std::mt19937_64 engine_;
  std::normal_distribution<double> normal_;
};

// How often the interval holds the true difference, of two sides that differ by 3 ms.
template <class Side>
double Coverage(int rounds, Side side) {
  int right = 0;
  for (int round = 0; round < rounds; ++round) {
    Machine machine(1000 + static_cast<uint64_t>(round));
    const std::vector<RunValues> a = side(machine, 100.0);
    const std::vector<RunValues> b = side(machine, 103.0);
    const std::optional<Bounds> bounds = DifferenceBounds({a, 0}, {b, 0});
    if (!bounds) return 0;
    right += bounds->low <= 3 && bounds->high >= 3 ? 1 : 0;
  }
  return static_cast<double>(right) / rounds;
}

// One run a side whose run-to-run variance is none: the interval's drift makes it a little wide.
TEST(Resample, CoversNineInTenOnStepsThatDependOnEachOther) {
  const int rounds = static_cast<int>(Rounds(400));
  for (const double rho : {0.0, 0.3, 0.7}) {
    for (const size_t count : {size_t{30}, size_t{120}}) {
      const double covered = Coverage(rounds, [&](Machine& machine, double mean) {
        return std::vector<RunValues>{{machine.Steps(count, mean, 5, rho)}};
      });
      // Thirty steps that depend on each other so much are about five independent ones.
      const bool is_hardest = rho > 0.5 && count < 100;
      EXPECT_GE(covered, is_hardest ? 0.80 : 0.86) << rho << " " << count;
      RecordProperty(fmt::format("rho_{}_steps_{}", rho, count), fmt::format("{:.3f}", covered));
      EXPECT_LE(covered, 0.99) << rho << " " << count;
    }
  }
}

// Runs differ by 1 % beside what their steps do: seen where there are several.
TEST(Resample, CoversNineInTenOfSeveralRuns) {
  const int rounds = static_cast<int>(Rounds(400));
  for (const size_t runs : {size_t{3}, size_t{5}}) {
    const double covered = Coverage(rounds, [&](Machine& machine, double mean) {
      std::vector<RunValues> side;
      for (size_t i = 0; i < runs; ++i) {
        side.push_back({machine.Steps(50, mean + machine.Normal(), 2, 0.7)});
      }
      return side;
    });
    EXPECT_GE(covered, 0.86) << runs;
    RecordProperty(fmt::format("runs_{}", runs), fmt::format("{:.3f}", covered));
    EXPECT_LE(covered, 0.98) << runs;
  }
}

TEST(Resample, RanksThatStepTogetherAreNoFurtherEvidence) {
  Machine machine(5);
  const std::vector<double> a = machine.Steps(60, 100, 5, 0.5);
  const std::vector<double> b = machine.Steps(60, 102, 5, 0.5);
  const std::vector<RunValues> one[] = {{{a}}, {{b}}};
  const std::vector<RunValues> four[] = {{{a, a, a, a}}, {{b, b, b, b}}};
  const Bounds of_one = DifferenceBounds({one[0], 1}, {one[1], 1}).value();
  const Bounds of_four = DifferenceBounds({four[0], 1}, {four[1], 1}).value();
  EXPECT_NEAR(of_one.low, of_four.low, 1e-9);
  EXPECT_NEAR(of_one.high, of_four.high, 1e-9);
}

// The mean of a resampled series of one rank, step by step.
double SlowMean(const std::vector<double>& steps, size_t block, std::mt19937_64& engine) {
  const size_t n = steps.size();
  std::vector<size_t> begins;
  for (size_t i = 0; i < (n + block - 1) / block; ++i) {
    begins.push_back(static_cast<size_t>(static_cast<double>(engine() >> 11) * 0x1p-53 *
                                         static_cast<double>(n)));
  }
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += steps[(begins[i / block] + i % block) % n];
  return sum / static_cast<double>(n);
}

TEST(Resample, AgreesWithDrawingStepByStep) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Machine machine(seed);
    const std::vector<double> a = machine.Steps(10 + 7 * seed, 50, 4, 0.4);
    const std::vector<double> b = machine.Steps(12 + 3 * seed, 55, 6, 0.8);
    const auto mean = [](const std::vector<double>& v, size_t from, size_t to) {
      double sum = 0;
      for (size_t i = from; i < to; ++i) sum += v[i];
      return sum / static_cast<double>(to - from);
    };
    const double mean_a = mean(a, 0, a.size());
    const double mean_b = mean(b, 0, b.size());
    const double parts_a = static_cast<double>(a.size()) / static_cast<double>(BlockOf(a));
    const double parts_b = static_cast<double>(b.size()) / static_cast<double>(BlockOf(b));
    const double t = StudentsT95(parts_a + parts_b - 2) / 1.6448536269514722;
    std::mt19937_64 engine(20261124);
    std::vector<double> deviations;
    for (int i = 0; i < kResamples; ++i) {
      const double of_a = (SlowMean(a, BlockOf(a), engine) - mean_a);
      const double of_b = (SlowMean(b, BlockOf(b), engine) - mean_b);
      deviations.push_back(t * (std::sqrt(parts_b / (parts_b - 1)) * of_b -
                                std::sqrt(parts_a / (parts_a - 1)) * of_a));
    }
    std::sort(deviations.begin(), deviations.end());
    const double low = deviations[49] + 0.95 * (deviations[50] - deviations[49]);
    const auto drift = [&](const std::vector<double>& v) {
      return (mean(v, v.size() - v.size() / 2, v.size()) - mean(v, 0, v.size() / 2)) / 2;
    };
    const double expected =
        mean_b - mean_a - std::hypot(low, std::hypot(drift(a), drift(b))) - std::hypot(0.5, 0.55);
    const std::vector<RunValues> side_a = {{a}};
    const std::vector<RunValues> side_b = {{b}};
    const Bounds bounds = DifferenceBounds({side_a, 0.5}, {side_b, 0.55}).value();
    EXPECT_NEAR(bounds.low, expected, 1e-9) << seed;
  }
}

TEST(Resample, OneRunASideIsWidenedByWhatRunsDiffer) {
  const std::vector<RunValues> side = {{std::vector<double>(40, 100.0)}};
  const Bounds bounds = DifferenceBounds({side, 1}, {side, 1}).value();
  EXPECT_DOUBLE_EQ(bounds.low, -std::sqrt(2.0));
  EXPECT_DOUBLE_EQ(bounds.high, std::sqrt(2.0));
}

TEST(Resample, TooFewStepsOfOneRunGiveNoInterval) {
  const std::vector<RunValues> few = {{std::vector<double>(kFewestSteps - 1, 100.0)}};
  const std::vector<RunValues> enough = {{std::vector<double>(kFewestSteps, 100.0)}};
  EXPECT_FALSE(DifferenceBounds({few, 1}, {enough, 1}).has_value());
  EXPECT_FALSE(DifferenceBounds({enough, 1}, {few, 1}).has_value());
  EXPECT_FALSE(DifferenceBounds({{}, 1}, {enough, 1}).has_value());
  EXPECT_TRUE(DifferenceBounds({enough, 1}, {enough, 1}).has_value());
  // Several runs are evidence, however short each is.
  const std::vector<RunValues> runs = {few[0], few[0], few[0]};
  EXPECT_TRUE(DifferenceBounds({runs, 1}, {runs, 1}).has_value());
}

TEST(Resample, BlocksGrowWithTheDependenceOfSteps) {
  Machine machine(3);
  EXPECT_EQ(BlockOf(machine.Steps(200, 100, 5, 0.0)), kLeastBlock);
  EXPECT_GT(BlockOf(machine.Steps(200, 100, 5, 0.8)), 2 * kLeastBlock);
  EXPECT_EQ(BlockOf(std::vector<double>(50, 7.0)), kLeastBlock);
  EXPECT_LE(BlockOf(machine.Steps(12, 100, 5, 0.99)), 6u);
  EXPECT_EQ(BlockOf(std::vector<double>(100 * kEnoughBlocks, 7.0)), 100u);
}

TEST(Resample, StudentsPercentileIsTheTables) {
  EXPECT_NEAR(StudentsT95(2), 2.920, 0.04);
  EXPECT_NEAR(StudentsT95(4), 2.132, 0.01);
  EXPECT_NEAR(StudentsT95(8), 1.860, 0.005);
  EXPECT_NEAR(StudentsT95(1e6), 1.645, 0.001);
}

}  // namespace
}  // namespace trainprof
