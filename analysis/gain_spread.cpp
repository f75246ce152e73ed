#include "analysis/gain_spread.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

#include "analysis/students_t.h"

namespace trainprof {
namespace {

constexpr double kMost = 0.8;       // of the gain, or of the distances
constexpr double kFew = 1.0 / 3;    // of the steps
constexpr double kAsMuch = 0.5;     // of what the others of the few gain
constexpr size_t kLeastSteps = 10;  // of fewer, one odd step is a large share
constexpr size_t kLeastRare = 3;    // once or twice is chance

// What other programs do lasts longer than steps depend on each other:
// of long runs no more blocks are made than tell what they differ by, of short ones as many as it takes for that.
constexpr size_t kFewestBlocks = 10;
constexpr size_t kMostBlocks = 24;
constexpr size_t kFewestPeriods = 2;

// The value that `share` of them do not exceed; sorted downwards.
double Quantile(std::span<const double> down, double share) {
  const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(down.size())));
  return down[down.size() - std::clamp<size_t>(rank, 1, down.size())];
}

// What a step gains at least that belongs to those which hold most of the gain.
double LeastOfMost(std::span<const double> down) {
  double all = 0;
  for (const double gain : down) all += std::max(0.0, gain);
  double sum = 0;
  for (const double gain : down) {
    sum += gain;
    if (sum >= kMost * all) return kAsMuch * gain;
  }
  return 0;
}

// What most of the distances of some of the steps are; 0 where they differ, or where those are only a part of the time:
// the last ones, one behind the other, are no period.
int64_t DistanceOf(std::span<const int64_t> numbers, std::span<const int64_t> all) {
  if (numbers.size() < 3) return 0;
  std::vector<int64_t> apart;
  for (size_t i = 1; i < numbers.size(); ++i) apart.push_back(numbers[i] - numbers[i - 1]);
  std::nth_element(apart.begin(), apart.begin() + static_cast<ptrdiff_t>(apart.size() / 2),
                   apart.end());
  const int64_t usual = apart[apart.size() / 2];
  const int64_t outside = std::max(numbers.front() - all.front(), all.back() - numbers.back());
  if (outside >= 2 * usual) return 0;
  const auto same = static_cast<double>(std::count(apart.begin(), apart.end(), usual));
  return same >= kMost * static_cast<double>(apart.size()) ? usual : 0;
}

constexpr size_t kOdd = kLeastRare - 1;

// How many steps make a block of so many. `every`: what happens comes each so many steps, 0 where it does not: blocks hold
// it equally often, where there are enough.
size_t BlockOf(size_t steps, int64_t every) {
  const size_t block =
      std::max({size_t{1}, std::min(kStepsOfBlock, steps / kFewestBlocks), steps / kMostBlocks});
  const auto period = static_cast<size_t>(std::max<int64_t>(1, every));
  const size_t whole = (block + period - 1) / period * period;
  return steps / whole >= kFewestPeriods ? whole : block;
}

}  // namespace

double OfOddSteps(std::span<const double> gains) {
  if (gains.size() < kLeastSteps) return 0;
  std::array<double, kOdd + 1> most{};
  std::partial_sort_copy(gains.begin(), gains.end(), most.begin(), most.end(), std::greater<>());
  double beyond = 0;
  for (size_t i = 0; i < kOdd; ++i) beyond += most[i] - most[kOdd];
  return beyond / static_cast<double>(gains.size());
}

GainSpread SpreadOf(std::span<const double> gains, std::span<const int64_t> numbers) {
  GainSpread spread;
  spread.steps = static_cast<int64_t>(gains.size());
  if (gains.empty()) return spread;
  std::vector<double> down(gains.begin(), gains.end());
  std::sort(down.rbegin(), down.rend());
  spread.median_ms = Quantile(down, 0.5);
  spread.p90_ms = Quantile(down, 0.9);

  const double least = LeastOfMost(down);
  if (gains.size() < kLeastSteps || least <= 0) return spread;
  std::vector<int64_t> rare;
  double sum = 0;
  for (size_t i = 0; i < gains.size(); ++i) {
    if (gains[i] < least) continue;
    rare.push_back(numbers[i]);
    sum += gains[i];
  }
  const auto count = static_cast<double>(rare.size());
  if (rare.size() < kLeastRare || count > kFew * static_cast<double>(gains.size())) return spread;
  spread.rare_steps = static_cast<int64_t>(rare.size());
  spread.rare_ms = sum / count;
  spread.every = DistanceOf(rare, numbers);
  return spread;
}

double HalfWidth(std::span<const double> values, int64_t every) {
  const size_t block = BlockOf(values.size(), every);
  const size_t blocks = values.size() / block;
  if (blocks < 2) return 0;
  std::vector<double> means;
  for (size_t i = 0; i < blocks; ++i) {
    const auto part = values.subspan(i * block, block);
    means.push_back(std::accumulate(part.begin(), part.end(), 0.0) / static_cast<double>(block));
  }
  const double mean =
      std::accumulate(means.begin(), means.end(), 0.0) / static_cast<double>(blocks);
  double squares = 0;
  for (const double m : means) squares += (m - mean) * (m - mean);
  const auto n = static_cast<double>(blocks);
  return StudentsT95(n - 1) * std::sqrt(squares / (n - 1) / n);
}

}  // namespace trainprof
