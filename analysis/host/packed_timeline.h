// A timeline in two thirds of the room: 16 bytes a segment.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

#include "analysis/host/timeline.h"
#include "trace/base/large_columns.h"

namespace trainprof {

// As Timeline, of an enumeration of at most 32 values; a segment lasts for up to nine years. Segments are made as
// they are read.
template <class Value>
class PackedTimeline {
 public:
  class Iterator {
   public:
    using iterator_category = std::random_access_iterator_tag;
    using value_type = Segment<Value>;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = Segment<Value>;

    Iterator() = default;
    Iterator(const PackedTimeline& of, size_t at) : of_(&of), at_(at) {}
    Segment<Value> operator*() const { return (*of_)[at_]; }
    Iterator& operator++() { return *this += 1; }
    Iterator& operator--() { return *this += -1; }
    Iterator& operator+=(difference_type by) {
      at_ = static_cast<size_t>(static_cast<difference_type>(at_) + by);
      return *this;
    }
    Iterator operator+(difference_type by) const { return Iterator(*this) += by; }
    difference_type operator-(const Iterator& other) const {
      return static_cast<difference_type>(at_) - static_cast<difference_type>(other.at_);
    }
    bool operator==(const Iterator&) const = default;

   private:
    const PackedTimeline* of_ = nullptr;
    size_t at_ = 0;
  };

  size_t size() const { return rows_.size(); }
  bool empty() const { return rows_.empty(); }
  Segment<Value> operator[](size_t row) const {
    const Packed& packed = rows_[row];
    return {{packed.begin, packed.begin + Duration{packed.length_and_value >> kValueBits}},
            static_cast<Value>(packed.length_and_value & kValueMask)};
  }
  Segment<Value> back() const { return (*this)[size() - 1]; }
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, size()}; }

  // Room for so many; memory is taken only as they are added.
  void Reserve(size_t segments) { ReserveLarge(rows_, segments); }
  // Behind all others. What follows the last one directly, with the same value, makes that one longer.
  void Add(const Interval& interval, Value value) {
    if (!empty()) {
      const Segment<Value> last = back();
      if (last.value == value && last.interval.end == interval.begin) {
        rows_.back() = Pack({last.interval.begin, interval.end}, value);
        return;
      }
    }
    AddLarge(rows_, Pack(interval, value));
  }
  // All of another one, which are later than these.
  void Append(const PackedTimeline& other) {
    rows_.insert(rows_.end(), other.rows_.begin(), other.rows_.end());
  }
  // Between the others, none of which they touch; ascending.
  void Insert(std::span<const Interval> intervals, Value value) {
    const auto middle = static_cast<std::ptrdiff_t>(size());
    for (const Interval& interval : intervals) rows_.push_back(Pack(interval, value));
    std::inplace_merge(rows_.begin(), rows_.begin() + middle, rows_.end(),
                       [](const Packed& a, const Packed& b) { return a.begin < b.begin; });
  }
  void Clear() { rows_.clear(); }

 private:
  static constexpr int kValueBits = 5;
  static constexpr int64_t kValueMask = (1 << kValueBits) - 1;
  struct Packed {
    TraceTime begin;
    int64_t length_and_value = 0;
  };

  static Packed Pack(const Interval& interval, Value value) {
    return {interval.begin, interval.Length().ns << kValueBits | static_cast<int64_t>(value)};
  }

  std::vector<Packed> rows_;
};

}  // namespace trainprof
