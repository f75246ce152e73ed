// How busy a lane was and with what, per bin of time, at every scale: what a zoomed-out view draws
// without looking at events.
//
// The bins of shift s are [b << s, (b + 1) << s), counted from time 0 of the axis: the same for all
// lanes. A bin leaves out events as long as itself or longer: wherever bins of that size are drawn
// such events are drawn by themselves (viewer/timeline/pieces.h). Where there are no events there
// are no bins, so that bursts with pauses of hours between them take no more than the bursts alone.
// Sums are exact when they are made; only what a bin says is rounded.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "analysis/tables/category.h"
#include "trace/base/interval_set.h"

namespace trainprof {

using CategoryTotals = std::array<Duration, kCategories>;

// A stretch of a lane too fine to tell its events apart.
struct Column {
  uint8_t busy = 0;                        // of 255; 0: no event at all, however short
  Category category = Category::kCompute;  // that most of the time went to

  bool operator==(const Column&) const = default;
};

// The column of a stretch of `length` in which there are events, the first of category `first`.
// The most time wins, the first in the order of categories where that is equal; without any time
// (events of no length) `first` does.
Column MakeColumn(const CategoryTotals& totals, Category first, Duration length);
// The same where all the time is of one category.
Column MakeColumn(Duration total, Category category, Duration length);

class Pyramid {
 public:
  // Of one lane, all levels together: 256 KB.
  static constexpr size_t kMostColumns = 1 << 17;
  // More columns than this would hold few events each, which are as quickly looked at.
  static constexpr size_t kEventsPerColumn = 2;
  static constexpr size_t kLeastEvents = 256;  // a shorter lane needs none

  // Events in time order, disjoint. O(n), may be cancelled (trace/base/cancel.h). Empty for lanes
  // shorter than kLeastEvents.
  static Pyramid Build(std::span<const TraceTime> begin, std::span<const TraceTime> end,
                       std::span<const Category> category);

  // Whether there are bins of width 1 << shift.
  bool Has(int shift) const {
    return shift >= finest_shift_ && shift - finest_shift_ < static_cast<int>(levels_.size());
  }
  // Calls visit(bin, Column) for the bins in [first, last) that hold events, in order. Has(shift).
  // O(log n + last - first).
  template <class Visitor>
  void VisitBins(int shift, int64_t first, int64_t last, Visitor visit) const;
  size_t size_bytes() const;

 private:
  friend class PyramidBuilder;
  // Neighbouring bins; few of them are empty.
  struct Run {
    int64_t first = 0;  // bin
    size_t offset = 0;  // of its columns
  };
  struct Level {
    std::vector<Run> runs;  // to where the next one's columns begin
    std::vector<Column> columns;

    size_t RunEnd(size_t run) const {
      return run + 1 < runs.size() ? runs[run + 1].offset : columns.size();
    }
  };
  int finest_shift_ = 0;
  std::vector<Level> levels_;
};

template <class Visitor>
void Pyramid::VisitBins(int shift, int64_t first, int64_t last, Visitor visit) const {
  const Level& level = levels_[static_cast<size_t>(shift - finest_shift_)];
  const auto behind = std::partition_point(level.runs.begin(), level.runs.end(),
                                           [&](const Run& run) { return run.first <= first; });
  auto run = static_cast<size_t>(behind - level.runs.begin());
  if (run > 0) --run;
  for (; run < level.runs.size() && level.runs[run].first < last; ++run) {
    const int64_t run_first = level.runs[run].first;
    const size_t offset = level.runs[run].offset;
    const auto size = static_cast<int64_t>(level.RunEnd(run) - offset);
    const int64_t end = std::min(last, run_first + size);
    for (int64_t bin = std::max(first, run_first); bin < end; ++bin) {
      const Column column = level.columns[offset + static_cast<size_t>(bin - run_first)];
      if (column.busy > 0) visit(bin, column);
    }
  }
}

}  // namespace trainprof
