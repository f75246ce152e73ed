#include "analysis/job/resample.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>

#include "analysis/students_t.h"
#include "trace/base/cancel.h"

namespace trainprof {
namespace {

constexpr double kZ95 = 1.6448536269514722;  // the 95th percentile of the normal distribution

double Mean(std::span<const double> values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Of neighbours, 0..1: steps that alternate are not less sure than independent ones, so that a
// negative one counts as none. Series that do not change have none. What a short series shows is too
// small by (1 + 3 rho) / n (Kendall 1954).
double Autocorrelation(std::span<const double> values) {
  const double mean = Mean(values);
  double products = 0;
  double squares = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double deviation = values[i] - mean;
    squares += deviation * deviation;
    if (i > 0) products += deviation * (values[i - 1] - mean);
  }
  if (squares <= 0) return 0;
  const double rho = products / squares;
  return std::clamp(rho + (1 + 3 * rho) / static_cast<double>(values.size()), 0.0, 1.0);
}

// Sums of blocks of one rank's steps, in O(1). Steps follow each other in a circle, so that each is
// drawn as often as any other.
class Circle {
 public:
  Circle(std::span<const double> values, size_t block)
      : size_(values.size()), block_(std::min(block, values.size())), sums_(1, 0.0) {
    // Of deviations: they are small numbers, and a sum of many keeps its digits.
    mean_ = Mean(values);
    for (size_t turn = 0; turn < 2; ++turn) {
      for (const double value : values) sums_.push_back(sums_.back() + (value - mean_));
    }
  }
  size_t blocks() const { return block_ == 0 ? 0 : (size_ + block_ - 1) / block_; }
  // The deviation of a drawn series' mean; `draws`: in [0, 1), one a block.
  double Drawn(std::span<const double> draws) const {
    double sum = 0;
    for (size_t i = 0; i < blocks(); ++i) {
      const auto begin = static_cast<size_t>(draws[i] * static_cast<double>(size_));
      const size_t length = std::min(block_, size_ - i * block_);
      sum += sums_[begin + length] - sums_[begin];
    }
    return size_ == 0 ? 0 : sum / static_cast<double>(size_);
  }
  double mean() const { return mean_; }

 private:
  size_t size_;
  size_t block_;
  double mean_ = 0;
  std::vector<double> sums_;
};

// What is drawn of one side.
class Drawer {
 public:
  explicit Drawer(std::span<const RunValues> runs) {
    for (const RunValues& ranks : runs) {
      Run& run = runs_.emplace_back();
      size_t block = kLeastBlock;
      for (const std::vector<double>& steps : ranks) block = std::max(block, BlockOf(steps));
      size_t fewest = SIZE_MAX;
      for (const std::vector<double>& steps : ranks) {
        run.ranks.emplace_back(steps, block);
        run.mean += run.ranks.back().mean() / static_cast<double>(ranks.size());
        most_blocks_ = std::max(most_blocks_, run.ranks.back().blocks());
        fewest = std::min(fewest, steps.size());
      }
      // A run that is shorter is one value.
      run.has_blocks = !ranks.empty() && fewest >= kFewestSteps;
      run.blocks = static_cast<double>(fewest) / static_cast<double>(block);
      mean_ += run.mean / static_cast<double>(runs.size());
    }
  }

  // How many independent parts there are, at least 2; 0 where there are too few to tell.
  double parts() const {
    if (runs_.size() != 1) return static_cast<double>(runs_.size());
    return runs_[0].has_blocks ? runs_[0].blocks : 0;
  }

  // The deviation of a drawn mean. `random`: gives numbers in [0, 1).
  template <class Random>
  double Draw(Random& random) {
    double sum = 0;
    for (size_t i = 0; i < runs_.size(); ++i) {
      size_t drawn = 0;
      if (runs_.size() > 1) {
        drawn = static_cast<size_t>(random() * static_cast<double>(runs_.size()));
      }
      const Run& run = runs_[drawn];
      sum += run.mean - mean_;
      if (!run.has_blocks) continue;
      draws_.resize(most_blocks_);
      for (double& draw : draws_) draw = random();
      for (const Circle& rank : run.ranks) {
        sum += rank.Drawn(draws_) / static_cast<double>(run.ranks.size());
      }
    }
    return sum / static_cast<double>(runs_.size());
  }

