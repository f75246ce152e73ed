// How a gain is spread over the steps, from what each of them gains.
#pragma once

#include <span>

#include "analysis/finding.h"

namespace trainprof {

// `gains`: ms, by step; `numbers`: of the steps, growing, as many. A few steps hold most of it where no
// more than a third of them, at least three, have four fifths of what is gained, each of them at least half
// as much as any that is needed for that. They stand at a fixed distance where four fifths of the distances
// between them are the same, of three steps and more. O(n log n).
GainSpread SpreadOf(std::span<const double> gains, std::span<const int64_t> numbers);

// Of the mean of what steps gain, what the two that gain most have beyond any other: something else happened there, as
// a rule. 0 of fewer than ten steps. O(n).
double OfOddSteps(std::span<const double> gains);

// Steps depend on those before them; so many together hardly do on the next so many.
inline constexpr size_t kStepsOfBlock = 5;

// Half the width of the interval in which the mean of these, by step, lies with nine in ten. `every`:
// GainSpread::every. O(n).
double HalfWidth(std::span<const double> values, int64_t every);

}  // namespace trainprof
