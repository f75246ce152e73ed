// How sure a difference of two means is, where the values are steps of training runs: these follow
// each other, so that neighbours are alike, and a run as a whole is slower or faster than another.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace trainprof {

// One quantity in one run: of each rank, a value a step.
using RunValues = std::vector<std::vector<double>>;

// A block has this many steps at least, and the spread of fewer than two blocks says nothing.
inline constexpr size_t kLeastBlock = 5;                 // steps
inline constexpr size_t kFewestSteps = 2 * kLeastBlock;  // of a run that is alone on its side
inline constexpr int kResamples = 1000;
// Of a run, or one more: shorter blocks of a long run would only cost time.
inline constexpr size_t kEnoughBlocks = 400;

// Mean of the runs' means, which are means of their ranks' means: runs count alike. 0 without any.
double MeanOf(std::span<const RunValues> runs);

struct Bounds {
  double low = 0;
  double high = 0;

  bool operator==(const Bounds&) const = default;
};

// One side of a comparison.
struct Sample {
  std::span<const RunValues> runs;
  // Of a side of one run, which cannot show how much runs differ by themselves: what its mean may be
  // off by for that reason, at least. Else not used.
  double run_to_run = 0;
};

// Where `b`'s mean less `a`'s lies with 90 %; nothing where that cannot be said: a side of one run
// with fewer steps than kFewestSteps in a rank, or without runs.
//
// Bootstrap of moving blocks, circular: blocks of neighbouring steps are drawn until there are as many
// steps as were recorded; of several runs, first the runs, then the blocks within each. All ranks
// of a run take the same draws, since they step together. A block has kLeastBlock steps, more where
// the run is long and its steps depend on each other (Politis and White 2004, for a series of
// first order). What is drawn spreads too little where there are few independent parts: deviations
// are stretched as Student's t and the lost degree of freedom want. Same values, same result.
// O(steps + kResamples * kEnoughBlocks) a rank.
std::optional<Bounds> DifferenceBounds(const Sample& a, const Sample& b);

// Steps of a block, by the above: of a run whose first rank has these values.
size_t BlockOf(std::span<const double> steps);

}  // namespace trainprof