 private:
  struct Run {
    std::vector<Circle> ranks;
    double mean = 0;
    double blocks = 0;
    bool has_blocks = false;
  };
  std::vector<Run> runs_;
  size_t most_blocks_ = 0;
  double mean_ = 0;
  std::vector<double> draws_;
};

// By linear interpolation between the two nearest. `sorted` is not empty.
double Quantile(std::span<const double> sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], at - static_cast<double>(below));
}

double MeanOfRun(const RunValues& ranks) {
  double mean = 0;
  for (const std::vector<double>& steps : ranks) mean += Mean(steps);
  return ranks.empty() ? 0 : mean / static_cast<double>(ranks.size());
}

// How far a run's mean may lie off what runs have on average, by the spread of these runs.
double SpreadOf(std::span<const RunValues> runs) {
  if (runs.size() < 2) return 0;
  const double mean = MeanOf(runs);
  double squares = 0;
  for (const RunValues& ranks : runs) squares += std::pow(MeanOfRun(ranks) - mean, 2);
  const auto degrees = static_cast<double>(runs.size() - 1);
  return StudentsT95(degrees) * std::sqrt(squares / degrees);
}

// Half the difference of the run's halves: what drifts does so from run to run, too.
double DriftOf(const Sample& sample) {
  if (sample.runs.size() != 1) return 0;
  double drift = 0;
  const RunValues& ranks = sample.runs[0];
  for (const std::vector<double>& steps : ranks) {
    const std::span<const double> all(steps);
    const size_t half = all.size() / 2;
    drift += (Mean(all.last(half)) - Mean(all.first(half))) / 2 / static_cast<double>(ranks.size());
  }
  return drift;
}

// What a side of one run may be off by: it has seen no other run, but the other side may have.
double RunToRun(const Sample& sample, const Sample& other) {
  return sample.runs.size() == 1 ? std::max(SpreadOf(other.runs), sample.run_to_run) : 0;
}

}  // namespace

double MeanOf(std::span<const RunValues> runs) {
  double mean = 0;
  for (const RunValues& ranks : runs) mean += MeanOfRun(ranks);
  return runs.empty() ? 0 : mean / static_cast<double>(runs.size());
}

size_t BlockOf(std::span<const double> steps) {
  const double rho = std::min(Autocorrelation(steps), 0.99);
  const double dependence = 2 * rho / (1 - rho * rho);
  const double best = std::cbrt(1.5 * dependence * dependence * static_cast<double>(steps.size()));
  // At least two blocks: one has no spread.
  const size_t most = std::max(kLeastBlock, steps.size() / 2);
  const size_t least = std::max(kLeastBlock, steps.size() / kEnoughBlocks);
  return std::clamp(static_cast<size_t>(std::lround(best)), least, most);
}

std::optional<Bounds> DifferenceBounds(const Sample& a, const Sample& b) {
  Drawer of_a(a.runs);
  Drawer of_b(b.runs);
  const double parts_a = of_a.parts();
  const double parts_b = of_b.parts();
  if (parts_a < 2 || parts_b < 2) return std::nullopt;
  const double t = StudentsT95(parts_a - 1 + parts_b - 1) / kZ95;
  const double stretch_a = t * std::sqrt(parts_a / (parts_a - 1));
  const double stretch_b = t * std::sqrt(parts_b / (parts_b - 1));
  // Any seed would do; this one makes a report the same each time.
  std::mt19937_64 engine(20261124);
  const auto random = [&engine] { return static_cast<double>(engine() >> 11) * 0x1p-53; };
  std::vector<double> deviations;
  for (int i = 0; i < kResamples; ++i) {
    CancelPoint();
    const double drawn_a = of_a.Draw(random);
    deviations.push_back(stretch_b * of_b.Draw(random) - stretch_a * drawn_a);
  }
  std::sort(deviations.begin(), deviations.end());
  const double difference = MeanOf(b.runs) - MeanOf(a.runs);
  // Drift is an error like those that were drawn, so that squares add up; the rest is an assumption.
  const double drift = std::hypot(DriftOf(a), DriftOf(b));
  const double run_to_run = std::hypot(RunToRun(a, b), RunToRun(b, a));
  return Bounds{difference - std::hypot(Quantile(deviations, 0.05), drift) - run_to_run,
                difference + std::hypot(Quantile(deviations, 0.95), drift) + run_to_run};
}

}  // namespace trainprof
