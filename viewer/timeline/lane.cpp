#include "viewer/timeline/lane.h"

#include <algorithm>

#include "trace/base/cancel.h"

namespace trainprof {
namespace {

constexpr size_t kFew = 16;  // events that are looked at one by one

// The first i in [from, size) for which `is_behind`, false up to some point and true from there,
// is true. Looks near `from` first: O(log distance).
template <class IsBehind>
size_t Gallop(size_t from, size_t size, IsBehind is_behind) {
  size_t low = from;
  size_t high = from;
  for (size_t step = 1; high < size && !is_behind(high); step *= 2) {
    low = high + 1;
    high += step;
  }
  high = std::min(high, size);
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    is_behind(middle) ? high = middle : low = middle + 1;
  }
  return low;
}

}  // namespace

void Lane::Add(TraceTime begin, TraceTime end, Category category, Table table, Row row) {
  begin_.push_back(begin);
  end_.push_back(end);
  category_.push_back(category);
  table_.push_back(table);
  row_.push_back(row);
}

void Lane::Reserve(size_t events) {
  begin_.reserve(events);
  end_.reserve(events);
  category_.reserve(events);
  table_.reserve(events);
  row_.reserve(events);
}

void Lane::Finish() {
  begin_.shrink_to_fit();
  end_.shrink_to_fit();
  category_.shrink_to_fit();
  table_.shrink_to_fit();
  row_.shrink_to_fit();
  pyramid_ = Pyramid::Build(begin_, end_, category_);
  if (size() > kBlock) MakeBlocks();
}

void Lane::MakeBlocks() {
  CategoryTotals sum{};
  longest_.emplace_back();
  for (size_t block = 0; block < size(); block += kBlock) {
    CancelPoint(block);
    before_.push_back(sum);
    Duration longest;
    for (size_t i = block; i < std::min(block + kBlock, size()); ++i) {
      const Duration length = end_[i] - begin_[i];
      sum[static_cast<size_t>(category_[i])] += length;
      longest = std::max(longest, length);
    }
    longest_[0].push_back(longest);
  }
  while (longest_.back().size() > kFanOut) {
    const std::vector<Duration>& below = longest_.back();
    std::vector<Duration> level((below.size() + kFanOut - 1) / kFanOut);
    for (size_t b = 0; b < below.size(); ++b) {
      level[b / kFanOut] = std::max(level[b / kFanOut], below[b]);
    }
    longest_.push_back(std::move(level));
  }
}

size_t Lane::FirstEndingAfter(TraceTime t, size_t from) const {
  return Gallop(from, size(), [&](size_t i) { return end_[i] > t || begin_[i] >= t; });
}

size_t Lane::FirstBeginningAt(TraceTime t, size_t from) const {
  return Gallop(from, size(), [&](size_t i) { return begin_[i] >= t; });
}

size_t Lane::NextLasting(Duration least, size_t from) const {
  size_t i = from;
  for (; i < size() && (longest_.empty() || i % kBlock != 0); ++i) {
    if (end_[i] - begin_[i] >= least) return i;
  }
  if (i >= size()) return size();
  size_t block = i / kBlock;
  size_t level = 0;
  while (true) {
    if (block >= longest_[level].size()) return size();
    if (longest_[level][block] >= least) return Descend(level, block, least);
    ++block;
    // Up where a whole family of blocks begins.
    while (block % kFanOut == 0 && level + 1 < longest_.size()) {
      block /= kFanOut;
      ++level;
    }
  }
}

// The first event that lasts so long among those of a block that has one.
size_t Lane::Descend(size_t level, size_t block, Duration least) const {
  for (; level > 0; --level) {
    block *= kFanOut;
    while (longest_[level - 1][block] < least) ++block;
  }
  size_t i = block * kBlock;
  while (end_[i] - begin_[i] < least) ++i;
  return i;
}

void Lane::AddClipped(size_t i, const Interval& part, CategoryTotals& totals) const {
  const Interval inside = Intersect(interval(i), part);
  if (!inside.Empty()) totals[static_cast<size_t>(category_[i])] += inside.Length();
}

void Lane::AddWhole(size_t first, size_t last, CategoryTotals& totals) const {
  for (size_t i = first; i < last; ++i) {
    totals[static_cast<size_t>(category_[i])] += end_[i] - begin_[i];
  }
}

CategoryTotals Lane::TotalsWithin(const Interval& part, size_t first, size_t last) const {
  CategoryTotals totals{};
  if (first >= last) return totals;
  AddClipped(first, part, totals);
  if (last - first == 1) return totals;
  AddClipped(last - 1, part, totals);
  const size_t begin = first + 1;
  const size_t end = last - 1;
  const size_t first_block = (begin + kBlock - 1) / kBlock;
  const size_t last_block = end / kBlock;
  if (before_.empty() || first_block >= last_block) {
    AddWhole(begin, end, totals);
    return totals;
  }
  AddWhole(begin, first_block * kBlock, totals);
  for (size_t c = 0; c < kCategories; ++c) {
    totals[c] += before_[last_block][c] - before_[first_block][c];
  }
  AddWhole(last_block * kBlock, end, totals);
  return totals;
}

Column Lane::ColumnOf(const Interval& part, size_t first, size_t last) const {
  if (last - first > kFew) {
    return MakeColumn(TotalsWithin(part, first, last), category_[first], part.Length());
  }
  CategoryTotals totals{};
  for (size_t i = first; i < last; ++i) AddClipped(i, part, totals);
  Duration sum;
  Category most = category_[first];
  for (size_t i = first; i < last; ++i) {
    const Category c = category_[i];
    Duration& total = totals[static_cast<size_t>(c)];
    const Duration best = totals[static_cast<size_t>(most)];
    if (total > best || (total == best && total.ns > 0 && c < most)) most = c;
  }
  for (const Duration& total : totals) sum += total;
  return MakeColumn(sum, most, part.Length());
}

size_t Lane::size_bytes() const {
  size_t bytes = sizeof(Lane) + begin_.capacity() * (sizeof(TraceTime) * 2 + sizeof(Row) + 2) +
                 before_.capacity() * sizeof(CategoryTotals) + pyramid_.size_bytes();
  for (const std::vector<Duration>& level : longest_) bytes += level.capacity() * sizeof(Duration);
  return bytes;
}

}  // namespace trainprof
