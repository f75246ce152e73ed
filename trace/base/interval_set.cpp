// Set algebra on sorted disjoint intervals: every operation is one merge pass.
#include "trace/base/interval_set.h"

#include <algorithm>

#include "trace/base/cancel.h"
#include "trace/base/near.h"
#include "trace/base/sort_runs.h"

namespace trainprof {
namespace {

// The parts that both have, in time order.
template <class Visit>
void VisitCommon(const IntervalSet& one, const IntervalSet& other, Visit visit) {
  CancelPoint();
  auto a = one.intervals().begin();
  auto b = other.intervals().begin();
  while (a != one.intervals().end() && b != other.intervals().end()) {
    const Interval part = Intersect(*a, *b);
    if (!part.Empty()) visit(part);
    (a->end < b->end) ? ++a : ++b;
  }
}

}  // namespace

IntervalSet IntervalSet::Union(std::vector<Interval> intervals) {
  CancelPoint();
  std::erase_if(intervals, [](const Interval& i) { return i.Empty(); });
  SortRuns(intervals, [](const Interval& interval) { return interval.begin; });
  return Coalesced(std::move(intervals));
}

IntervalSet IntervalSet::Coalesced(std::vector<Interval> sorted) {
  size_t last = 0;
  for (size_t i = 1; i < sorted.size(); ++i) {
    CancelPoint(i);
    if (sorted[i].begin <= sorted[last].end) {
      sorted[last].end = std::max(sorted[last].end, sorted[i].end);
    } else {
      sorted[++last] = sorted[i];
    }
  }
  if (!sorted.empty()) sorted.resize(last + 1);
  // Of millions of kernels a few busy stretches may be left.
  if (sorted.size() < sorted.capacity() / 2) sorted.shrink_to_fit();
  return IntervalSet(std::move(sorted));
}

Duration IntervalSet::Total() const {
  Duration total;
  for (const Interval& i : intervals_) total += i.Length();
  return total;
}

IntervalSet IntervalSet::UnionWith(const IntervalSet& other) const& {
  std::vector<Interval> all;
  ReserveLarge(all, intervals_.size() + other.intervals_.size());
  all = intervals_;
  return IntervalSet(std::move(all)).UnionWith(other);
}

IntervalSet IntervalSet::UnionWith(const IntervalSet& other) && {
  CancelPoint();
  if (other.Empty()) return std::move(*this);
  std::vector<Interval> all = std::move(intervals_);
  auto a = all.size();
  auto b = other.intervals_.size();
  ReserveLarge(all, a + b);
  all.resize(a + b);
  // From the back, so that nothing is overwritten before it was moved.
  for (auto to = a + b; b > 0; --to) {
    CancelPoint(to);
    const bool take_a = a > 0 && all[a - 1].begin > other.intervals_[b - 1].begin;
    all[to - 1] = take_a ? all[--a] : other.intervals_[--b];
  }
  return Coalesced(std::move(all));
}

IntervalSet IntervalSet::IntersectWith(const IntervalSet& other) const {
  std::vector<Interval> common;
  VisitCommon(*this, other, [&](const Interval& part) { AddLarge(common, part); });
  return IntervalSet(std::move(common));
}

Duration IntervalSet::TotalWithin(const IntervalSet& other) const {
  Duration total;
  VisitCommon(*this, other, [&](const Interval& part) { total += part.Length(); });
  return total;
}

IntervalSet IntervalSet::Minus(const IntervalSet& other) const {
  CancelPoint();
  std::vector<Interval> rest;
  auto b = other.intervals_.begin();
  for (const Interval& a : intervals_) {
    TraceTime at = a.begin;
    while (b != other.intervals_.end() && b->end <= at) ++b;
    for (auto c = b; c != other.intervals_.end() && c->begin < a.end; ++c) {
      if (c->begin > at) AddLarge(rest, {at, c->begin});
      at = std::max(at, c->end);
    }
    if (at < a.end) AddLarge(rest, {at, a.end});
  }
  return IntervalSet(std::move(rest));
}

IntervalSet IntervalSet::Complement(const Interval& within) const {
  return Union({within}).Minus(*this);
}

IntervalSet IntervalSet::Clip(const Interval& within) const {
  return IntersectWith(Union({within}));
}

Duration IntervalSet::SumWithin(const Interval& within) const {
  if (within.Empty()) return {};
  auto it = std::partition_point(intervals_.begin(), intervals_.end(),
                                 [&](const Interval& i) { return i.end <= within.begin; });
  Duration total;
  for (; it != intervals_.end() && it->begin < within.end; ++it) {
    total += Intersect(*it, within).Length();
  }
  return total;
}

const Interval* IntervalReader::LastBefore(TraceTime at) {
  near_ =
      PlaceNear(0, intervals_.size(), near_, [&](size_t i) { return intervals_[i].begin < at; });
  return near_ == 0 ? nullptr : &intervals_[near_ - 1];
}

Duration IntervalReader::Search(const Interval& within) {
  if (within.Empty()) return {};
  auto it = PartitionNear(intervals_.begin(), intervals_.end(),
                          intervals_.begin() + static_cast<ptrdiff_t>(near_),
                          [&](const Interval& i) { return i.end <= within.begin; });
  near_ = static_cast<size_t>(it - intervals_.begin());
  Duration total;
  for (; it != intervals_.end() && it->begin < within.end; ++it) {
    total += Intersect(*it, within).Length();
  }
  return total;
}

}  // namespace trainprof
