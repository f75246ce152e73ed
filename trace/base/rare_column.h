// A column whose rows all hold one value in most traces (no stack, no arguments): it takes memory
// from the first row on that holds another one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "trace/base/large_columns.h"

namespace trainprof {

template <class T, T kUsual>
class RareColumn {
 public:
  using value_type = T;

  RareColumn() = default;
  explicit RareColumn(size_t size) : size_(size) {}

  size_t size() const { return size_; }
  size_t stored_bytes() const { return rows_.capacity() * sizeof(T); }
  T operator[](size_t row) const { return rows_.empty() ? kUsual : rows_[row]; }
  T back() const { return (*this)[size_ - 1]; }

  void push_back(T value) {
    if (!rows_.empty()) {
      rows_.push_back(value);
    } else if (value != kUsual) {
      Store();
      rows_.push_back(value);
    }
    ++size_;
  }
  // As a vector's: further rows hold `value`.
  void resize(size_t size, T value = kUsual) {
    const bool must_store = rows_.empty() && size > size_ && value != kUsual;
    if (must_store) Store();
    if (must_store || !rows_.empty()) rows_.resize(size, value);
    size_ = size;
  }
  // How many rows are to come in all, should they need memory.
  void Expect(size_t rows) {
    expected_ = rows;
    if (!rows_.empty()) ReserveLarge(rows_, rows);
  }
  // The rows, to change their order or values; null where all hold the usual value.
  friend std::vector<T>* StoredRows(RareColumn& column) {
    return column.rows_.empty() ? nullptr : &column.rows_;
  }
  bool operator==(const RareColumn& other) const {
    if (size_ != other.size_) return false;
    if (rows_.empty() && other.rows_.empty()) return true;
    for (size_t row = 0; row < size_; ++row) {
      if ((*this)[row] != other[row]) return false;
    }
    return true;
  }

 private:
  void Store() {
    ReserveLarge(rows_, std::max(expected_, size_ + 1));
    rows_.resize(size_, kUsual);
  }

  size_t size_ = 0;
  size_t expected_ = 0;
  std::vector<T> rows_;  // empty: all hold kUsual
};

// visit(std::vector<T>& rows) of what is stored a row; not called where nothing is.
template <class T, T kUsual, class Visit>
void VisitStored(RareColumn<T, kUsual>& column, Visit visit) {
  if (auto* const rows = StoredRows(column)) visit(*rows);
}

// The same of any column.
template <class T>
std::vector<T>* StoredRows(std::vector<T>& column) {
  return &column;
}
template <class T, class Visit>
void VisitStored(std::vector<T>& column, Visit visit) {
  visit(column);
}

// Gives the last row another value; of any column.
template <class Column>
void SetBack(Column& column, typename Column::value_type value) {
  column.resize(column.size() - 1);
  column.push_back(value);
}

// The memory that a column's rows take.
template <class Column>
size_t StoredBytes(const Column& column) {
  if constexpr (requires { column.stored_bytes(); }) {
    return column.stored_bytes();
  } else {
    return column.capacity() * sizeof column[0];
  }
}

}  // namespace trainprof
