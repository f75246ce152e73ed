// Ranks side by side: who is slow, and what each one's devices waited for.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "analysis/job/lateness.h"

namespace trainprof {

struct RankRow {
  uint32_t rank = 0;   // index into `ranks`
  int64_t number = 0;  // as the job counts
  size_t steps = 0;
  double mean_ms = 0;  // from begin to begin
  double median_ms = 0;
  // Of the device that did least, as the verdict has it; < 0: no device.
  double busy = -1;
  double busy_high = -1;
  std::array<double, kDeviceClasses> device_ms{};  // per step, by class
  double loader_wait_ms = 0;                       // per step
  std::optional<Duration> late{};                  // LatenessOf
};

// `ranks` as in clock.shift; those whose analysis is null are left out. O(ranks * steps * log
// steps).
std::vector<RankRow> MakeRankTable(const JobClock& clock,
                                   std::span<const RankAnalysis* const> ranks);

}  // namespace trainprof
