#include "analysis/gain_spread.h"

#include <gtest/gtest.h>

#include <numeric>

namespace trainprof {
namespace {

std::vector<int64_t> From(int64_t first, size_t count) {
  std::vector<int64_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

GainSpread Of(const std::vector<double>& gains) { return SpreadOf(gains, From(0, gains.size())); }

TEST(GainSpread, OfNoSteps) { EXPECT_EQ(Of({}), GainSpread{}); }

TEST(GainSpread, HasTheMedianAndNineTenths) {
  const GainSpread spread = Of({3, 1, 2, 5, 4, 9, 10, 6, 8, 7});
  EXPECT_EQ(spread.steps, 10);
  EXPECT_EQ(spread.median_ms, 5);
  EXPECT_EQ(spread.p90_ms, 9);
  EXPECT_EQ(spread.rare_steps, 0) << "most gain";
}

TEST(GainSpread, OfEveryFifthStepIsRareAndAtAFixedDistance) {
  std::vector<double> gains(30, 0.1);
  for (size_t i = 2; i < gains.size(); i += 5) gains[i] = 8;
  const GainSpread spread = Of(gains);
  EXPECT_EQ(spread.rare_steps, 6);
  EXPECT_EQ(spread.rare_ms, 8);
  EXPECT_EQ(spread.every, 5);
  EXPECT_EQ(spread.median_ms, 0.1);
}

TEST(GainSpread, TheDistanceIsThatOfTheirNumbers) {
  std::vector<double> gains(40, 0);
  std::vector<int64_t> numbers = From(100, 20);
  const std::vector<int64_t> behind_a_pause = From(405, 20);
  numbers.insert(numbers.end(), behind_a_pause.begin(), behind_a_pause.end());
  for (size_t i = 0; i < gains.size(); ++i) gains[i] = numbers[i] % 4 == 0 ? 2 : 0;
  EXPECT_EQ(SpreadOf(gains, numbers).every, 4);
}

TEST(GainSpread, HereAndThereIsRareAtNoDistance) {
  std::vector<double> gains(30, 0);
  for (const size_t i : {1, 2, 9, 20, 27}) gains[i] = 5;
  const GainSpread spread = Of(gains);
  EXPECT_EQ(spread.rare_steps, 5);
  EXPECT_EQ(spread.every, 0);
}

// The last ones of a loop that its loader slows down by and by: "once in 1 steps" was four times what they gave.
TEST(GainSpread, APartOfTheTimeIsNoPeriod) {
  std::vector<double> gains(40, 0);
  for (size_t i = 30; i < 40; ++i) gains[i] = 5;
  EXPECT_EQ(Of(gains).rare_steps, 10);
  EXPECT_EQ(Of(gains).every, 0);
  gains.assign(40, 0);
  for (size_t i = 0; i < 20; i += 2) gains[i] = 5;
  EXPECT_EQ(Of(gains).rare_steps, 10);
  EXPECT_EQ(Of(gains).every, 0);
}

TEST(GainSpread, OnceOrTwiceIsChance) {
  std::vector<double> gains(30, 0);
  gains[7] = 50;
  EXPECT_EQ(Of(gains).rare_steps, 0);
  gains[17] = 50;
  EXPECT_EQ(Of(gains).rare_steps, 0);
  gains[27] = 50;
  EXPECT_EQ(Of(gains).rare_steps, 3);
}

TEST(GainSpread, OfFewStepsTellsNothingRare) {
  EXPECT_EQ(Of({0, 9, 0, 0, 9, 0, 0, 9, 0}).rare_steps, 0);
}

// What one step gains, its neighbour may lose.
TEST(GainSpread, LossesMakeNoStepRare) {
  std::vector<double> gains;
  for (int i = 0; i < 20; ++i) gains.push_back(i % 2 == 0 ? 3 : -2);
  EXPECT_EQ(Of(gains).rare_steps, 0);
  EXPECT_EQ(Of(std::vector<double>(20, -1)).rare_steps, 0);
}

TEST(GainSpread, OddStepsAreTwoBeyondAllOthers) {
  std::vector<double> gains(20, 1);
  EXPECT_EQ(OfOddSteps(gains), 0);
  gains[3] = 41;
  EXPECT_EQ(OfOddSteps(gains), 2);
  gains[17] = 11;
  EXPECT_EQ(OfOddSteps(gains), 2.5);
  gains[18] = 11;
  EXPECT_EQ(OfOddSteps(gains), 1.5);
  EXPECT_EQ(OfOddSteps(std::vector<double>{9, 0, 0, 0, 0, 0, 0, 0, 0}), 0) << "of nine steps";
}

}  // namespace
}  // namespace trainprof
