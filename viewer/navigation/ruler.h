// The time ruler: ticks at round times and what they say; durations as people write them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "viewer/timeline/pieces.h"

namespace trainprof {

struct Tick {
  TraceTime time;
  std::string label;  // "12.5 ms"; "+3 us" when the ruler has an anchor
};

struct Ruler {
  Duration step;
  // Set when a label in full would be too long to read: labels count from here.
  bool anchored = false;
  TraceTime anchor;
  std::string anchor_label;  // in full
  std::vector<Tick> ticks;
};

// Ticks 1, 2 or 5 times a power of ten nanoseconds apart and at least `least_px` pixels. Times
// count from `zero`, the begin of a step for example. At most width_px / least_px + 1 ticks.
Ruler MakeRuler(const Scale& scale, int32_t least_px, TraceTime zero);

// "812 ns", "1.5 us", "41.2 ms", "3.25 s", "1000000.25 s"; negative ones too. Exact: no digit is
// rounded away.
std::string ExactText(Duration duration);
// With three digits or so: "41.2 ms".
std::string ShortText(Duration duration);
// What people and ExactText write: "1.5 s", "820ms", "-3 us". Nothing when it is no time.
std::optional<TraceTime> ParseTimeText(std::string_view text);

}  // namespace trainprof
