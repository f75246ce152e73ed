// How busy a lane was and with what, per bin of time, at every scale: what a zoomed-out view draws
// without looking at events.
//
// The bins of level k are [b << s, (b + 1) << s) for s = finest_shift + k, counted from time 0 of
// the axis: the same for all lanes. Sums are exact when they are made; only what a bin says is
// rounded.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "trace/interval_set.h"
#include "viewer/timeline/category.h"

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

class Pyramid {
 public:
  static constexpr size_t kMostBins = 1 << 16;
  // Finer bins than this would hold few events each, which are as quickly looked at.
  static constexpr size_t kEventsPerBin = 4;
  static constexpr size_t kLeastEvents = 256;  // a shorter lane needs none

  // Events in time order, disjoint: at most kMostBins bins, of a width that is a power of two.
  // O(n + bins). Empty for lanes shorter than kLeastEvents.
  static Pyramid Build(std::span<const TraceTime> begin, std::span<const TraceTime> end,
                       std::span<const Category> category);

  // Whether there are bins of width 1 << shift.
  bool Has(int shift) const {
    return shift >= finest_shift_ && shift - finest_shift_ < static_cast<int>(levels_.size());
  }
  // The bins that hold events: all others are empty columns. Has(shift).
  int64_t FirstBin(int shift) const { return levels_[shift - finest_shift_].first; }
  std::span<const Column> Bins(int shift) const;
  size_t size_bytes() const { return columns_.capacity() * sizeof(Column); }

 private:
  friend class PyramidBuilder;
  struct Level {
    int64_t first = 0;  // bin
    size_t offset = 0;  // of its columns
    size_t size = 0;
  };
  int finest_shift_ = 0;
  std::vector<Level> levels_;
  std::vector<Column> columns_;
};

}  // namespace trainprof
