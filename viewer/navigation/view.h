// Moving about: what part of time is shown next. Pure functions; a view is never empty.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "trace/base/interval_set.h"

namespace trainprof {

inline constexpr Duration kLeastView = Nanoseconds(100);
// Of the shown thing, on each side.
inline constexpr int64_t kMarginPercent = 20;
inline constexpr size_t kMostHistory = 100;

// `view` within `extent` and a tenth of it on each side, at least kLeastView long; its length is
// kept where that is possible. `extent` lies within +-kMostViewNs / 2.
Interval ClampView(const Interval& view, const Interval& extent);

// Makes the view `factor` times as long (below 1: zooms in); the moment `at` stays where it is on
// the screen, unless the limits forbid it. factor > 0.
Interval ZoomAt(const Interval& view, TraceTime at, double factor, const Interval& extent);

// By that many of the view's `width_px` pixels, to later times.
Interval Pan(const Interval& view, double pixels, int32_t width_px, const Interval& extent);

// A view of `shown` with a margin.
Interval ViewOf(const Interval& shown, const Interval& extent);

// The views that were left, to go back to and forth.
class ViewHistory {
 public:
  // The view that is left for another one, which forgets what lay ahead. The oldest of more than
  // kMostHistory is forgotten.
  void Leave(const Interval& view);
  // The view before or after; `now` can then be returned to. Nothing at the end.
  std::optional<Interval> Back(const Interval& now);
  std::optional<Interval> Forward(const Interval& now);

 private:
  std::vector<Interval> behind_;
  std::vector<Interval> ahead_;
};

}  // namespace trainprof
