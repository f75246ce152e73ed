// How far ranks' clocks are apart, by their collectives. Only for people to read and to put collectives in order: who
// waits for whom is told by durations.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "analysis/job/meetings.h"

namespace trainprof {

// A rank's clock beside that of another one, whose own is 0.
struct ClockOffset {
  uint32_t beside =
      0;  // the rank that it is measured from, an index: the lowest that meets it, over others too
  Duration ahead;    // the rank's time less the other's, at the middle of what was recorded
  double drift = 0;  // ns a ns: its clock is that much faster
  Duration spread;   // the ends of half of the collectives lie within it of what the two above say
  int64_t collectives = 0;  // that it rests on; 0 of the rank itself

  bool operator==(const ClockOffset&) const = default;
};

// A collective ends on all of its ranks at nearly one moment: an offset is the median of the differences of ends.
// By rank; nothing for ranks that meet nobody. A rank that the lowest one never meets is measured over
// those that meet both: spreads add up. `base_ns`: of each rank (Trace::base_ns), by whatever clock.
// O(n log n) in attendances.
std::vector<std::optional<ClockOffset>> ClockOffsets(const Meetings& meetings,
                                                     std::span<const int64_t> base_ns);

// `a - b` as far as 64 bits go.
int64_t Apart(int64_t a, int64_t b);

}  // namespace trainprof
