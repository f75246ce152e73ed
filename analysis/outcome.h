// What changes give together under all ways in which the world may answer them (Assumption), each a replay of the graph.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "analysis/graph/change.h"
#include "analysis/model.h"

namespace trainprof {

// Waits for input, or for what nothing tells, of less than this share of the steps say nothing about how
// fast a loader is.
inline constexpr double kLoaderShare = 0.01;

// By the worst and by the best answer.
struct Outcome {
  double low_ms = std::numeric_limits<double>::infinity();
  double high_ms = 0;
  double likeliest_ms = 0;               // by the first answer
  std::vector<int64_t> likeliest_steps;  // after it, ns
  int64_t every = 0;                     // GainSpread::every, by it
  double half_width_ms = 0;              // of the answer whose steps differ most
  // By step: of the answer that gives least, and of that which gives most.
  std::vector<double> low_gains_ms;
  std::vector<double> high_gains_ms;
};

// A few replays, on all cores that are left.
Outcome OutcomeOf(const RankModel& model, std::span<const Change* const> changes);

// By how much less, or more, what changes give may be for not knowing what recording took of the host.
struct RecordingDoubt {
  double less_ms = 0;
  double more_ms = 0;
};

RecordingDoubt DoubtOfRecording(const RankModel& model, std::span<const Change* const> changes,
                                const Outcome& outcome);

// How many times as long the training thread's other work may take beside workers that keep up, where a step
// that waits for none of them is of `fed_ms`. What they and the thread compute, which takes longer side by side as
// well, has to fit in the cores there are, however many workers share it.
double ContentionOf(const RankModel& model, double step_ms, double fed_ms);

bool AnyIs(std::span<const Change* const> changes, Edit edit);

}  // namespace trainprof
