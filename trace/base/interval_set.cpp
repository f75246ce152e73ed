// Set algebra on sorted disjoint intervals: every operation is one merge pass.
#include "trace/base/interval_set.h"

#include <algorithm>

#include "trace/base/cancel.h"
#include "trace/base/sort_runs.h"

namespace trainprof {

IntervalSet IntervalSet::Union(std::vector<Interval> intervals) {
  CancelPoint();
  std::erase_if(intervals, [](const Interval& i) { return i.Empty(); });
  SortRuns(intervals, [](const Interval& interval) { return interval.begin; });
  size_t last = 0;
  for (size_t i = 1; i < intervals.size(); ++i) {
    CancelPoint(i);
    if (intervals[i].begin <= intervals[last].end) {
      intervals[last].end = std::max(intervals[last].end, intervals[i].end);
    } else {
      intervals[++last] = intervals[i];
    }
  }
  if (!intervals.empty()) intervals.resize(last + 1);
  return IntervalSet(std::move(intervals));
}

Duration IntervalSet::Total() const {
  Duration total;
  for (const Interval& i : intervals_) total += i.Length();
  return total;
}

IntervalSet IntervalSet::UnionWith(const IntervalSet& other) const {
  std::vector<Interval> all;
  all.reserve(intervals_.size() + other.intervals_.size());
  std::merge(intervals_.begin(), intervals_.end(), other.intervals_.begin(), other.intervals_.end(),
             std::back_inserter(all));
  return Union(std::move(all));
}

IntervalSet IntervalSet::IntersectWith(const IntervalSet& other) const {
  CancelPoint();
  std::vector<Interval> common;
  auto a = intervals_.begin();
  auto b = other.intervals_.begin();
  while (a != intervals_.end() && b != other.intervals_.end()) {
    const Interval part = Intersect(*a, *b);
    if (!part.Empty()) common.push_back(part);
    (a->end < b->end) ? ++a : ++b;
  }
  return IntervalSet(std::move(common));
}

IntervalSet IntervalSet::Minus(const IntervalSet& other) const {
  CancelPoint();
  std::vector<Interval> rest;
  auto b = other.intervals_.begin();
  for (const Interval& a : intervals_) {
    TraceTime at = a.begin;
    while (b != other.intervals_.end() && b->end <= at) ++b;
    for (auto c = b; c != other.intervals_.end() && c->begin < a.end; ++c) {
      if (c->begin > at) rest.push_back({at, c->begin});
      at = std::max(at, c->end);
    }
    if (at < a.end) rest.push_back({at, a.end});
  }
  return IntervalSet(std::move(rest));
}

IntervalSet IntervalSet::Complement(const Interval& within) const {
  return Union({within}).Minus(*this);
}

IntervalSet IntervalSet::Clip(const Interval& within) const {
  return IntersectWith(Union({within}));
}

Duration IntervalSet::TotalWithin(const Interval& within) const {
  if (within.Empty()) return {};
  auto it = std::partition_point(intervals_.begin(), intervals_.end(),
                                 [&](const Interval& i) { return i.end <= within.begin; });
  Duration total;
  for (; it != intervals_.end() && it->begin < within.end; ++it) {
    total += Intersect(*it, within).Length();
  }
  return total;
}

}  // namespace trainprof
