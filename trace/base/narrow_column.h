// A column of numbers nearly all of which fit 31 bits (durations in ns, ids, bytes): four bytes a row, and eight more
// for one that does not, unless it repeats the last such number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "trace/base/large_columns.h"

namespace trainprof {

class NarrowColumn {
 public:
  using value_type = int64_t;

  size_t size() const { return rows_.size(); }
  size_t stored_bytes() const {
    return rows_.capacity() * sizeof(uint32_t) + wide_.capacity() * sizeof(int64_t);
  }
  [[gnu::always_inline]] int64_t operator[](size_t row) const {
    const uint32_t code = rows_[row];
    if (code < kWide) [[likely]] {
      return int64_t{code} + kLeast;
    }
    return Wide(code);
  }
  int64_t back() const { return (*this)[size() - 1]; }

  void Set(size_t row, int64_t value) { rows_[row] = CodeOf(value); }
  void push_back(int64_t value) { rows_.push_back(CodeOf(value)); }
  // As a vector's: further rows hold `value`.
  void resize(size_t size, int64_t value = 0) {
    rows_.resize(size, size > rows_.size() ? CodeOf(value) : 0);
  }
  // How many rows are to come in all.
  void Expect(size_t rows) { ReserveLarge(rows_, rows); }

  // visit(std::vector<...>& rows) of what is stored a row, to change the order of rows.
  template <class Visit>
  friend void VisitStored(NarrowColumn& column, Visit visit) {
    visit(column.rows_);
  }
  bool operator==(const NarrowColumn& other) const {
    if (size() != other.size()) return false;
    for (size_t row = 0; row < size(); ++row) {
      if ((*this)[row] != other[row]) return false;
    }
    return true;
  }

 private:
  static constexpr int64_t kLeast = -(int64_t{1} << 16);
  static constexpr uint32_t kWide = uint32_t{1} << 31;  // codes from here on: of wide_

  // Apart, so that what nearly always is read takes few instructions wherever it is read.
  [[gnu::cold, gnu::noinline]] int64_t Wide(uint32_t code) const { return wide_[code - kWide]; }
  uint32_t CodeOf(int64_t value) {
    if (value >= kLeast && value < kLeast + int64_t{kWide}) [[likely]] {
      return static_cast<uint32_t>(value - kLeast);
    }
    if (wide_.empty() || wide_.back() != value) wide_.push_back(value);
    return kWide + static_cast<uint32_t>(wide_.size() - 1);
  }

  std::vector<uint32_t> rows_;
  std::vector<int64_t>
      wide_;  // each by the codes of its rows, so that those may change their order
};

}  // namespace trainprof
