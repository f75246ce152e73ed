// Half-open intervals [begin, end), and sets of them: what "busy", "idle" and "exposed" are made
// of.
//
//   IntervalSet busy = IntervalSet::Union({{0, 10}, {5, 20}, {30, 40}});   // {[0,20), [30,40)}
//   IntervalSet idle = busy.Complement({0, 50});                           // {[20,30), [40,50)}
//   idle.Total();                                                          // 20 ns
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "trace/base/large_columns.h"
#include "trace/base/time.h"

namespace trainprof {

struct Interval {
  TraceTime begin;
  TraceTime end;

  auto operator<=>(const Interval&) const = default;
  Duration Length() const { return end - begin; }
  bool Empty() const { return end <= begin; }
  bool Contains(TraceTime t) const { return begin <= t && t < end; }
};

// The common part, Empty() when there is none.
constexpr Interval Intersect(const Interval& a, const Interval& b) {
  return {a.begin > b.begin ? a.begin : b.begin, a.end < b.end ? a.end : b.end};
}

// Sorted, disjoint, non-empty, non-touching intervals.
class IntervalSet {
 public:
  IntervalSet() = default;

  // Any intervals in any order; empty ones are ignored. O(n log n), O(n) when sorted by begin.
  static IntervalSet Union(std::vector<Interval> intervals);

  std::span<const Interval> intervals() const& { return intervals_; }
  std::span<const Interval> intervals() && = delete;  // they would be gone
  bool Empty() const { return intervals_.empty(); }
  Duration Total() const;

  // All O(n + m).
  IntervalSet UnionWith(const IntervalSet& other) const&;
  IntervalSet UnionWith(const IntervalSet& other) &&;  // in the room of this one
  IntervalSet IntersectWith(const IntervalSet& other) const;
  IntervalSet Minus(const IntervalSet& other) const;
  IntervalSet Complement(const Interval& within) const;
  IntervalSet Clip(const Interval& within) const;
  // Total of the part inside `within`. O(log n + k), k intervals there.
  Duration TotalWithin(const Interval& within) const {
    if (intervals_.empty()) return {};
    if (intervals_.size() > 1) return SumWithin(within);
    const Interval part = Intersect(intervals_.front(), within);
    return part.Empty() ? Duration{} : part.Length();
  }
  // As IntersectWith(other).Total(), without making that set. O(n + m).
  Duration TotalWithin(const IntervalSet& other) const;

  bool operator==(const IntervalSet&) const = default;

 private:
  friend class IntervalUnion;
  // Sorted by begin, none empty.
  static IntervalSet Coalesced(std::vector<Interval> sorted);
  Duration SumWithin(const Interval& within) const;
  explicit IntervalSet(std::vector<Interval> disjoint) : intervals_(std::move(disjoint)) {}
  std::vector<Interval> intervals_;
};

// A union of intervals that come in the order of their begin, made as they come.
class IntervalUnion {
 public:
  // Not before any other one; empty ones are ignored.
  void Add(const Interval& interval) {
    if (interval.Empty()) return;
    if (!intervals_.empty() && interval.begin <= intervals_.back().end) {
      intervals_.back().end = std::max(intervals_.back().end, interval.end);
    } else {
      AddLarge(intervals_, interval);
    }
  }
  IntervalSet Take() && { return IntervalSet(std::move(intervals_)); }

 private:
  std::vector<Interval> intervals_;
};

// TotalWithin() for times that mostly ascend: each search begins where the last one ended.
class IntervalReader {
 public:
  // Keeps a reference.
  explicit IntervalReader(const IntervalSet& set) : intervals_(set.intervals()) {}

  // O(log distance + k), from the one asked for before.
  Duration TotalWithin(const Interval& within) {
    if (near_ < intervals_.size()) {  // most lie within one, and often in that of the last time
      const Interval& last = intervals_[near_];
      if (last.begin <= within.begin && within.end <= last.end && !within.Empty()) {
        return within.Length();
      }
    }
    return Search(within);
  }
  // The one that begins last of those that begin before `at`; nullptr: none does. O(log distance).
  const Interval* LastBefore(TraceTime at);

 private:
  Duration Search(const Interval& within);

  std::span<const Interval> intervals_;
  size_t near_ = 0;
};

}  // namespace trainprof
