// A lane: events that do not overlap, in time order; what one row of pixels shows. A track has one
// lane for each depth of nesting.
#pragma once

#include <span>
#include <vector>

#include "trace/tables/trace.h"
#include "viewer/timeline/pyramid.h"

namespace trainprof {

class Lane {
 public:
  // Room for so many events.
  void Reserve(size_t events);
  // begin >= the end of the event before.
  void Add(TraceTime begin, TraceTime end, Category category, Table table, Row row);
  // After the last Add: makes what the queries below need. O(n), may be cancelled.
  void Finish();

  size_t size() const { return begin_.size(); }
  Interval interval(size_t i) const { return {begin_[i], end_[i]}; }
  Category category(size_t i) const { return category_[i]; }
  Table table(size_t i) const { return table_[i]; }
  Row row(size_t i) const { return row_[i]; }
  const Pyramid& pyramid() const { return pyramid_; }

  // The first event at or behind `from` that ends after `t` or begins at or after it; size() when
  // there is none. O(log distance).
  size_t FirstEndingAfter(TraceTime t, size_t from = 0) const;
  // The same for one that begins at or after `t`.
  size_t FirstBeginningAt(TraceTime t, size_t from = 0) const;
  // The first event at or behind `from` that lasts `least` or longer; size() when there is none.
  // O(log n).
  size_t NextLasting(Duration least, size_t from) const;
  // Time of the events [first, last) within `part`, exact. They lie within it, the outer two
  // perhaps only partly. O(1).
  CategoryTotals TotalsWithin(const Interval& part, size_t first, size_t last) const;
  // The same as a column. first < last.
  Column ColumnOf(const Interval& part, size_t first, size_t last) const;

  size_t size_bytes() const;

 private:
  // Per block there is a sum before it and the longest event in it.
  static constexpr size_t kBlock = 64;
  static constexpr size_t kFanOut = 8;

  void AddClipped(size_t i, const Interval& part, CategoryTotals& totals) const;
  void AddWhole(size_t first, size_t last, CategoryTotals& totals) const;
  void MakeBlocks();
  size_t Descend(size_t level, size_t block, Duration least) const;

  std::vector<TraceTime> begin_;
  std::vector<TraceTime> end_;
  std::vector<Category> category_;
  std::vector<Table> table_;
  std::vector<Row> row_;
  std::vector<CategoryTotals> before_;          // of the events before block b
  std::vector<std::vector<Duration>> longest_;  // [0]: per block; each level above: per kFanOut
  Pyramid pyramid_;
};

}  // namespace trainprof
