// A column of texts of which a trace has a few (the source's own words for kinds of rows): a byte a row up to 255 of
// them, and no memory where all rows have none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "trace/base/ids.h"
#include "trace/base/large_columns.h"

namespace trainprof {

class WordColumn {
 public:
  using value_type = StringId;

  size_t size() const { return size_; }
  StringId operator[](size_t row) const {
    if (is_many_) return many_[row];
    return few_.empty() ? kEmptyString : words_[few_[row]];
  }
  StringId back() const { return (*this)[size_ - 1]; }

  void push_back(StringId word) { resize(size_ + 1, word); }
  // As a vector's: further rows hold `word`.
  void resize(size_t size, StringId word = kEmptyString) {
    if (size > size_ && !is_many_ && (!few_.empty() || word != kEmptyString)) Take(word);
    if (is_many_) {
      many_.resize(size, word);
    } else if (!few_.empty() || (size > size_ && word != kEmptyString)) {
      few_.resize(size, last_);
    }
    size_ = size;
  }
  // How many rows are to come in all, should they need memory.
  void Expect(size_t rows) {
    expected_ = rows;
    if (is_many_) {
      ReserveLarge(many_, rows);
    } else if (!few_.empty()) {
      ReserveLarge(few_, rows);
    }
  }
  size_t stored_bytes() const { return few_.capacity() + many_.capacity() * sizeof(StringId); }

  // visit(std::vector<...>& rows) of what is stored a row, to change the order of rows; of nothing where all rows
  // hold no text.
  template <class Visit>
  friend void VisitStored(WordColumn& column, Visit visit) {
    if (column.is_many_) {
      visit(column.many_);
    } else if (!column.few_.empty()) {
      visit(column.few_);
    }
  }
  bool operator==(const WordColumn& other) const {
    if (size_ != other.size_) return false;
    for (size_t row = 0; row < size_; ++row) {
      if ((*this)[row] != other[row]) return false;
    }
    return true;
  }

 private:
  // Makes room for rows of that word, whose number is last_ then, unless there are too many words.
  void Take(StringId word) {
    if (few_.empty()) {
      ReserveLarge(few_, std::max(expected_, size_ + 1));
      few_.resize(size_, 0);
    }
    if (words_[last_] == word) return;
    const auto known = std::find(words_.begin(), words_.end(), word);
    last_ = static_cast<uint8_t>(known - words_.begin());
    if (known != words_.end()) return;
    if (words_.size() <= UINT8_MAX) return words_.push_back(word);
    ReserveLarge(many_, std::max(expected_, size_ + 1));
    for (const uint8_t number : few_) many_.push_back(words_[number]);
    is_many_ = true;
    few_ = {};
  }

  size_t size_ = 0;
  size_t expected_ = 0;
  std::vector<StringId> words_{kEmptyString};
  uint8_t last_ = 0;          // of words_, of the row added last
  std::vector<uint8_t> few_;  // by row, of words_; empty: all rows hold none, or they are many_
  bool is_many_ = false;
  std::vector<StringId> many_;  // by row, once there are more words than a byte can tell apart
};

}  // namespace trainprof
