// Jobs of several ranks as they might have been: drawn from a seed, with what happened in truth.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/job/digest.h"

namespace trainprof {

struct JobDraw {
  int ranks = 4;
  int steps = 8;
  int meetings = 3;  // of all ranks in a step
  bool numbered = true;
  bool has_pairs = false;     // ranks 2k and 2k + 1 meet besides
  int64_t most_apart_ns = 0;  // clocks
  int64_t most_drift_ppm = 0;
  int64_t end_noise_ns = 0;  // by how much ends of one collective differ
  int late_rank = -1;        // which comes late by `late_ns` to the first meeting of each step
  int64_t late_ns = 0;
};

struct DrawnJob {
  std::vector<RankDigest> digests;
  std::vector<int64_t> wait_ns;  // by rank, for others, in all
  std::vector<int64_t> lead_ns;  // by rank
  std::vector<std::vector<int64_t>>
      root_ns;                    // waits by rank and by whose doing they are, chains followed
  std::vector<int64_t> clock_ns;  // by rank: how far it is ahead of rank 0's at the middle
};

DrawnJob DrawJob(uint64_t seed, const JobDraw& draw);

}  // namespace trainprof
