// How long the events of one name take: as many bins as a small picture has room for.
#pragma once

#include <vector>

#include "trace/base/interval_set.h"
#include "trace/tables/trace.h"

namespace trainprof {

// Bins of equal ratio from the shortest to the longest; one bin where all are equal.
struct Histogram {
  uint64_t count = 0;
  Duration shortest;
  Duration longest;
  Duration median;  // the lower one of two
  Duration total;
  std::vector<uint64_t> bins;

  // The bin of a duration within [shortest, longest].
  size_t BinOf(Duration duration) const;
  // Where bin `b` begins; b may be bins.size().
  Duration BeginOf(size_t b) const;
};

inline constexpr size_t kHistogramBins = 32;

// Of all events of this name in the table of `event`; of tables whose events last. Empty
// for other tables. Can be cancelled. O(n).
Histogram MakeHistogram(const Trace& trace, Table table, StringId name);

}  // namespace trainprof
